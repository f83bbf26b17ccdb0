"""Workbooks, streamed row by row: values as shown, formulas, comments, charts; only cells that are there are read."""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rubric_env.evidence._drawings import chart
from rubric_env.evidence._extract import Unit, Unreadable
from rubric_env.evidence._number_format import BUILT_IN, shown
from rubric_env.evidence._ooxml import A, C, Package, R, Relationship, S, descendants
from rubric_env.evidence._xlsx_places import Area, area_of, column_letters, column_number
from rubric_env.evidence._xml import no_xml, parser

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from rubric_env.evidence._reading import Reading
    from rubric_env.evidence._xlsx_values import Values

ROWS = 200_000
"""Of one workbook that are read."""

SHARED = 2_000_000
"""Strings of the shared table that are kept."""

XDR = "{http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing}"
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_CHANGES = re.compile(r"\b(?:RAND(?:BETWEEN|ARRAY)?|NOW|CELL|INFO)\(", re.IGNORECASE)
"""Functions whose results differ with the moment or the machine: two judges would be shown different numbers."""


@dataclass(slots=True)
class _Sheet:
    """One sheet as the workbook lists it, and what was found in it."""

    name: str
    part: str
    state: str
    rows: int = 0
    formulas: int = 0
    calculated: int = 0
    uncalculated: int = 0
    hidden_rows: int = 0
    merged: list[str] = field(default_factory=list)
    hidden_columns: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    shared: dict[str, tuple[str, str]] = field(default_factory=dict)
    arrays: list[Area] = field(default_factory=list)


class Workbook:
    """Reads one package. `values` are those of formulas whose values it does not hold."""

    def __init__(self, package: Package, reading: Reading, values: Values | None = None) -> None:
        self._package = package
        self._reading = reading
        self._values = values
        main = package.main("xl/workbook.xml")
        root = package.xml(main)
        links = package.relationships(main)
        properties = root.find(f"{S}workbookPr")
        self._epoch_1904 = properties is not None and properties.get("date1904") in ("1", "true")
        calculation = root.find(f"{S}calcPr")
        # Such a file says itself that its values are not valid yet; some programs then write 0 for each.
        self._stale = calculation is not None and calculation.get("fullCalcOnLoad") in ("1", "true")
        self.sheets = [_sheet(entry, links) for entry in root.iter(f"{S}sheet")]
        if not self.sheets:
            raise Unreadable("it has no sheets")
        self.names = [(name.get("name") or "", name.text or "") for name in root.iter(f"{S}definedName")]
        self._strings = self._shared(_target(links, "sharedStrings", "xl/sharedStrings.xml"))
        self._formats = self._styles(_target(links, "styles", "xl/styles.xml"))
        self._left = ROWS

    def units(self) -> Iterator[Unit]:
        """Sheet by sheet, hidden ones too; then the names that the workbook defines."""
        for sheet in self.sheets:
            links = self._package.relationships(sheet.part)
            try:
                yield from self._rows(sheet)
            except (KeyError, Unreadable) as error:
                self._reading.lost(f"sheet {sheet.name!r}", error)
            yield from self._beside(sheet, links)
        for name, formula in self.names:
            if not name.startswith("_xlnm."):
                yield Unit(f"name {name}", f"={formula}", "defined name")

    def note(self) -> str:
        """The sheets in one line."""
        described = []
        for sheet in self.sheets:
            facts = [f"{sheet.rows:,} rows"]
            facts += [sheet.state] if sheet.state != "visible" else []
            facts += [f"{sheet.formulas:,} formulas"] if sheet.formulas else []
            facts += (
                [f"{sheet.calculated:,} of them without a value in the file, calculated here"]
                if sheet.calculated
                else []
            )
            facts += [f"{sheet.uncalculated:,} of them without a value"] if sheet.uncalculated else []
            facts += [f"{sheet.hidden_rows:,} hidden rows"] if sheet.hidden_rows else []
            facts += [f"hidden columns {', '.join(sheet.hidden_columns[:5])}"] if sheet.hidden_columns else []
            facts += [f"merged cells {', '.join(sheet.merged[:5])}"] if sheet.merged else []
            facts += [f"and {len(sheet.merged) - 5} more merged"] if len(sheet.merged) > 5 else []
            described.append(f"{sheet.name!r} ({', '.join(facts)})")
        return f"{len(self.sheets)} sheets: {'; '.join(described[:20])}"

    def facts(self) -> dict[str, Any]:
        """Counts, for people and metrics."""
        return {
            "sheets": [sheet.name for sheet in self.sheets],
            "rows": sum(sheet.rows for sheet in self.sheets),
            "formulas": sum(sheet.formulas for sheet in self.sheets),
            "uncalculated": sum(sheet.uncalculated for sheet in self.sheets),
        }

    def _rows(self, sheet: _Sheet) -> Iterator[Unit]:
        mark = "" if sheet.state == "visible" else f"{sheet.state} sheet"
        number = 0
        for _, element in self._stream(sheet.part, f"{S}row", f"{S}mergeCell", f"{S}col", f"{S}hyperlink"):
            if element.tag == f"{S}row":
                declared = element.get("r") or ""
                number = _index(declared, number + 1)
                hidden = element.get("hidden") in ("1", "true")
                cells = [cell for cell in self._cells(element, number, sheet) if cell[1]]
                if cells and self._left > 0:
                    self._left -= 1
                    sheet.rows += 1
                    sheet.hidden_rows += hidden
                    start, end = cells[0][0], cells[-1][0]
                    place = f"{start}{number}" if start == end else f"{start}{number}:{end}{number}"
                    text = " | ".join(f"{column}: {text}" for column, text in cells)
                    yield Unit(
                        f"{sheet.name}!{place}", text, ", ".join(filter(None, (mark, "hidden row" if hidden else "")))
                    )
                elif cells and self._left == 0:
                    self._left = -1
                    self._reading.skipped(f"only the first {ROWS:,} rows were read")
            elif element.tag == f"{S}mergeCell":
                sheet.merged.append(element.get("ref") or "")
            elif element.tag == f"{S}col" and element.get("hidden") in ("1", "true"):
                first, last = (_index(element.get(name), 1) for name in ("min", "max"))
                sheet.hidden_columns.append(
                    f"{column_letters(first)}:{column_letters(last)}" if last > first else column_letters(first)
                )
            elif element.tag == f"{S}hyperlink":
                sheet.links[element.get("ref") or ""] = element.get(f"{R}id") or ""
            element.clear()

    def _cells(self, row: Element, number: int, sheet: _Sheet) -> Iterator[tuple[str, str]]:
        column = 0
        for cell in row.iter(f"{S}c"):
            place = _CELL.fullmatch((cell.get("r") or "").upper())
            column = column_number(place[1]) if place else column + 1
            letters = column_letters(column)
            yield letters, self._cell(cell, f"{letters}{number}", sheet)

    def _cell(self, cell: Element, place: str, sheet: _Sheet) -> str:
        formula, kind, stored = cell.find(f"{S}f"), cell.get("t") or "n", cell.findtext(f"{S}v")
        if formula is None:
            here = area_of(place, sheet.name) if self._stale and stored == "0" and sheet.arrays else None
            if not here or not any(here.meets(filled) for filled in sheet.arrays):
                return self._value(cell, kind, stored)
            found = self._values and self._values.get(sheet.name, place)
            return self._value(cell, *found) if found else "(of an array formula, not calculated)"
        sheet.formulas += 1
        if formula.get("t") == "array" and (filled := area_of(formula.get("ref") or "", sheet.name)):
            sheet.arrays.append(filled)
        words = f"={' '.join(self._formula(formula, cell, sheet).split())}"
        if (stored or kind == "str") and not (self._stale and stored == "0"):
            return f"{self._value(cell, kind, stored)} ({words})"
        if _CHANGES.search(words):
            return f"({words}, another value whenever the file is opened)"
        if self._values and (value := self._values.get(sheet.name, place)):
            sheet.calculated += 1
            return f"{self._value(cell, *value)} ({words})"
        sheet.uncalculated += 1
        return f"({words}, not calculated)"

    def _formula(self, formula: Element, cell: Element, sheet: _Sheet) -> str:
        """Its text; one that is shared with other cells stands in the first of them."""
        from openpyxl.formula.translate import Translator

        identity, place = formula.get("si") or "", cell.get("r") or "A1"
        if text := str(formula.text or ""):
            if formula.get("t") == "shared":
                sheet.shared[identity] = (text, place)
            return text
        if identity not in sheet.shared:
            return "?"
        shared, origin = sheet.shared[identity]
        return str(Translator(f"={shared}", origin).translate_formula(place))[1:]

    def _value(self, cell: Element, kind: str, stored: str | None) -> str:
        if kind == "inlineStr":
            return _text(cell)
        if stored is None:
            return ""
        if kind == "s":
            return _at(self._strings, stored, "")
        if kind == "b":
            return "TRUE" if stored == "1" else "FALSE"
        if kind in ("str", "e", "d"):
            return stored
        code = _at(self._formats, cell.get("s") or "0", "General")
        return shown(stored, code, epoch_1904=self._epoch_1904)

    def _beside(self, sheet: _Sheet, links: Mapping[str, Relationship]) -> Iterator[Unit]:
        """Links, comments, charts, pictures and tables of a sheet."""
        for place, identity in sheet.links.items():
            if (link := links.get(identity)) is not None and link.external:
                yield Unit(f"{sheet.name}!{place}/link", link.target, "link")
        for link in links.values():
            if link.external:
                continue
            try:
                match link.kind:
                    case "comments":
                        yield from self._comments(sheet, link.target)
                    case "threadedComment":
                        yield from self._threads(sheet, link.target)
                    case "drawing":
                        yield from self._drawing(sheet, link.target)
                    case "table":
                        root = self._package.xml(link.target)
                        name, place = root.get("displayName") or root.get("name") or "", root.get("ref") or ""
                        yield Unit(f"{sheet.name}!{place}/table", name, "table")
            except (KeyError, Unreadable) as error:
                self._reading.lost(f"{link.kind} of sheet {sheet.name!r}", error)

    def _comments(self, sheet: _Sheet, part: str) -> Iterator[Unit]:
        root = self._package.xml(part)
        authors = [author.text or "" for author in root.iter(f"{S}author")]
        for comment in root.iter(f"{S}comment"):
            author = _at(authors, comment.get("authorId"), "")
            text = _text(comment)
            if text and not author.startswith("tc="):  # a copy of a threaded comment
                mark = f"comment by {author}" if author else "comment"
                yield Unit(f"{sheet.name}!{comment.get('ref')}/comment", text, mark)

    def _threads(self, sheet: _Sheet, part: str) -> Iterator[Unit]:
        for comment in self._package.xml(part):
            text = "".join(comment.itertext()).strip()
            if text:
                yield Unit(f"{sheet.name}!{comment.get('ref')}/comment", text, "comment")

    def _drawing(self, sheet: _Sheet, part: str) -> Iterator[Unit]:
        root = self._package.xml(part)
        links = self._package.relationships(part)
        for number, anchor in enumerate(root, 1):
            address = f"{sheet.name}!drawing {number}"
            words = [text for name in ("title", "descr") for el in anchor.iter(f"{XDR}cNvPr") if (text := el.get(name))]
            for reference in descendants(anchor, f"{C}chart"):
                link = links.get(reference.get(f"{R}id") or "")
                if link is None or link.external:
                    self._reading.lost(address, "its chart is missing")
                else:
                    yield Unit(address, "\n".join(chart(self._package.xml(link.target))), "chart")
            if text := "\n".join(filter(None, (element.text for element in descendants(anchor, f"{A}t")))):
                yield Unit(address, text, "text box")
            for _ in descendants(anchor, f"{XDR}pic"):
                yield Unit(address, f"picture: {', '.join(words)}" if words else "picture, no alt text", "picture")

    def _shared(self, part: str) -> list[str]:
        strings: list[str] = []
        if part not in self._package:
            return strings
        for _, element in self._stream(part, f"{S}si"):
            strings.append(_text(element))
            element.clear()
            if len(strings) >= SHARED:
                self._reading.skipped(f"only the first {SHARED:,} different texts were kept")
                break
        return strings

    def _styles(self, part: str) -> list[str]:
        root = self._package.optional(part)
        if root is None:
            return []
        codes = dict(BUILT_IN)
        for entry in root.iter(f"{S}numFmt"):
            codes[_index(entry.get("numFmtId"), -1)] = entry.get("formatCode") or "General"
        cells = root.find(f"{S}cellXfs")
        return [
            codes.get(_index(entry.get("numFmtId"), 0), "General") for entry in (cells if cells is not None else ())
        ]

    def _stream(self, part: str, *tags: str) -> Iterator[tuple[str, Element]]:
        from lxml import etree

        data = self._package.bytes(part)
        try:
            yield from etree.iterparse(io.BytesIO(data), events=("end",), tag=tags, **parser())
        except etree.XMLSyntaxError as error:
            self._reading.lost(posixpath.basename(part), Unreadable(no_xml(error)))


def _sheet(entry: Element, links: Mapping[str, Relationship]) -> _Sheet:
    link = links.get(entry.get(f"{R}id") or "")
    name = entry.get("name") or "sheet"
    number = entry.get("sheetId") or "1"
    part = link.target if link is not None and not link.external else f"xl/worksheets/sheet{number}.xml"
    return _Sheet(name, part, (entry.get("state") or "visible").replace("veryHidden", "very hidden"))


def _target(links: Mapping[str, Relationship], kind: str, usual: str) -> str:
    return next((link.target for link in links.values() if link.kind == kind and not link.external), usual)


def _text(element: Element) -> str:
    """Rich text as one string; how Japanese is read aloud (`rPh`) is not part of it."""
    spoken = {id(run) for reading in element.iter(f"{S}rPh") for run in reading.iter(f"{S}t")}
    return "".join(run.text or "" for run in element.iter(f"{S}t") if id(run) not in spoken).replace("\n", " / ")


def _index(text: str | None, otherwise: int) -> int:
    """A number as an attribute gives it; one of more digits than any file needs is none."""
    return int(text) if text and text.isdecimal() and len(text) <= 10 else otherwise


def _at(values: list[str], index: str | None, otherwise: str) -> str:
    place = _index(index, -1)
    return values[place] if 0 <= place < len(values) else otherwise
