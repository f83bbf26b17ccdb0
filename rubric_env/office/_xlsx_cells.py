"""Values, formulas and looks of cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter, range_boundaries

from rubric_env.office._problems import Problems, Refused

if TYPE_CHECKING:
    from openpyxl.cell import Cell
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

CELLS = 500_000
"""Of one call."""

TEXT = 32_767
"""Characters of a cell, by the format."""

EXACT = 15
"""Digits of a number that Excel keeps; longer ones are names of something, and stay whole as text."""

WIDEST, NARROWEST = 48, 8
"""Characters of a column whose width nobody gave."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2})?")
_COLOR = re.compile(r"#?([0-9A-Fa-f]{6})")

# Excel takes functions that came after the format was fixed for unknown names without this prefix.
_NEWER = re.compile(
    "CONCAT|TEXTJOIN|IFS|SWITCH|MAXIFS|MINIFS|IFNA|XLOOKUP|XMATCH|(STDEV|VAR|COVARIANCE)[.][SP]|MODE[.]SNGL|XOR|PHI|RRI|"
    "(PERCENTILE|QUARTILE|PERCENTRANK)[.](INC|EXC)|RANK[.](EQ|AVG)|(NORM|NORM[.]S|T|F|BINOM|GAMMA|BETA)[.](DIST|INV)|"
    "(T|F|Z|CHISQ)[.]TEST|FORECAST[.](LINEAR|ETS)|(POISSON|EXPON|WEIBULL)[.]DIST|CONFIDENCE[.](NORM|T)|DAYS|GAMMA|"
    "ISOWEEKNUM|NUMBERVALUE|SHEETS?|FORMULATEXT|UNICODE|UNICHAR|PDURATION|(CEILING|FLOOR)[.]MATH"
)
_SPILLING = re.compile("FILTER|UNIQUE|SORT|SORTBY|SEQUENCE|RANDARRAY|TEXTSPLIT|VSTACK|HSTACK|TOCOL|TOROW|LET|LAMBDA")


def put(cell: Cell, value: Any) -> None:
    """Give a cell a value as JSON has it. Raises Refused."""
    if isinstance(value, int) and abs(value) >= 10**EXACT:
        _put_text(cell, str(value))
    elif not isinstance(value, str):
        cell.value = value
    elif value.startswith("'"):
        _put_text(cell, value[1:])
    elif value.startswith("=") and len(value) > 1:
        cell.value = formula(value)
    elif moment := _moment(value):
        cell.value = moment
        if cell.number_format in ("General", "yyyy-mm-dd", "yyyy-mm-dd h:mm:ss"):
            cell.number_format = "yyyy-mm-dd hh:mm" if isinstance(moment, datetime) else "yyyy-mm-dd"
    else:
        _put_text(cell, value)
    if isinstance(value, str) and "\n" in value:
        alignment = copy(cell.alignment)
        alignment.wrap_text = True
        cell.alignment = alignment


def _put_text(cell: Cell, text: str) -> None:
    if len(text) > TEXT:
        raise Refused(f"{len(text):,} characters, a cell holds {TEXT:,}")
    cell.value = text
    cell.data_type = "s"  # also what begins with = or looks like an error


def _moment(text: str) -> date | datetime | None:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def formula(text: str) -> str:
    """As the file wants it. Raises Refused for one that does not parse."""
    try:
        tokens = Tokenizer(text)
    except Exception as error:
        raise Refused(f"{text[:80]!r} is no formula ({error}); text that begins with = needs a ' before it") from None
    depth = 0
    for token in tokens.items:
        if token.type in (Token.FUNC, Token.PAREN):
            depth += {Token.OPEN: 1, Token.CLOSE: -1}.get(token.subtype, 0)
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            name = token.value[:-1].upper()
            if _SPILLING.fullmatch(name):
                raise Refused(f"{name} fills several cells, which this tool cannot write: use one formula a cell")
            if _NEWER.fullmatch(name):
                token.value = f"_xlfn.{token.value}"
    if depth:
        raise Refused(f"{text[:80]!r} is no formula: its brackets do not match")
    return str(tokens.render())


def sheets_of(text: str) -> Iterator[str]:
    """The sheets that a formula names."""
    if not text.startswith("="):
        return
    for token in Tokenizer(text).items:
        if token.type == Token.OPERAND and token.subtype == Token.RANGE and "!" in token.value:
            name = token.value.rpartition("!")[0]
            name = name[1:-1].replace("''", "'") if name.startswith("'") else name
            if "[" not in name and ":" not in name:
                yield name


def check_references(book: Workbook, changed: Iterable[tuple[str, Cell]], problems: Problems) -> None:
    """Formulas that were written name no sheet that is not there."""
    known = {name.casefold() for name in book.sheetnames}
    there = ", ".join(book.sheetnames[:20])
    for place, cell in changed:
        if cell.data_type != "f" or not isinstance(cell.value, str):
            continue
        for name in sheets_of(cell.value):
            if name.casefold() not in known:
                problems.add(place, f"the formula names the sheet {name!r}; there are {there}")


def area(sheet: Worksheet, reference: str) -> tuple[int, int, int, int]:
    """First column and row, last column and row, of A1, B2:D9, B:D or 3:5. Raises Refused."""
    try:
        left, top, right, bottom = range_boundaries(reference.replace("$", "").strip().upper())
    except (ValueError, TypeError):
        raise Refused(f"{reference!r} is no range; write A1, B2:D9, B:D or 3:5") from None
    left, top = left or 1, top or 1
    right, bottom = right or max(sheet.max_column, 1), bottom or max(sheet.max_row, 1)
    if not (left <= right <= 16_384 and top <= bottom <= 1_048_576):
        raise Refused(f"{reference!r} is no range of a sheet")
    if (right - left + 1) * (bottom - top + 1) > CELLS:
        raise Refused(f"{reference!r} has more than {CELLS:,} cells")
    return left, top, right, bottom


def shape(sheet: Worksheet, look: dict[str, Any]) -> None:
    """Give a range its look. Raises Refused."""
    reference = look["range"].rpartition("!")[2]
    left, top, right, bottom = area(sheet, reference)
    colors = {name: _color(look[name]) for name in ("color", "fill") if look[name] is not None}
    thin = Side(style="thin", color="BFBFBF")
    for row in sheet.iter_rows(top, bottom, left, right):
        for cell in row:
            font = copy(cell.font)
            for name, attribute in (("bold", "b"), ("italic", "i")):
                if look[name] is not None:
                    setattr(font, attribute, look[name])
            if "color" in colors:
                font.color = colors["color"]
            cell.font = font
            if "fill" in colors:
                cell.fill = PatternFill("solid", start_color=colors["fill"], end_color=colors["fill"])
            if look["number_format"] is not None:
                cell.number_format = look["number_format"]
            if look["border"] is not None:
                cell.border = Border(thin, thin, thin, thin) if look["border"] else Border()
            if look["align"] is not None or look["wrap"] is not None:
                alignment = copy(cell.alignment)
                alignment.horizontal = look["align"] or alignment.horizontal
                alignment.wrap_text = alignment.wrap_text if look["wrap"] is None else look["wrap"]
                alignment.vertical = "top" if look["wrap"] else alignment.vertical
                cell.alignment = alignment
    if look["width"] is not None:
        if not 1 <= look["width"] <= 255:
            raise Refused(f"width {look['width']:g} is not from 1 to 255")
        for number in range(left, right + 1):
            sheet.column_dimensions[get_column_letter(number)].width = look["width"]
    if look["merge"]:
        _merge(sheet, left, top, right, bottom)


def _merge(sheet: Worksheet, left: int, top: int, right: int, bottom: int) -> None:
    crossed = [
        str(one)
        for one in sheet.merged_cells.ranges
        if one.min_col <= right and left <= one.max_col and one.min_row <= bottom and top <= one.max_row
    ]
    if crossed:
        raise Refused(f"merge: {', '.join(crossed)} is merged already")
    hidden = [
        cell.coordinate
        for row in sheet.iter_rows(top, bottom, left, right)
        for cell in row
        if cell.value is not None and (cell.row, cell.column) != (top, left)
    ]
    if hidden:
        raise Refused(f"merge would lose {', '.join(hidden[:5])}; only the first cell may hold something")
    sheet.merge_cells(start_column=left, start_row=top, end_column=right, end_row=bottom)


def _color(text: str) -> str:
    match = _COLOR.fullmatch(text.strip())
    if match is None:
        raise Refused(f"colour {text!r}: write RRGGBB, as 1F3A5F")
    return match[1].upper()


def head(sheet: Worksheet, rows: int, columns: int) -> None:
    """Make the first rows a heading that stays in sight and is printed on every page."""
    if not rows:
        return
    line = Side(style="thin", color="1F3A5F")
    for row in sheet.iter_rows(1, rows, 1, columns):
        for cell in row:
            cell.font = Font(name=cell.font.name, size=cell.font.size, bold=True, color="1F3A5F")
            cell.fill = PatternFill("solid", start_color="DCE6F1", end_color="DCE6F1")
            side = cell.alignment.horizontal or ("right" if _is_number(sheet.cell(rows + 1, cell.column)) else None)
            cell.alignment = Alignment(horizontal=side, vertical="center", wrap_text=True)
            if cell.row == rows:
                cell.border = Border(bottom=line)
    sheet.freeze_panes = f"A{rows + 1}"
    sheet.print_title_rows = f"1:{rows}"


def _is_number(cell: Cell) -> bool:
    return cell.data_type in ("n", "d", "f") and cell.value is not None


def fit(sheet: Worksheet, rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their longest line needs."""
    for number in range(1, max(map(len, rows), default=0) + 1):
        column = [row[number - 1] for row in rows if len(row) >= number]
        longest = max((_shown(value) for value in column), default=0)
        width = min(max(longest * 1.1 + 3, NARROWEST), WIDEST)
        sheet.column_dimensions[get_column_letter(number)].width = round(width, 1)
        if longest > WIDEST:
            for cells in sheet.iter_rows(1, len(rows), number, number):
                alignment = copy(cells[0].alignment)
                alignment.wrap_text, alignment.vertical = True, "top"
                cells[0].alignment = alignment


def _shown(value: Any) -> int:
    """About how many characters a value takes."""
    if isinstance(value, str) and value.startswith("="):
        return 10
    if isinstance(value, float):
        return len(f"{value:,.2f}")
    if isinstance(value, int) and not isinstance(value, bool):
        return len(f"{value:,}")
    lines = str(value if value is not None else "").split("\n")
    return max(len(line) + sum(letter > "⺀" for letter in line) for line in lines)
