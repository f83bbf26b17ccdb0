"""Markdown tables: one row a line, one field a column. What a cell quotes is never an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from verdict_parsers._ids import ID_KEYS, NAME_KEYS, IdBook
from verdict_parsers._limits import MAX_REGIONS, TooMuch
from verdict_parsers._rows import Cut, Row, row_of
from verdict_parsers._words import VERDICT_KEYS, Answer, field_value, hit_of, spellings, squash

_DASHES = r"[ \t]*+:?-++:?[ \t]*+"
_SEPARATOR = re.compile(rf"^[ \t]*+\|?{_DASHES}(?:\|{_DASHES})*+\|?[ \t\r]*+$", re.MULTILINE)
_PIPE = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"[^\n]*+\n|[^\n]++")
_OTHER = re.compile(r"[ \t]*+(?:[{\[<]|`{3}|~{3})")
"""What a line starts with that is no line of a table, whatever pipes it holds, unless a cell goes on in it."""
_BLANKS = r"[ \t\r*`]*+"
_SAYS = re.compile(rf"^[^\n]*\|{_BLANKS}(?:{spellings()}){_BLANKS}(?:\||$)[^\n]*+", re.MULTILINE | re.IGNORECASE)
"""A line with a cell that holds a verdict and nothing else."""
_LONGEST = 2_000
"""Of a header, in characters."""


@dataclass(frozen=True, slots=True)
class Table:
    """The lines of a table: its header, and the body that starts at `body`."""

    start: int
    body: int
    end: int


def tables(flat: str) -> Iterator[Table]:
    """Every header with a line of dashes below it, and the lines with a pipe that follow, up to another header."""
    position = 0
    while separator := _SEPARATOR.search(flat, position):
        start = flat.rfind("\n", 0, max(separator.start() - 1, 0)) + 1
        position = body = min(separator.end() + 1, len(flat))
        if "|" in separator[0] and "|" in flat[start : separator.start()] and not _SEPARATOR.match(flat, start):
            ended, closes = True, _closes(flat[start : separator.start()])
            while (line := _LINE.match(flat, position)) and _goes_on(flat, line, ended):
                position, ended = line.end(), _closes(line[0]) == closes
            yield Table(start, body, position)


def begins_table(line: str, book: IdBook) -> bool:
    """Whether a line may be the beginning of a table of verdicts, or one line of it."""
    if not _closes(line) or not line.strip("| \t\r"):
        return True
    cells = _cells(line, line, 0, min(len(line), _LONGEST))
    return any(squash(cell) in ID_KEYS | NAME_KEYS or book.match(cell) for cell in cells)


def _closes(line: str) -> bool:
    return line.rstrip().endswith("|")


def _goes_on(flat: str, line: re.Match[str], ended: bool) -> bool:
    """Whether a line belongs to the table above it; `ended`: the line before is over."""
    if "|" not in line[0] or _SEPARATOR.match(flat, line.end()):
        return False
    return not _OTHER.match(line[0]) or (_closes(line[0]) and not ended)


def table_rows(text: str, flat: str, table: Table, book: IdBook) -> tuple[list[Row], list[Cut], bool] | None:
    """The rows, the row that breaks off at the end of the text, and whether the table is finished; None when its header
    is not that of verdicts.

    A line whose cells do not match the header in number is unreadable: a pipe in a text has shifted them, or two lines
    have become one.
    """
    header_end = flat.index("\n", table.start)
    header = _cells(text, flat, table.start, header_end)
    keys = {squash(cell) for cell in header}
    if not keys & (ID_KEYS | NAME_KEYS) or not keys & (VERDICT_KEYS | {"level"}):
        return None
    closes = _closes(flat[table.start : header_end])
    rows: list[Row] = []
    cuts: list[Cut] = []
    for number, line in enumerate(_LINE.finditer(flat, table.body, table.end)):
        if number == MAX_REGIONS:
            raise TooMuch("table lines")
        start, end = line.span()
        cells = _cells(text, flat, start, end)
        fields = [(key, field_value(squash(key), cell)) for key, cell in zip(header, cells, strict=False)]
        complete = len(cells) == len(header)
        ends = line[0].endswith("\n") or (complete and closes and _closes(line[0]))
        if end == len(flat) and not ends:
            cuts.append(Cut(book.named(fields) or (), start, end))
        elif complete:
            if row := row_of(fields, book, start, end):
                rows.append(row)
        elif ids := _ids(cells, book):
            rows.append(Row(ids, Answer("unreadable"), start, end))
    return rows, cuts, not cuts and table.body < table.end


def hearsay(text: str, flat: str, start: int, end: int, book: IdBook) -> list[Row]:
    """What lines of cells without a header of verdicts say: too little for a verdict, enough to contradict one."""
    rows: list[Row] = []
    for line in _SAYS.finditer(flat, start, end):
        cells = _cells(text, flat, *line.span())
        hits = {hit for cell in cells if (hit := hit_of(cell)) is not None}
        if hits and (ids := _ids(cells, book)):
            answer = Answer("verdict", hits.pop()) if len(hits) == 1 else Answer("unreadable")
            rows.append(Row(ids, answer, *line.span(), doubtful=True))
    return rows


def _ids(cells: Iterable[str], book: IdBook) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for cell in cells if (name := book.match(cell))))


def _cells(text: str, flat: str, start: int, end: int) -> list[str]:
    bounds = [start - 1, *(pipe.start() for pipe in _PIPE.finditer(flat, start, end)), end]
    cells = [text[a + 1 : b].strip() for a, b in pairwise(bounds)]
    cells = cells[not cells[0] : len(cells) - (len(cells) > 1 and not cells[-1])]
    return [cell.replace("\\|", "|").strip("*`").strip() for cell in cells]
