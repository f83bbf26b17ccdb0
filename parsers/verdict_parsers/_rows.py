"""From what was read to rows: which part of a tree is an answer, whose, and which part is only talk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from verdict_parsers._ids import IdBook, names_something
from verdict_parsers._limits import MAX_DEPTH, MAX_TOKENS, Budget, TooMuch
from verdict_parsers._values import Bare, Fields, Obj, Value
from verdict_parsers._words import OPAQUE_KEYS, PLAIN_KEYS, Answer, answer_of, bare_verdict, may_hold_answers, squash


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
    if ids is None or (not ids and (names_something(fields) or answer.state == "silent")):
        return None
    unnamed = not ids and not all(squash(key) in PLAIN_KEYS for key, _ in fields)
    return Row(ids, answer, start, end, doubtful=answer.echo or unnamed)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a tree: under the key of which id, and whether rows count there (those without an id: `nameless`)."""

    depth: int = 0
    key_id: str | None = None
    doubtful: bool = False
    nameless: bool = True

    def below(self, *, doubtful: bool, nameless: bool) -> _Place:
        return _Place(self.depth + 1, None, self.doubtful or doubtful, self.nameless and nameless)


class TreeReader:
    """Finds the rows of the trees of one reply."""

    def __init__(self, book: IdBook):
        self._book = book
        self._budget = Budget(MAX_TOKENS, "fields")

    def rows(self, tree: Value, doubt_from: int | None = None) -> tuple[list[Row], list[Cut]]:
        """All rows of one tree. What reaches behind `doubt_from` is doubtful."""
        rows: list[Row] = []
        cuts: list[Cut] = []
        for found in self._walk(tree, _Place()):
            if isinstance(found, Cut):
                cuts.append(found)
            else:
                beyond = doubt_from is not None and found.end > doubt_from
                rows.append(replace(found, doubtful=True) if beyond else found)
        return rows, cuts

    def _walk(self, node: Value, place: _Place) -> Iterator[Row | Cut]:
        if place.depth > MAX_DEPTH:
            raise TooMuch("nesting")
        if isinstance(node, list):
            self._budget.take(len(node))
            inside = place.below(doubtful=False, nameless=len(node) == 1)
            found = [list(self._walk(item, inside)) for item in node]
            yield from chain.from_iterable(found)
            if any(found):
                yield from self._mute(item for item, said in zip(node, found, strict=True) if not said)
        elif isinstance(node, Obj):
            self._budget.take(2 * len(node.pairs))
            yield from self._own(node, place)
            yield from self._below(node, place)

    def _mute(self, items: Iterable[Value]) -> Iterator[Row]:
        """The rows, among others that answer, that have an id and no verdict that could be read."""
        for item in items:
            if isinstance(item, Obj) and item.closed and (ids := self._book.named(item.pairs)):
                yield Row(ids, Answer("silent"), item.start, item.end)

    def _own(self, node: Obj, place: _Place) -> Iterator[Row | Cut]:
        """What the object says as a row."""
        if not node.closed:
            written = [field for field in node.pending if isinstance(field[1], str) and not isinstance(field[1], Bare)]
            named = {place.key_id, *(self._book.named(node.pairs + written) or ())}
            named |= {self._book.match(key) for key, _ in node.pending}
            if ids := tuple(name for name in named if name is not None):
                yield Cut(ids, node.start, node.end)
        elif row := row_of(node.pairs, self._book, node.start, node.end, place.key_id):
            doubtful = row.doubtful or place.doubtful or not (row.ids or place.nameless)
            yield replace(row, doubtful=doubtful, mended=node.mended)

    def _below(self, node: Obj, place: _Place) -> Iterator[Row | Cut]:
        """What stands below the object's keys: an id, a wrapper, a reason, or anything else."""
        speaks = place.key_id is not None or names_something(node.pairs)
        answer = answer_of(node.pairs)
        answers = answer is not None and answer.state != "silent"
        is_row = speaks and (answers or place.key_id is not None or bool(self._book.named(node.pairs)))
        keys = [self._book.match(key) or squash(key) for key, _ in node.pairs]
        times = Counter(keys)
        for n, (key, (written, value)) in enumerate(zip(keys, node.pairs, strict=True)):
            of_row = is_row and squash(written) in PLAIN_KEYS
            if key in self._book.order and not of_row and not isinstance(value, list):
                beside_row = is_row or (speaks and not node.closed)
                found = self._keyed(node, n, key, place.below(doubtful=beside_row, nameless=False))
            elif squash(written) in OPAQUE_KEYS or not isinstance(value, Obj | list):
                continue
            else:
                doubtful = is_row or not may_hold_answers(written)
                found = self._walk(value, place.below(doubtful=doubtful, nameless=not speaks))
            for item in found:
                if times[key] > 1 and isinstance(item, Row):
                    item = replace(item, answer=Answer("conflict"))
                yield item

    def _keyed(self, node: Obj, n: int, name: str, place: _Place) -> Iterator[Row | Cut]:
        """The answer that stands under an id: a row, or the bare verdict."""
        value = node.pairs[n][1]
        if isinstance(value, Obj):
            yield from self._walk(value, replace(place, key_id=name))
        elif (answer := bare_verdict(value)) is not None and answer.state != "example":
            start, end = node.spans[n] if node.spans else (-1, -1)
            yield Row((name,), answer, start, end, place.doubtful)
