"""From what was read to rows: which part of a tree is an answer, whose, and which part is only talk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from verdict_parsers._ids import IdBook, names_something
from verdict_parsers._values import Bare, Fields, Obj, Value
from verdict_parsers._words import OPAQUE_KEYS, WRAPPER_KEYS, Answer, answer_of, bare_verdict, squash

MAX_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Row:
    """One answer. `ids` holds one id; none when the row names nothing; several when it names more than one row.

    A `doubtful` row gives no verdict and can only contradict one. `start` and `end` are offsets, -1 where unknown.
    """

    ids: tuple[str, ...]
    answer: Answer
    start: int
    end: int
    doubtful: bool = False
    mended: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A row that breaks off after it had named its ids."""

    ids: tuple[str, ...]
    start: int
    end: int


def rows_of(tree: Value, book: IdBook, doubt_from: int | None = None) -> tuple[list[Row], list[Cut]]:
    """All rows of one tree. What reaches behind `doubt_from` is doubtful."""
    rows: list[Row] = []
    cuts: list[Cut] = []
    for found in _walk(tree, book, _Place()):
        if isinstance(found, Cut):
            cuts.append(found)
        else:
            beyond = doubt_from is not None and found.end > doubt_from
            rows.append(replace(found, doubtful=True) if beyond else found)
    return rows, cuts


def row_of(fields: Fields, book: IdBook, start: int, end: int, key_id: str | None = None) -> Row | None:
    """The row that these fields make; None without a verdict, for a format example, and for a row of another block.

    `key_id` is the id under which the fields stand: another id inside makes the row one of both, or a conflict.
    """
    answer, ids = answer_of(fields), book.named(fields)
    if answer is None or answer.state == "example":
        return None
    if key_id is not None:
        both = tuple(dict.fromkeys((key_id, *(ids or ()))))
        return Row(both, answer if ids is not None else Answer("conflict"), start, end, answer.echo)
    if ids is None or (not ids and names_something(fields)):
        return None
    return Row(ids, answer, start, end, answer.echo)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a tree: under the key of which id, and whether rows count there (those without an id: `nameless`)."""

    depth: int = 0
    key_id: str | None = None
    doubtful: bool = False
    nameless: bool = True

    def below(self, *, doubtful: bool, nameless: bool) -> _Place:
        return _Place(self.depth + 1, None, self.doubtful or doubtful, self.nameless and nameless)


def _walk(node: Value, book: IdBook, place: _Place) -> Iterator[Row | Cut]:
    if place.depth > MAX_DEPTH:
        return
    if isinstance(node, list):
        for item in node:
            yield from _walk(item, book, place.below(doubtful=False, nameless=True))
    elif isinstance(node, Obj):
        yield from _own(node, book, place)
        yield from _below(node, book, place)


def _own(node: Obj, book: IdBook, place: _Place) -> Iterator[Row | Cut]:
    """What the object says as a row."""
    if not node.closed:
        begun = [(key, value) for key, value in node.pending if isinstance(value, str) and not isinstance(value, Bare)]
        named = set(book.named([*node.pairs, *begun]) or ()) | {place.key_id}
        named |= {book.match(key) for key, _ in node.pending}
        if ids := tuple(name for name in named if name is not None):
            yield Cut(ids, node.start, node.end)
        return
    if row := row_of(node.pairs, book, node.start, node.end, place.key_id):
        doubtful = row.doubtful or place.doubtful or not (row.ids or place.nameless)
        yield replace(row, doubtful=doubtful, mended=node.mended)


def _below(node: Obj, book: IdBook, place: _Place) -> Iterator[Row | Cut]:
    """What stands below the object's keys: an id, a wrapper, a reason, or anything else."""
    names_a_row = place.key_id is not None or names_something(node.pairs)
    is_row = names_a_row and answer_of(node.pairs) is not None
    keys = [book.match(key) or squash(key) for key, _ in node.pairs]
    times = Counter(keys)
    for n, (key, (_, value)) in enumerate(zip(keys, node.pairs, strict=True)):
        if key in book.order:
            found = _keyed(node, n, key, book, place.below(doubtful=is_row, nameless=False))
        elif key in OPAQUE_KEYS or not isinstance(value, Obj | list):
            continue
        else:
            found = _walk(value, book, place.below(doubtful=is_row or key not in WRAPPER_KEYS, nameless=not names_a_row))
        for item in found:
            twice = times[key] > 1 and isinstance(item, Row)
            yield replace(item, answer=Answer("conflict")) if twice and isinstance(item, Row) else item


def _keyed(node: Obj, n: int, name: str, book: IdBook, place: _Place) -> Iterator[Row | Cut]:
    """The answer that stands under an id: a row, or the bare verdict."""
    value = node.pairs[n][1]
    if isinstance(value, Obj):
        yield from _walk(value, book, replace(place, key_id=name))
    elif (answer := bare_verdict(value)) is not None and answer.state != "example":
        start, end = node.spans[n] if node.spans else (-1, -1)
        yield Row((name,), answer, start, end, place.doubtful)
