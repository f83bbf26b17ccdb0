"""Changes of a workbook, at the addresses that its reader gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openpyxl import load_workbook
from openpyxl.cell import MergedCell
from openpyxl.cell.rich_text import CellRichText, TextBlock

from rubric_env.evidence._pptx_deck import counted
from rubric_env.evidence._zip import Archive
from rubric_env.office._package import check, settle
from rubric_env.office._problems import Problems, Refused
from rubric_env.office._xlsx_cells import CELLS, area, check_references, formula, put, shape
from rubric_env.office._xlsx_charts import add_chart
from rubric_env.office._xlsx_make import NAME, add_sheet, dress, fill
from rubric_env.office._xlsx_shift import Shift

if TYPE_CHECKING:
    from openpyxl.cell import Cell
    from openpyxl.workbook import Workbook

    from rubric_env.office._run import Task

_MAIN = "xl/workbook.xml"
_LOST = (
    ("xl/threadedComments/", "comment threads"),
    ("xl/slicers/", "slicers"),
    ("xl/timelines/", "timelines"),
    ("xl/ctrlProps/", "form controls"),
    ("xl/activeX/", "controls"),
    ("xl/model/", "a data model"),
    ("xl/vbaProject.bin", "macros"),
    ("xl/richData/", "rich data types"),
    ("xl/diagrams/", "diagrams"),
    ("xl/charts/chartEx", "charts of a newer kind"),
)
_SHAPES = re.compile(rb"<(?:\w+:)?(?:sp|grpSp|cxnSp)\b")


def edit(task: Task) -> str:
    """Raises Refused with everything that is wrong, and writes nothing then."""
    source = Path(task.source)
    check(source, _MAIN)
    if lost := _lost(source):
        raise Refused(
            f"nothing was written: the workbook holds {', '.join(lost)}, which this tool would lose; "
            "make a new workbook beside it"
        )
    book = load_workbook(source, rich_text=True)
    problems = Problems()
    edits = _Edits(book, problems)
    for number, one in enumerate(task.arguments["edits"], 1):
        with problems.of(f"edit {number}"):
            edits.apply(one)
    edits.move()
    check_references(book, edits.written, problems)
    problems.raise_any()
    book.save(task.target)
    settle(Path(task.target), source)
    return counted(edits.changes, "changes") + ("; rows or columns moved, so read_file again" if edits.shifts else "")


def _lost(source: Path) -> list[str]:
    archive = Archive(source)
    names = [info.filename for info in archive.members]
    found = [what for start, what in _LOST if any(name.startswith(start) for name in names)]
    drawings = [name for name in names if re.fullmatch(r"xl/drawings/drawing\d+\.xml", name)]
    return found + (["text boxes or shapes"] if any(_SHAPES.search(archive.read(name)) for name in drawings) else [])


class _Edits:
    """Applies edits in their order; rows and columns move when all are applied, so that addresses stay as they were."""

    def __init__(self, book: Workbook, problems: Problems) -> None:
        self._book = book
        self._problems = problems
        self.changes = 0
        self.written: list[tuple[str, Cell]] = []
        self.shifts: list[tuple[Shift, list[list[Any]]]] = []

    def apply(self, edit: dict[str, Any]) -> None:
        """Raises Refused."""
        given = [name for name in ("find", "values", "format", "chart", "sheet") if edit[name] is not None]
        if edit["find"] is not None:
            self._find(edit)
            return
        sheet, cells = self._place(edit["at"])
        match edit["action"]:
            case "replace" if not given:
                self._rename(sheet, cells, edit)
            case "replace":
                self._replace(sheet, cells, edit)
            case "delete":
                self._delete(sheet, cells)
            case action:
                self._insert(sheet, cells, edit, before=action == "insert_before")
        self.changes += 1

    def move(self) -> None:
        """Insert and delete the rows and columns, from the end to the start, and then write what is new in them."""
        for shift, _ in sorted(self.shifts, key=lambda entry: -entry[0].at):
            with self._problems.of(f"{shift.sheet.title}, {shift.axis} {shift.at}"):
                shift.apply(self._book)
        if self._problems:
            return
        for shift, rows in self.shifts:
            before = sum(other.count for other, _ in self.shifts if other.comes_before(shift))
            for number, row in enumerate(rows):
                self._write(shift.sheet, shift.cell(before + number, 0), row, along=shift.axis)

    def _place(self, at: str | None) -> tuple[Any, str]:
        """The sheet, and the range in it or nothing."""
        if not at:
            raise Refused("it needs `at`: Sheet1!B7, Sheet1!A2:D9, Sheet1!5:7, Sheet1!C:D or Sheet1")
        wanted = at.strip().strip("[]")
        by_name = {name.casefold(): name for name in self._book.sheetnames}
        for name, cells in ((wanted, ""), (wanted.rpartition("!")[0], wanted.rpartition("!")[2])):
            known = by_name.get(name.strip("'").replace("''", "'").casefold())
            if known is not None:
                sheet = self._book[known]
                if not hasattr(sheet, "iter_rows"):
                    raise Refused(f"{known!r} is a sheet of nothing but a chart")
                return sheet, cells
        raise Refused(f"{at!r} names no sheet of this workbook; there are {', '.join(self._book.sheetnames[:20])}")

    def _find(self, edit: dict[str, Any]) -> None:
        if edit["action"] != "replace":
            raise Refused("`find` goes with the action replace")
        find, new = edit["find"], edit["text"] or ""
        if not find:
            raise Refused("`find` is empty")
        if edit["at"]:
            sheet, cells = self._place(edit["at"])
            left, top, right, bottom = area(sheet, cells) if cells else (1, 1, sheet.max_column, sheet.max_row)
            rows = [sheet.iter_rows(top, bottom, left, right)]
        else:
            rows = [sheet.iter_rows() for sheet in self._book.worksheets]
        count = 0
        for cell in (cell for some in rows for row in some for cell in row):
            count += self._replace_in(cell, find, new)
        if not count:
            raise Refused(f"{find[:80]!r} does not occur in {edit['at'] or 'the texts and formulas of the workbook'}")
        self.changes += count

    def _replace_in(self, cell: Any, find: str, new: str) -> int:
        value = cell.value
        if isinstance(value, CellRichText):
            count = 0
            for place, part in enumerate(value):
                text = part.text if isinstance(part, TextBlock) else part
                count += text.count(find)
                if isinstance(part, TextBlock):
                    part.text = text.replace(find, new)
                else:
                    value[place] = text.replace(find, new)
            return count
        if not isinstance(value, str) or find not in value:
            return 0
        if cell.data_type == "f":
            cell.value = formula(value.replace(find, new))
            self.written.append((f"{cell.parent.title}!{cell.coordinate}", cell))
        else:
            kind = cell.data_type
            cell.value = value.replace(find, new)
            cell.data_type = kind
        return value.count(find)

    def _rename(self, sheet: Any, cells: str, edit: dict[str, Any]) -> None:
        if cells or not edit["text"]:
            raise Refused("replace needs `values`, `format` or `chart`; with a whole sheet `text` is its new name")
        old, new = sheet.title, edit["text"]
        if NAME.fullmatch(new) is None or new.casefold() in {one.casefold() for one in self._book.sheetnames} - {
            old.casefold()
        }:
            raise Refused(f"{new!r} cannot be the name of a sheet here")
        Shift.rename(self._book, old, new)
        sheet.title = new

    def _replace(self, sheet: Any, cells: str, edit: dict[str, Any]) -> None:
        if edit["sheet"] is not None:
            raise Refused("`sheet` goes with insert_before or insert_after")
        if edit["values"] is not None:
            left, top, _, _ = area(sheet, cells or "A1")
            if sum(map(len, edit["values"])) > CELLS:
                raise Refused(f"more than {CELLS:,} cells")
            for number, row in enumerate(edit["values"]):
                self._write(sheet, (top + number, left), row)
        if edit["format"] is not None:
            shape(sheet, edit["format"])
        if edit["chart"] is not None:
            add_chart(sheet, edit["chart"])

    def _write(self, sheet: Any, start: tuple[int, int], row: list[Any], *, along: str = "row") -> None:
        for number, value in enumerate(row):
            down, right = (0, number) if along == "row" else (number, 0)
            cell = sheet.cell(start[0] + down, start[1] + right)
            place = f"{sheet.title}!{cell.coordinate}"
            if isinstance(cell, MergedCell):
                self._problems.add(place, "a merged cell covers it; write to the first cell of the merged range")
                continue
            with self._problems.of(place):
                put(cell, value)
                self.written.append((place, cell))

    def _delete(self, sheet: Any, cells: str) -> None:
        if not cells:
            if len(self._book.sheetnames) == 1:
                raise Refused("a workbook has at least one sheet")
            users = Shift.users(self._book, sheet)
            if users:
                raise Refused(f"{', '.join(users[:5])} use the sheet {sheet.title!r}: change them first")
            self._book.remove(sheet)
            return
        left, top, right, bottom = area(sheet, cells)
        if re.fullmatch(r"\$?\d+(:\$?\d+)?", cells):
            self.shifts.append((Shift(sheet, "row", top, top - bottom - 1), []))
        elif re.fullmatch(r"\$?[A-Za-z]+(:\$?[A-Za-z]+)?", cells):
            self.shifts.append((Shift(sheet, "column", left, left - right - 1), []))
        else:
            for row in sheet.iter_rows(top, bottom, left, right):
                for cell in row:
                    if not isinstance(cell, MergedCell):
                        cell.value = None

    def _insert(self, sheet: Any, cells: str, edit: dict[str, Any], *, before: bool) -> None:
        if not cells:
            if edit["sheet"] is None:
                raise Refused("beside a whole sheet goes a `sheet`; rows go beside rows, as Sheet1!5")
            place = self._book.sheetnames.index(sheet.title) + (not before)
            made = add_sheet(self._book, edit["sheet"], place)
            self.written += fill(made, edit["sheet"], self._problems)
            dress(made, edit["sheet"], self._problems)
            return
        rows = edit["values"]
        if not rows:
            raise Refused("an insert needs `values`, the new rows (or columns, each as a list from top to bottom)")
        left, top, right, bottom = area(sheet, cells)
        if re.fullmatch(r"\$?[A-Za-z]+(:\$?[A-Za-z]+)?", cells):
            shift = Shift(sheet, "column", left if before else right + 1, len(rows))
        else:
            shift = Shift(sheet, "row", top if before else bottom + 1, len(rows))
        self.shifts.append((shift, rows))
