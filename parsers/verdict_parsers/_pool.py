"""What all candidates together say of each row: equal answers are one, any conflict makes the row unjudged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from verdict_parsers._ids import IdBook
from verdict_parsers._region import Region
from verdict_parsers._rows import Row
from verdict_parsers._types import Parsed, Verdict

_TRUST = ("whole", "fence", "scan", "rows")
_BLANK = re.compile(r"[\s`~,]*+(?:json\w*+)?\s*+", re.IGNORECASE)


def pool(regions: Sequence[Region], text: str, book: IdBook) -> Parsed:
    """Decide every id of the block."""
    regions = [_with_nameless(region, book) for region in regions]
    found: dict[str, list[tuple[Region, Row]]] = {name: [] for name in book.order}
    for region in regions:
        for row in region.rows:
            for name in row.ids:
                found[name].append((region, row))
    repeats = _repeats(regions, text)
    void = set() if repeats else _voided(regions, text, book) | _begun_again(regions, found, text)
    cut = {name for region in regions for cut in region.cuts for name in cut.ids}
    verdicts: dict[str, Verdict] = {}
    unjudged: dict[str, str] = {}
    abstained: dict[str, Verdict] = {}
    for name, rows in found.items():
        why, verdict = _decide(name, rows)
        if name in void or (why == "missing" and name in cut):
            unjudged[name] = "truncated"
        elif why:
            unjudged[name] = why
        if name not in unjudged and verdict:
            verdicts[name] = verdict
        elif unjudged[name] == "null" and verdict:
            abstained[name] = verdict
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
    certain = [(region, row) for region, row in found if not (region.quoted or row.doubtful)]
    if not certain:
        return "quoted" if found else "missing", None
    answers = [row.answer for _, row in found]
    levels = {answer.level for answer in answers} - {None}
    same = len({(answer.state, answer.hit) for answer in answers}) == 1 and len(levels) <= 1
    state = answers[0].state
    if not same or state == "conflict" or any(len(row.ids) > 1 for _, row in found):
        return "conflict", None
    if state == "unreadable":
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


def _voided(regions: Sequence[Region], text: str, book: IdBook) -> set[str]:
    """The ids of answers that an unfinished one follows: it may have been about to say otherwise.

    Not those in the same container.
    """
    void: set[str] = set()
    standing: dict[int, set[str]] = {}
    for n, region in enumerate(regions):
        if not region.sound:
            kept = {region.group, *(_stream(regions, text, book) if n == len(regions) - 1 else ())}
            for group in standing.keys() - kept:
                void |= standing.pop(group)
        standing.setdefault(region.group, set()).update(name for row in region.rows for name in row.ids)
    return void


def _stream(regions: Sequence[Region], text: str, book: IdBook) -> list[int]:
    """The groups that make one container with the last, unfinished row: rows one after another (NDJSON), nothing between,
    in the order of the block. A quoted row before the answer would stand out of order, or name the same id."""
    last = regions[-1]
    names = [name for cut in last.cuts for name in cut.ids]
    groups: list[int] = []
    if not last.lone or len(names) != 1:
        return groups
    order, after = book.order[names[0]], last
    for region in reversed(regions[:-1]):
        if region.kind != last.kind or not region.lone or text[region.end : after.start].strip(", \t\r\n"):
            break
        places = [book.order[name] for row in region.rows for name in row.ids]
        if len(places) != 1 or places[0] >= order:
            return []
        order, after = places[0], region
        groups.append(region.group)
    return groups


def _repeats(regions: Sequence[Region], text: str) -> bool:
    """Whether the reply holds nothing but an answer and, cut off behind a whole row at least, the same again."""
    if len(regions) < 2 or not regions[-1].rows:
        return False
    gaps = [text[: regions[0].start], *(text[a.end : b.start] for a, b in zip(regions, regions[1:], strict=False))]
    before, last = regions[-2:]
    whole, cut = text[before.start : before.end], text[last.start : last.end].rstrip()
    sound = all(region.sound for region in regions[:-1])
    return sound and whole.startswith(cut) and all(_BLANK.fullmatch(gap) for gap in gaps)


def _begun_again(
    regions: Sequence[Region], found: dict[str, list[tuple[Region, Row]]], text: str
) -> set[str]:
    """The ids whose row stands whole and then begins once more, unless it begins with the same words."""
    again: set[str] = set()
    for region in regions:
        for cut in region.cuts:
            begun = text[cut.start : cut.end].rstrip()
            for name in cut.ids:
                earlier = [row for _, row in found[name] if row.start < cut.start]
                if not all(row.start >= 0 and text[row.start : row.end].startswith(begun) for row in earlier):
                    again.add(name)
    return again


def _warnings(regions: Sequence[Region], void: set[str]) -> Iterator[str]:
    for region in regions:
        for cut in region.cuts:
            yield f"{', '.join(cut.ids) or 'a row'}: breaks off and does not count"
        for row in region.rows:
            if row.mended:
                yield f"{', '.join(row.ids)}: a quote is not escaped; json_repair read the row"
            elif region.quoted or row.doubtful:
                yield f"{', '.join(row.ids) or 'a row without id'}: quoted, an example, or behind broken text"
    if void:
        yield f"{', '.join(sorted(void))}: an unfinished answer follows"
