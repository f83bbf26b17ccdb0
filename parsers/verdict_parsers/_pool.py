"""What all candidates together say of each row: equal answers are one, any conflict makes the row unjudged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from verdict_parsers._ids import IdBook
from verdict_parsers._region import Region
from verdict_parsers._rows import Row
from verdict_parsers._spoken import contradicted
from verdict_parsers._types import Parsed, Verdict

_TRUST = ("whole", "fence", "scan", "rows")
_MARKS = "\"'“”|`"
_BLANK = re.compile(r"[\s`~,]*+(?:json\w*+)?\s*+", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s,]*+")
"""What may stand between the rows of a stream."""


def pool(regions: Sequence[Region], text: str, book: IdBook, spoken: str = "") -> Parsed:
    """Decide every id of the block; `spoken` is the text between the candidates."""
    regions = [_with_nameless(region, book) for region in regions]
    found: dict[str, list[tuple[Region, Row]]] = {name: [] for name in book.order}
    for region in regions:
        for row in region.rows:
            for name in row.ids:
                found[name].append((region, row))
    void = {} if _repeats(regions, text) else _voided(regions, text, book) | _begun_again(regions, found, text)
    cut = {name: _why_cut(region, text) for region in regions for cut in region.cuts for name in cut.ids}
    verdicts: dict[str, Verdict] = {}
    unjudged: dict[str, str] = {}
    abstained: dict[str, Verdict] = {}
    for name, rows in found.items():
        why, verdict = _decide(name, rows)
        if why in {"", "null"}:
            why = void.get(name, why)
        elif why == "missing":
            why = cut.get(name, why)
        if why:
            unjudged[name] = why
        if why == "null" and verdict:
            abstained[name] = verdict
        elif not why and verdict:
            verdicts[name] = verdict
    for name in _mentioned(regions, text, verdicts):
        del verdicts[name]
        unjudged[name] = "unreadable"
    hits = {name: verdict.hit for name, verdict in verdicts.items() if verdict.hit is not None}
    for name in contradicted(spoken, hits, book):
        del verdicts[name]
        unjudged[name] = "conflict"
    return Parsed(verdicts, unjudged, abstained, tuple(_warnings(regions, void)))


def _with_nameless(region: Region, book: IdBook) -> Region:
    """In a block of one row an answer without id is that row's, if it is the whole reply or the only fenced block."""
    if len(book.order) != 1 or all(row.ids for row in region.rows):
        return region
    counts = region.alone and len(region.rows) == 1
    ids = tuple(book.order)
    rows = (row if row.ids else replace(row, ids=ids, doubtful=row.doubtful or not counts) for row in region.rows)
    return replace(region, rows=tuple(rows))


def _decide(name: str, found: Sequence[tuple[Region, Row]]) -> tuple[str, Verdict | None]:
    """Why the row is unjudged ("" when it is judged), and its verdict or its abstention."""
    certain = [(region, row) for region, row in found if not (region.quoted or region.uncertain or row.doubtful)]
    if not certain:
        return "quoted" if found else "missing", None
    answers = [row.answer for _, row in found]
    levels = {answer.level for answer in answers} - {None}
    same = len({(answer.state, answer.hit) for answer in answers}) == 1 and len(levels) <= 1
    state = answers[0].state
    if not same or state == "conflict" or any(len(row.ids) > 1 for _, row in found):
        return "conflict", None
    if state in {"unreadable", "silent"}:
        return "unreadable", None
    region, row = min(certain, key=lambda pair: (pair[1].answer.level is None, _TRUST.index(pair[0].level)))
    answer = row.answer
    verdict = Verdict(
        id=name,
        hit=answer.hit,
        level=answer.level,
        reason=answer.reason,
        evidence=answer.evidence,
        spelled=answer.spelled,
        boolean=answer.boolean,
        recovered_by=f"{region.level}+repair" if row.mended else region.level,
    )
    return ("null" if state == "null" else ""), verdict


def _why_cut(region: Region, text: str) -> str:
    return "truncated" if region.end == len(text) else "unreadable"


def _voided(regions: Sequence[Region], text: str, book: IdBook) -> dict[str, str]:
    """The ids of answers that an unfinished or broken one follows, and why: it may have been about to say otherwise.

    Not those in the same container.
    """
    void: dict[str, str] = {}
    standing: dict[int, set[str]] = {}
    stream, unfinished = _stream(regions, text, book)
    for region in regions:
        names = {name for row in region.rows for name in row.ids}
        last = region is regions[-1]
        silent = any(row.answer.state == "silent" for row in region.rows)
        if not region.sound or (last and (unfinished or silent)):
            for group in standing.keys() - {region.group, *(stream if last else ())}:
                void |= dict.fromkeys(standing.pop(group) - (names if region.sound else set()), _why_cut(region, text))
        standing.setdefault(region.group, set()).update(names)
    return void


def _stream(regions: Sequence[Region], text: str, book: IdBook) -> tuple[set[int], bool]:
    """The groups of the rows that a reply ends with, one after another with nothing between (NDJSON, XML, a table); and
    whether rows may be missing behind the last, for nothing says that a stream is over.

    Out of the block's order they are a stream only if the reply holds nothing else or they answer the whole block:
    otherwise a quoted row that stands before the answer may be among them.
    """
    run: list[Region] = []
    for region in reversed(regions):
        row = region.lone and len(region.ids) == 1
        alike = bool(run) and row and run[-1].lone and region.kind == run[-1].kind
        joined = not run or (alike and _BETWEEN.fullmatch(text, region.end, run[-1].start))
        if region.quoted or not joined or not (row or region.kind == "table"):
            break
        run.append(region)
    if not run:
        return set(), False
    groups = {region.group for region in run}
    names = [name for region in reversed(run) for name in region.ids]
    falls = [n for n, (a, b) in enumerate(pairwise(names), start=1) if book.order[a] >= book.order[b]]
    if falls and all(region.sound for region in run):
        answered = {name for region in run for row in region.rows for name in row.ids}
        if answered == book.order.keys() or _BLANK.fullmatch(text, 0, run[-1].start):
            return groups, False
    tail = names[falls[-1] if falls else 0 :]
    at_end = bool(tail) and _BLANK.fullmatch(text, regions[-1].end) is not None
    missing = at_end and tail == list(book.order)[: len(tail)] and len(tail) < len(book.order)
    return set() if falls else groups, missing


def _repeats(regions: Sequence[Region], text: str) -> bool:
    """Whether the reply holds nothing but an answer and, cut off, the same again. One row begins like any other."""
    if len(regions) < 2:
        return False
    before, last = regions[-2:]
    if before.lone and not last.ids:
        return False
    gaps = [(0, regions[0].start), *((a.end, b.start) for a, b in pairwise(regions))]
    whole, cut = text[before.start : before.end], text[last.start : last.end].rstrip()
    sound = all(region.sound for region in regions[:-1])
    return sound and whole.startswith(cut) and all(_BLANK.fullmatch(text, *gap) for gap in gaps)


def _begun_again(regions: Sequence[Region], found: dict[str, list[tuple[Region, Row]]], text: str) -> dict[str, str]:
    """The ids whose row stands whole and then begins once more, other than in the same words; and why it breaks off."""
    again: dict[str, str] = {}
    for region in regions:
        for cut in region.cuts:
            begun = text[cut.start : cut.end].rstrip()
            for name in set(cut.ids) - again.keys():
                spans = [(row.start, row.end) for _, row in found[name] if row.start < cut.start]
                if not all(start >= 0 and text.startswith(begun, start, end) for start, end in spans):
                    again[name] = _why_cut(region, text)
    return again


def _mentioned(regions: Sequence[Region], text: str, names: Iterable[str]) -> set[str]:
    """The ids that stand, marked off as a value, in text that could not be read: it may say otherwise of them."""
    doubts = [region.doubt_from for region in regions if region.doubt_from is not None]
    if not doubts:
        return set()
    as_value = rf"(?:^|[{_MARKS}>])[ \t]*+{{}}[ \t]*+[{_MARKS}<]"
    patterns = {name: re.compile(as_value.format(re.escape(name)), re.IGNORECASE | re.MULTILINE) for name in names}
    return {name for name, pattern in patterns.items() if pattern.search(text, min(doubts))}


def _warnings(regions: Sequence[Region], void: Iterable[str]) -> Iterator[str]:
    for region in regions:
        for cut in region.cuts:
            yield f"{', '.join(cut.ids) or 'a row'}: breaks off and does not count"
        for row in region.rows:
            if row.mended:
                yield f"{', '.join(row.ids)}: a quote is not escaped; json_repair read the row"
            elif region.quoted or region.uncertain or row.doubtful:
                yield f"{', '.join(row.ids) or 'a row without id'}: quoted, an example, or behind broken text"
    for name in void:
        yield f"{name}: an unfinished or broken answer follows"
