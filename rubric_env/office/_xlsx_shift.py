"""Rows and columns that are inserted or deleted: everything that refers to cells behind them moves along."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from openpyxl.cell import MergedCell
from openpyxl.formatting.formatting import ConditionalFormattingList
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.utils import column_index_from_string, get_column_letter, range_boundaries
from openpyxl.worksheet.cell_range import MultiCellRange
from openpyxl.worksheet.formula import ArrayFormula

from rubric_env.office._problems import Refused
from rubric_env.office._xlsx_cells import sheets_of

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

Axis = Literal["row", "column"]

_PART = re.compile(r"(\$?)([A-Za-z]{1,3})?(\$?)(\d{1,7})?")
_GONE = "#REF!"


class Shift:
    """`count` rows or columns inserted before `at`, or, with a negative count, deleted from `at` on."""

    def __init__(self, sheet: Any, axis: Axis, at: int, count: int) -> None:
        self.sheet = sheet
        self.axis = axis
        self.at = at
        self.count = count

    def cell(self, number: int, across: int) -> tuple[int, int]:
        """Row and column of a cell in what was inserted."""
        place = self.at + number
        return (place, across + 1) if self.axis == "row" else (across + 1, place)

    def comes_before(self, other: Shift) -> bool:
        """It moves what the other inserted."""
        return self.sheet is other.sheet and self.axis == other.axis and self.at < other.at

    def apply(self, book: Workbook) -> None:
        """Raises Refused where a table would be cut."""
        sheet = self.sheet
        for table in sheet.tables.values():
            self._check_table(table)
        merged = [str(one) for one in sheet.merged_cells.ranges]
        for one in merged:
            sheet.unmerge_cells(one)
        styles = self._styles() if self.count > 0 else []
        action = {
            ("row", True): sheet.insert_rows,
            ("row", False): sheet.delete_rows,
            ("column", True): sheet.insert_cols,
            ("column", False): sheet.delete_cols,
        }[self.axis, self.count > 0]
        action(self.at, abs(self.count))
        for each in book.worksheets:
            _formulas(each, partial(self._formula, own=each is sheet))
        for name in _names(book):
            name.attr_text = self._formula(f"={name.attr_text}", False)[1:]
        self._beside()
        self._dimensions()
        for one in merged:
            if (moved := self.reference(one)) != _GONE and ":" in moved:
                sheet.merge_cells(moved)
        for number, other, style in styles:
            row, column = self.cell(number, other)
            sheet.cell(row, column)._style = copy(style)

    @staticmethod
    def rename(book: Workbook, old: str, new: str) -> None:
        """Let formulas, names and charts follow a sheet to its new name."""

        def renamed(text: str) -> str:
            return _rewritten(text, lambda sheet, cells: (new if sheet == old else sheet, cells))

        for sheet in book.worksheets:
            _formulas(sheet, renamed)
        for name in _names(book):
            name.attr_text = renamed(f"={name.attr_text}")[1:]

    @staticmethod
    def users(book: Workbook, sheet: Any) -> list[str]:
        """Cells of other sheets whose formulas name this one."""
        return [
            f"{other.title}!{cell.coordinate}"
            for other in book.worksheets
            if other is not sheet
            for row in other.iter_rows()
            for cell in row
            if cell.data_type == "f" and isinstance(cell.value, str) and sheet.title in sheets_of(cell.value)
        ]

    def reference(self, text: str) -> str:
        """A range without a sheet, moved; `#REF!` when all of it is gone."""
        start, _, end = text.partition(":")
        first, last = _PART.fullmatch(start), _PART.fullmatch(end or start)
        if first is None or last is None or not (first[2] or first[4]):
            return text
        group = 4 if self.axis == "row" else 2
        if not first[group] or not last[group]:
            return text  # whole columns know no rows
        low, high = self._moved(_index(first[group]), first=True), self._moved(_index(last[group]), first=False)
        if low > high:
            return _GONE
        moved = [_with(match, group, value) for match, value in ((first, low), (last, high))]
        return ":".join(moved) if end else moved[0]

    def _moved(self, value: int, *, first: bool) -> int:
        if value < self.at:
            return value
        if self.count > 0 or value >= self.at - self.count:
            return value + self.count
        return self.at if first else self.at - 1

    def _formula(self, text: str, own: bool) -> str:
        title = self.sheet.title
        return _rewritten(
            text,
            lambda sheet, cells: (sheet, self.reference(cells) if sheet == title or (not sheet and own) else cells),
        )

    def _check_table(self, table: Any) -> None:
        moved = self.reference(table.ref)
        left, top, right, _ = range_boundaries(table.ref)
        inside = left < self.at <= right if self.axis == "column" else False
        header = self.axis == "row" and self.count < 0 and self.at <= top < self.at - self.count
        cut = self.axis == "column" and self.count < 0 and self.at <= right and self.at - self.count > left
        if inside or header or cut or moved == _GONE:
            raise Refused(f"it would cut the table {table.displayName} ({table.ref}); its columns and heading stay")

    def _styles(self) -> list[tuple[int, int, Any]]:
        """Of the row or column before the new ones, or behind them at the start: what is inserted looks like it."""
        before = self.at - 1 if self.at > 2 or (self.at > 1 and not self.sheet.freeze_panes) else self.at
        size = self.sheet.max_column if self.axis == "row" else self.sheet.max_row
        found = []
        for other in range(1, size + 1):
            place = (before, other) if self.axis == "row" else (other, before)
            cell = self.sheet._cells.get(place)
            if cell is not None and cell.has_style and not isinstance(cell, MergedCell):
                found += [(number, other - 1, copy(cell._style)) for number in range(self.count)]
        return found

    def _beside(self) -> None:
        """What lies on the sheet without being a cell."""
        sheet = self.sheet
        rules = ConditionalFormattingList()
        for entry in sheet.conditional_formatting:
            if ranges := self._ranges(entry.sqref):
                for rule in entry.rules:
                    rule.formula = [self._formula(f"={one}", True)[1:] for one in rule.formula]
                    rules.add(ranges, rule)
        sheet.conditional_formatting = rules
        for rule in list(sheet.data_validations.dataValidation):
            ranges = self._ranges(rule.sqref)
            if not ranges:
                sheet.data_validations.dataValidation.remove(rule)
                continue
            rule.sqref = MultiCellRange(ranges)
            for name in ("formula1", "formula2"):
                if text := getattr(rule, name):
                    setattr(rule, name, self._formula(f"={text}", True)[1:])
        for table in sheet.tables.values():
            table.ref = self.reference(table.ref)
            if table.autoFilter is not None and table.autoFilter.ref:
                table.autoFilter.ref = self.reference(table.autoFilter.ref)
        if sheet.auto_filter.ref:
            sheet.auto_filter.ref = self.reference(sheet.auto_filter.ref)
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.hyperlink is not None):
            cell.hyperlink.ref = cell.coordinate
        if sheet.print_area:
            areas = [self.reference(one.rpartition("!")[2]) for one in str(sheet.print_area).split(",")]
            sheet.print_area = [one for one in areas if one != _GONE]
        for drawing in (*sheet._charts, *sheet._images):
            for name in ("_from", "to"):
                if (marker := getattr(drawing.anchor, name, None)) is not None:
                    side = "row" if self.axis == "row" else "col"
                    setattr(marker, side, self._moved(getattr(marker, side) + 1, first=True) - 1)

    def _ranges(self, ranges: Any) -> str:
        moved = [self.reference(str(one)) for one in str(ranges).split()]
        return " ".join(one for one in moved if one != _GONE)

    def _dimensions(self) -> None:
        """Heights of rows and widths of columns."""
        sheet = self.sheet
        if self.axis == "row":
            old = dict(sheet.row_dimensions)
            sheet.row_dimensions.clear()
            for number, size in old.items():
                if self._stays(number):
                    size.index = self._moved(number, first=True)
                    sheet.row_dimensions[size.index] = size
            return
        sizes = {}
        for letter, size in sheet.column_dimensions.items():
            first = size.min or column_index_from_string(letter)
            for number in range(first, min(size.max or first, first + 255) + 1):
                sizes[number] = size
        sheet.column_dimensions.clear()
        for number, size in sizes.items():
            if self._stays(number):
                moved = copy(size)
                moved.index = get_column_letter(self._moved(number, first=True))
                moved.min = moved.max = None
                sheet.column_dimensions[moved.index] = moved

    def _stays(self, number: int) -> bool:
        return self.count > 0 or not self.at <= number < self.at - self.count


def _formulas(sheet: Any, change: Callable[[str], str]) -> None:
    """Change the formulas of cells and charts of a sheet."""
    for row in sheet.iter_rows():
        for cell in row:
            if isinstance(cell.value, ArrayFormula):
                cell.value.text = change(cell.value.text)
                cell.value.ref = cell.coordinate if ":" not in cell.value.ref else change(f"={cell.value.ref}")[1:]
            elif cell.data_type == "f" and isinstance(cell.value, str):
                cell.value = change(cell.value)
    for chart in sheet._charts:
        for reference in _chart_references(chart):
            reference.f = change(f"={reference.f}")[1:]


def _chart_references(chart: Any) -> Iterator[Any]:
    for each in chart._charts:
        for series in each.series:
            for name in ("tx", "cat", "val", "xVal", "yVal", "bubbleSize"):
                source = getattr(series, name, None)
                for kind in ("strRef", "numRef", "multiLvlStrRef"):
                    if (reference := getattr(source, kind, None)) is not None and reference.f:
                        yield reference


def _names(book: Workbook) -> Iterator[Any]:
    for names in (book.defined_names, *(sheet.defined_names for sheet in book.worksheets)):
        yield from (name for name in names.values() if name.attr_text)


def _rewritten(text: str, change: Callable[[str, str], tuple[str, str]]) -> str:
    """A formula with another sheet and range in each of its references."""
    if not text.startswith("="):
        return text
    try:
        tokens = Tokenizer(text)
    except Exception:
        return text  # one that the library does not read stays as it is
    for token in tokens.items:
        if token.type == Token.OPERAND and token.subtype == Token.RANGE:
            prefix, bang, cells = token.value.rpartition("!")
            name = prefix[1:-1].replace("''", "'") if prefix.startswith("'") else prefix
            sheet, moved = change(name, cells)
            if sheet != name:
                quoted = sheet.replace("'", "''")
                prefix = f"'{quoted}'"
            token.value = f"{prefix}{bang}{moved}"
    return str(tokens.render())


def _index(text: str) -> int:
    return int(text) if text.isdecimal() else column_index_from_string(text.upper())


def _with(match: re.Match[str], group: int, value: int) -> str:
    parts = [part or "" for part in match.groups()]
    parts[group - 1] = str(value) if group == 4 else get_column_letter(value)
    return "".join(parts)
