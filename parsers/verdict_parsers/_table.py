"""Markdown tables: one row a line, one field a column. What a cell quotes is never an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from verdict_parsers._ids import ID_KEYS, NAME_KEYS, IdBook
from verdict_parsers._limits import MAX_REGIONS, TooMuch
from verdict_parsers._rows import Cut, Row, row_of
from verdict_parsers._words import VERDICT_KEYS, Answer, field_value, squash

_DASHES = r"[ \t]*+:?-++:?[ \t]*+"
_SEPARATOR = re.compile(rf"^[ \t]*+\|?{_DASHES}(?:\|{_DASHES})*+\|?[ \t\r]*+$", re.MULTILINE)
_PIPE = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"[^\n]*+\n|[^\n]++")


@dataclass(frozen=True, slots=True)
class Table:
    """The lines of a table: its header, and the body that starts at `body`."""

    start: int
    body: int
    end: int


def tables(flat: str) -> Iterator[Table]:
    """Every header with a line of dashes below it, and the lines with a pipe that follow."""
    position = 0
    while separator := _SEPARATOR.search(flat, position):
        start = flat.rfind("\n", 0, max(separator.start() - 1, 0)) + 1
        position = body = min(separator.end() + 1, len(flat))
        if "|" in separator[0] and "|" in flat[start : separator.start()]:
            while (line := _LINE.match(flat, position)) and "|" in line[0]:
                position = line.end()
            yield Table(start, body, position)


def table_rows(text: str, flat: str, table: Table, book: IdBook) -> tuple[list[Row], list[Cut], bool]:
    """The rows, the row that breaks off at the end of the text, and whether the table is finished.

    A line whose cells do not match the header in number is unreadable: a pipe in a text has shifted them.
    """
    header_end = flat.index("\n", table.start)
    header = _cells(text, flat, table.start, header_end)
    keys = {squash(cell) for cell in header}
    if not keys & (ID_KEYS | NAME_KEYS) or not keys & (VERDICT_KEYS | {"level"}):
        return [], [], True
    closes = flat[table.start : header_end].rstrip().endswith("|")
    rows: list[Row] = []
    cuts: list[Cut] = []
    for number, line in enumerate(_LINE.finditer(flat, table.body, table.end)):
        if number == MAX_REGIONS:
            raise TooMuch("table lines")
        start, end = line.span()
        cells = _cells(text, flat, start, end)
        fields = [(key, field_value(squash(key), cell)) for key, cell in zip(header, cells, strict=False)]
        complete = len(cells) == len(header)
        ends = line[0].endswith("\n") or (complete and closes and line[0].rstrip().endswith("|"))
        if end == len(flat) and not ends:
            cuts.append(Cut(book.named(fields) or (), start, end))
        elif complete:
            if row := row_of(fields, book, start, end):
                rows.append(row)
        elif ids := book.named(fields):
            rows.append(Row(ids, Answer("unreadable"), start, end))
    return rows, cuts, not cuts and table.body < table.end


def _cells(text: str, flat: str, start: int, end: int) -> list[str]:
    bounds = [start - 1, *(pipe.start() for pipe in _PIPE.finditer(flat, start, end)), end]
    cells = [text[a + 1 : b].strip() for a, b in pairwise(bounds)]
    cells = cells[not cells[0] : len(cells) - (len(cells) > 1 and not cells[-1])]
    return [cell.replace("\\|", "|").strip("*`").strip() for cell in cells]
