"""Spreadsheets: xlsx with formulas, formats and drawings; older and other forms by their values."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading

if TYPE_CHECKING:
    from rubric_env.evidence._xlsx_values import Values

NOT_CALCULATED = "not all formulas without a value were calculated"

ROWS = 200_000


def units(reading: Reading) -> Iterator[Unit]:
    """Row by row, then what stands beside the cells."""
    from rubric_env.evidence._ooxml import Package
    from rubric_env.evidence._xlsx import Workbook

    package = Package(reading)
    yield from package.properties()
    values = _calculated(reading, reading.calculated) if reading.calculated else None
    workbook = Workbook(package, reading, values)
    yield from workbook.units()
    yield from package.embedded(reading)
    reading.note(workbook.note())
    reading.facts |= workbook.facts()


def _calculated(reading: Reading, path: Path) -> Values | None:
    from rubric_env.evidence._ooxml import Package
    from rubric_env.evidence._xlsx import Workbook
    from rubric_env.evidence._xlsx_values import Values

    copy = Reading(path, reading.folder)
    try:
        package = Package(copy)
        found = Values(package, [(sheet.name, sheet.part) for sheet in Workbook(package, copy).sheets])
        why = found.missing
    except Exception as error:
        # The copy is ours; whatever is wrong with it, the file itself is read.
        found, why = None, f"the copy cannot be read ({type(error).__name__})"
    if why:
        reading.note(f"{NOT_CALCULATED}: {why}")
        reading.failed = True
    return found


def values(reading: Reading) -> Iterator[Unit]:
    """The values of formats whose formulas no reader here gives."""
    from python_calamine import CalamineWorkbook, SheetVisibleEnum

    from rubric_env.evidence._xlsx_places import column_letters

    try:
        # By what it holds: a path's suffix would be believed.
        book = CalamineWorkbook.from_filelike(io.BytesIO(reading.path.read_bytes()))
    except Exception as error:
        # The library has no class of errors of its own that all of them share.
        why = "it is encrypted" if "password" in str(error).lower() or "encrypt" in str(error).lower() else str(error)
        raise Unreadable(f"it cannot be opened ({why})") from None
    left, described = ROWS, []
    for sheet in book.sheets_metadata:
        visible = sheet.visible == SheetVisibleEnum.Visible
        mark = "" if visible else "hidden sheet"
        rows = book.get_sheet_by_name(sheet.name)
        start = (rows.start or (0, 0))[1]
        count = 0
        for number, row in enumerate(rows.iter_rows(), (rows.start or (0, 0))[0] + 1):
            cells = [
                (column_letters(n), _shown(cell)) for n, cell in enumerate(row, start + 1) if cell not in ("", None)
            ]
            if cells and left > 0:
                left -= 1
                count += 1
                first, last = cells[0][0], cells[-1][0]
                place = f"{first}{number}" if first == last else f"{first}{number}:{last}{number}"
                yield Unit(f"{sheet.name}!{place}", " | ".join(f"{name}: {text}" for name, text in cells), mark)
        described.append(f"{sheet.name!r} ({count:,} rows{'' if visible else ', hidden'})")
    if not left:
        reading.skipped(f"only the first {ROWS:,} rows were read")
    reading.note(f"{len(described)} sheets: {'; '.join(described[:20])}; values only, formulas are not shown")


def _shown(cell: object) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return ("TRUE" if cell else "FALSE") if isinstance(cell, bool) else str(cell).replace("\n", " / ")


KINDS = (
    Kind("xlsx", (".xlsx", ".xlsm", ".xltx", ".xltm"), units=units, contains=("xl/workbook.xml", "xl/worksheets/")),
    Kind("xlsb", (".xlsb",), units=values, contains=("xl/workbook.bin",)),
    Kind("ods", (".ods", ".ots"), units=values, contains=("mimetype:application/vnd.oasis.opendocument.spreadsheet",)),
    Kind("xls", (".xls", ".xlt"), units=values, contains=("Workbook", "Book")),
)
