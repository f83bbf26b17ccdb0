"""The values of formulas that a workbook does not hold, from a copy in which LibreOffice calculated them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rubric_env.evidence._ooxml import Package, S
from rubric_env.evidence._xlsx_places import Area, area_of, references
from rubric_env.evidence._xml import parser

MOST = 300_000
"""Values kept of one workbook."""

COMPARISONS = 20_000_000
"""Of a reference with a doubtful cell, for one workbook: some seconds."""

# LibreOffice writes the names of functions that it does not know in small letters.
_UNKNOWN = re.compile(r"_xl(?:fn|ws)\.(?:_xlws\.)?([a-z][a-z0-9.]*)\(")
_OUTSIDE = re.compile(r"\[\d+\][^\[\]!]*!")


class Value(NamedTuple):
    """As a cell stores it: `kind` is the type that the file format has for it (`n`, `str`, `b`, `e`)."""

    kind: str
    stored: str


class Values:
    """Of the formulas of one workbook, by the name of the sheet and the address of the cell.

    `sheets` are names and parts. Where a function is not known here, or another workbook is not there, the cell has no
    value, nor has any that depends on it, however indirectly: it may show no error and be wrong all the same. `missing`
    names what is not known.
    """

    def __init__(self, package: Package, sheets: Iterable[tuple[str, str]]) -> None:
        self._values: dict[tuple[str, str], Value] = {}
        missing: dict[str, None] = {}
        doubtful: list[Area] = []
        formulas: list[tuple[Area, tuple[str, str], str]] = []
        for sheet, part in sheets:
            for place, area, value, formula in _cells(package, part, sheet):
                if len(self._values) == MOST:
                    missing[f"only the first {MOST:,} values were taken"] = None
                    break
                self._values[sheet, place] = value
                unknown = _UNKNOWN.search(formula)
                if unknown:
                    missing[f"the function {unknown[1].upper()} is not known here"] = None
                elif value.kind == "e" and _OUTSIDE.search(formula):
                    missing["another workbook is not there"] = None
                else:
                    formulas.append((area, (sheet, place), formula))
                    continue
                doubtful.append(area)
                self._values.pop((sheet, place), None)
        self.missing = "; ".join(list(missing)[:5])
        if doubtful and len(self._values) + len(doubtful) >= MOST:
            self._values.clear()
        elif doubtful:
            self._drop_what_depends(doubtful, formulas)

    def get(self, sheet: str, place: str) -> Value | None:
        """None where there is none, or none that can be trusted."""
        return self._values.get((sheet, place))

    def _drop_what_depends(self, doubtful: list[Area], formulas: list[tuple[Area, tuple[str, str], str]]) -> None:
        left = COMPARISONS
        waiting = [(area, key, references(formula, area.sheet)) for area, key, formula in formulas]
        while doubtful:
            left -= len(doubtful) * sum(len(read or ()) for _, _, read in waiting)
            if left < 0:
                self._values.clear()
                return
            sure: list[tuple[Area, tuple[str, str], list[Area] | None]] = []
            dropped: list[Area] = []
            for area, key, read in waiting:
                if read is None or any(one.meets(other) for one in read for other in doubtful):
                    dropped.append(area)
                    self._values.pop(key, None)
                else:
                    sure.append((area, key, read))
            waiting, doubtful = sure, dropped


def _cells(package: Package, part: str, sheet: str) -> Iterator[tuple[str, Area, Value, str]]:
    """Cells with formulas, and those that the formula of another cell fills: address, area, value, formula."""
    from lxml import etree

    data = io.BytesIO(package.bytes(part))
    filled: list[tuple[Area, str]] = []
    for _, cell in etree.iterparse(data, events=("end",), tag=(f"{S}c", f"{S}row"), **parser()):
        if cell.tag == f"{S}row":
            cell.clear()
            continue
        place, formula = cell.get("r") or "", cell.find(f"{S}f")
        area = area_of(place, sheet)
        if area is None:
            continue
        if formula is not None:
            # One without its text may read any cell.
            words = formula.text or ":"
            if (whole := area_of(formula.get("ref") or "", sheet)) and formula.get("t") == "array":
                area = whole
                filled.append((whole, words))
        else:
            words = next((words for whole, words in filled if whole.meets(area)), "")
            if not words:
                continue
        kind, stored = cell.get("t") or "n", cell.findtext(f"{S}v") or ""
        if stored or kind == "str":
            yield place, area, Value(kind, stored), words
