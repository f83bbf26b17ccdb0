"""A workbook from rows of values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openpyxl import Workbook

from rubric_env.evidence._pptx_deck import counted
from rubric_env.office._package import MADE, settle
from rubric_env.office._problems import Problems, Refused
from rubric_env.office._xlsx_cells import CELLS, check_references, fit, head, put, shape
from rubric_env.office._xlsx_charts import add_chart

if TYPE_CHECKING:
    from openpyxl.cell import Cell

    from rubric_env.office._run import Task

NAME = re.compile(r"[^\[\]:*?/\\]{1,31}")


def make(task: Task) -> str:
    """Raises Refused with everything that is wrong."""
    problems = Problems()
    book = Workbook()
    book.remove(book.active)
    sheets = task.arguments["sheets"]
    if not sheets:
        problems.add("sheets", "a workbook has at least one sheet")
    written: list[tuple[str, Cell]] = []
    named = []
    for number, sheet in enumerate(sheets, 1):
        with problems.of(f"sheet {number}"):
            named.append((sheet, add_sheet(book, sheet)))
    for sheet, made in named:
        written += fill(made, sheet, problems)
    # Charts and formulas may name sheets that come later.
    for sheet, made in named:
        dress(made, sheet, problems)
    check_references(book, written, problems)
    problems.raise_any()
    core = book.properties
    core.creator, core.created, core.modified = "", MADE, MADE
    book.save(task.target)
    settle(Path(task.target))
    formulas = sum(cell.data_type == "f" for _, cell in written)
    return f"{counted(len(sheets), 'sheets')}, {counted(len(written), 'cells')}, {formulas:,} of them formulas"


def add_sheet(book: Workbook, sheet: dict[str, Any], place: int | None = None) -> Any:
    """An empty sheet of that name. Raises Refused for a name that no sheet may have."""
    name = sheet["name"]
    if NAME.fullmatch(name) is None or name.startswith("'") or name.endswith("'"):
        raise Refused(f"name {name[:60]!r}: 1 to 31 characters, none of []:*?/\\, no ' at an end")
    if name.casefold() in {known.casefold() for known in book.sheetnames}:
        raise Refused(f"name {name!r}: there is such a sheet already")
    return book.create_sheet(name, place)


def fill(made: Any, sheet: dict[str, Any], problems: Problems) -> list[tuple[str, Cell]]:
    """The values. Returns the cells that were written, with their addresses."""
    rows = sheet["rows"]
    if sum(map(len, rows)) > CELLS:
        problems.add(made.title, f"more than {CELLS:,} cells")
        return []
    written = []
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            if value is None:
                continue
            cell = made.cell(number, column)
            place = f"{made.title}!{cell.coordinate}"
            with problems.of(place):
                put(cell, value)
                written.append((place, cell))
    return written


def dress(made: Any, sheet: dict[str, Any], problems: Problems) -> None:
    """Heading, widths, formats, charts, and a page that fits the columns."""
    rows = sheet["rows"]
    columns = max(map(len, rows), default=0)
    wanted = 1 if sheet["header_rows"] is None else sheet["header_rows"]
    if not 0 <= wanted <= 20:
        problems.add(made.title, f"header_rows is from 0 to 20, not {wanted}")
        return
    # A heading without rows below it is a heading all the same, but nothing needs to be kept in sight.
    fit(made, rows[: min(len(rows), 2000)])
    head(made, min(wanted, len(rows)), columns)
    for look in sheet["formats"] or ():
        with problems.of(f"{made.title}, format of {look['range']}"):
            shape(made, look)
    for number, chart in enumerate(sheet["charts"] or (), 1):
        with problems.of(f"{made.title}, chart {number}"):
            add_chart(made, chart)
    made.page_setup.orientation = "landscape" if columns > 6 or sheet["charts"] else "portrait"
    made.page_setup.paperSize = made.PAPERSIZE_A4
    made.page_setup.fitToWidth, made.page_setup.fitToHeight = 1, 0
    made.sheet_properties.pageSetUpPr.fitToPage = True
