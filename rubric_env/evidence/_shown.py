"""The addresses that one source has for a judge: its labels, and what they say of the numbers between them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rubric_env.evidence._extract import Extract
from rubric_env.evidence._fold import fold

SHEETS = frozenset({"xlsx", "xlsb", "ods", "xls"})
TABLES = frozenset({"csv", "tsv"})
PAGED = frozenset({"pdf", "docx", "doc", "odt", "html", "unknown"})
"""Kinds that have pages; of those that are not counted somebody who opens the file may know better than its text."""

_DENSE = frozenset({"¶", "message"})
"""Numbered without gaps: any other number between two shown ones may be a blank line or an empty slide."""

_MOST_ROWS = 1000
"""Rows of one cited range that are looked at."""

_LABEL = re.compile(r"(¶|l(?=\d)|p(?=\d)|[a-z]+ )(\d+)(?:/([a-z][a-z ]*?) (\d+))?(?![\w.])")
_PLACE = re.compile(r"([a-z]{1,3})(\d{1,7})(?::([a-z]{1,3})(\d{1,7}))?(?=/|$)")
_STEP = re.compile(r"\.[\w-]+|\[(\d+)\]|\[\"(?:[^\"\\]|\\.)*\"\]")
_SPAN = re.compile(r"(.*)\[(\d+)\.\.(\d+)\]")
_MEMBER = re.compile(r"[^!]*\.[a-z0-9]{1,12}(?=!)")


class Cells:
    """A range of cells, columns and rows counted from 1: from `place`, `b2` or `b2:c9`."""

    __slots__ = ("bottom", "left", "right", "top")

    def __init__(self, match: re.Match[str]) -> None:
        columns = sorted((_column(match[1]), _column(match[3] or match[1])))
        rows = sorted((int(match[2]), int(match[4] or match[2])))
        self.left, self.right = columns
        self.top, self.bottom = rows

    @classmethod
    def of(cls, place: str) -> Cells | None:
        """None for what is no range of cells."""
        match = _PLACE.match(place)
        return cls(match) if match else None


@dataclass(frozen=True, eq=False)
class Shown:
    """`labels` are folded and in order; before the one at `gap` others were cut. `counts` says how many slides (as
    `slide`) or pages (as `p`) the file has, `sheets` which sheets. It has more than it shows when it is `cut`, and may
    have anything when it is `doubtful`.
    """

    name: str
    kind: str
    labels: tuple[str, ...] = ()
    gap: int | None = None
    cut: bool = False
    doubtful: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    sheets: tuple[str, ...] = ()

    def numbers(self, word: str) -> bool:
        """Whether it numbers anything by `word`: `slide`, `p` for pages, `¶`, `row`, `l` for lines."""
        return word in self.counts or word in self._numbers

    def has(self, word: str, number: int) -> bool:
        """Whether there is one of that number."""
        if (count := self.counts.get(word)) is not None:
            return 1 <= number <= count
        found = self._numbers.get(word)
        if self.doubtful or not found:
            return self.doubtful or (word == "p" and self.kind in PAGED)
        if number in found or word in _DENSE:
            return number in found
        first, last = self._gaps.get(word, (0, 0))
        return 1 <= number <= max(found) and not first < number < last

    def has_part(self, word: str, number: int, part: str, part_number: int) -> bool:
        """The same for `slide 3/shape 7`, where `slide 3` is there."""
        first, last = self._gaps.get(word, (0, -1))
        if (word, part) not in self._most or number not in self._numbers.get(word, ()) or first <= number <= last:
            return True
        return part_number <= self._most[word, part].get(number, 0)

    def has_path(self, path: str) -> bool:
        """Whether a JSON path leads to a value that is shown, into one, or to one whose parts are."""
        spans, values, parents = self._paths
        at = "$"
        for step in _STEP.finditer(path, 1):
            if at in values or (step[1] and any(first <= int(step[1]) <= last for first, last in spans.get(at, ()))):
                return True
            at += step.group()
        return at in values or at in parents

    def has_cells(self, sheet: str | None, cells: Cells) -> bool:
        """Whether a cell of the range is shown, or in a row that was cut; of any sheet for None."""
        if self.kind in TABLES:
            return self.has("row", cells.top)
        if not self.rows and (self.doubtful or not self.sheets):
            return True
        names = self.rows if sheet is None else [sheet]
        if any(name in self.rows and self._meets(name, cells) for name in names):
            return True
        row_shown = any(cells.top in self.rows.get(name, ()) for name in names)
        return self.cut and not row_shown and (sheet is None or not self.sheets or sheet in self.sheets)

    @cached_property
    def rows(self) -> Mapping[str, dict[int, tuple[int, int]]]:
        """By sheet, the rows that are shown with their first and last column."""
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for label in self.labels if self.kind in SHEETS else ():
            sheet, mark, place = label.rpartition("!")
            if not mark:
                continue
            rows = found.setdefault(sheet, {})
            if cells := Cells.of(place):
                for row in (cells.top, cells.bottom):
                    left, right = rows.get(row, (cells.left, cells.right))
                    rows[row] = min(left, cells.left), max(right, cells.right)
        return found

    @property
    def may_have_sheets(self) -> bool:
        """Whether it may have sheets that are not known."""
        return not self.sheets and (self.doubtful or self.cut or not self.rows)

    def _meets(self, sheet: str, cells: Cells) -> bool:
        numbers = self._row_numbers[sheet]
        inside = numbers[bisect_left(numbers, cells.top) : bisect_right(numbers, cells.bottom)]
        if len(inside) > _MOST_ROWS:
            return True  # nobody goes on looking for a column in thousands of rows
        spans = (self.rows[sheet][row] for row in inside)
        return any(left <= cells.right and cells.left <= right for left, right in spans)

    @cached_property
    def _row_numbers(self) -> Mapping[str, list[int]]:
        return {sheet: sorted(rows) for sheet, rows in self.rows.items()}

    @cached_property
    def _numbered(self) -> list[re.Match[str] | None]:
        return [_LABEL.match(label) for label in self.labels]

    @cached_property
    def _numbers(self) -> Mapping[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for match in filter(None, self._numbered):
            found.setdefault(match[1].strip(), set()).add(int(match[2]))
        return {word: frozenset(numbers) for word, numbers in found.items()}

    @cached_property
    def _gaps(self) -> Mapping[str, tuple[int, int]]:
        """By word, the last number before what was cut and the first one after it."""
        if self.gap is None:
            return {}
        before = {match[1].strip(): int(match[2]) for match in filter(None, self._numbered[: self.gap])}
        after = {match[1].strip(): int(match[2]) for match in filter(None, reversed(self._numbered[self.gap :]))}
        return {
            word: (before.get(word, 0), after.get(word, max(numbers) + 1)) for word, numbers in self._numbers.items()
        }

    @cached_property
    def _most(self) -> Mapping[tuple[str, str], dict[int, int]]:
        """The highest number of each kind of part, by what it is a part of."""
        found: dict[tuple[str, str], dict[int, int]] = {("slide", "shape"): {}}
        for match in filter(None, self._numbered):
            if match[3]:
                parts = found.setdefault((match[1].strip(), match[3]), {})
                parts[int(match[2])] = max(parts.get(int(match[2]), 0), int(match[4]))
        return found

    @cached_property
    def _paths(self) -> tuple[dict[str, list[tuple[int, int]]], frozenset[str], frozenset[str]]:
        """Spans of arrays by their array, values, and all that leads to a value."""
        spans: dict[str, list[tuple[int, int]]] = {}
        values, parents = set(), set()
        for label in self.labels:
            if not label.startswith("$"):
                continue
            if span := _SPAN.fullmatch(label):
                spans.setdefault(span[1], []).append((int(span[2]), int(span[3])))
                parents.add(span[1])
            else:
                values.add(label)
            at = "$"
            for step in _STEP.finditer(label, 1):
                parents.add(at)
                at += step.group()
        return spans, frozenset(values), frozenset(parents)


def addresses(extract: Extract, facts: Mapping[str, Any], seen: Iterable[str] = ()) -> Iterator[Shown]:
    """What an extract shows, and for a zip file what each of its members does. `seen` are labels of pictures."""
    head, tail = ([fold(unit.label) for unit in units] for units in (extract.head, extract.tail))
    labels = (*head, *tail, *map(fold, seen))
    yield Shown(
        extract.name,
        extract.kind,
        labels,
        gap=len(head) if extract.omitted else None,
        cut=extract.ours,
        doubtful=extract.ours and not labels,
        counts={word: facts[name] for word, name in (("slide", "slides"), ("p", "pages")) if facts.get(name)},
        sheets=tuple(map(fold, facts.get("sheets", ()))),
    )
    if extract.kind == "zip":
        listed = {fold(unit.label) for unit in extract.units if unit.mark == "listed"}
        inside: dict[str, list[str]] = {member: [] for member in listed}
        for label in labels:
            if member := _member(label, listed):
                inside.setdefault(member, []).append(label[len(member) + 1 :])
        for member, found in inside.items():
            name, may_have_more = f"{extract.name}!{member}", extract.ours or not found
            yield Shown(name, _kind_by_name(member), tuple(found), cut=extract.ours, doubtful=may_have_more)


def _member(label: str, listed: set[str]) -> str:
    """The member that a label of a zip file begins with: the longest that is listed, else what looks like a file."""
    ends = [match.start() for match in re.finditer("!", label)]
    known = [label[:end] for end in ends if label[:end] in listed]
    if known:
        return known[-1]
    match = _MEMBER.match(label)
    return match.group() if match else ""


def _kind_by_name(name: str) -> str:
    suffix = name.rpartition(".")[2]
    if suffix[:3] in ("ppt", "pps", "pot"):
        return "pptx"
    if suffix[:3] == "xls":
        return "xlsx"
    return "docx" if suffix[:3] in ("doc", "dot") else suffix


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 96
    return number
