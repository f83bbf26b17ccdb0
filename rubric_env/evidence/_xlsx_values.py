"""The values of formulas that a workbook does not hold, from a copy in which LibreOffice calculated them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rubric_env.evidence._ooxml import Package, S
from rubric_env.evidence._xml import parser

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

MOST = 1_000_000
"""Values kept of one workbook."""

# LibreOffice writes the names of functions that it does not know in small letters.
_UNKNOWN = re.compile(r"_xl(?:fn|ws)\.(?:_xlws\.)?([a-z][a-z0-9.]*)\(")
_OUTSIDE = re.compile(r"\[\d+\][^\[\]!]*!")


class Value(NamedTuple):
    """As a cell stores it: `kind` is the type that the file format has for it (`n`, `str`, `b`, `e`)."""

    kind: str
    stored: str


class Values:
    """Of the formulas of one workbook, by the name of the sheet and the address of the cell.

    `sheets` are names and parts. `unusable` says why no value is given: where a function is not known here, every cell
    that reads its result is doubtful, and one that does so may show no error.
    """

    def __init__(self, package: Package, sheets: Iterable[tuple[str, str]]) -> None:
        self._values: dict[tuple[str, str], Value] = {}
        missing: dict[str, None] = {}
        for name, part in sheets:
            for cell, formula in _formulas(package, part):
                if found := _UNKNOWN.search(formula):
                    missing[f"the function {found[1].upper()} is not known here"] = None
                kind, stored = cell.get("t") or "n", cell.findtext(f"{S}v") or ""
                if kind == "e" and _OUTSIDE.search(formula):
                    missing["it needs another workbook"] = None
                if (stored or kind == "str") and len(self._values) < MOST:
                    self._values[name, cell.get("r") or ""] = Value(kind, stored)
        self.unusable = "; ".join(list(missing)[:5])

    def get(self, sheet: str, place: str) -> Value | None:
        """None where there is none, or none that can be trusted."""
        return None if self.unusable else self._values.get((sheet, place))


def _formulas(package: Package, part: str) -> Iterator[tuple[Element, str]]:
    from lxml import etree

    data = io.BytesIO(package.bytes(part))
    for _, element in etree.iterparse(data, events=("end",), tag=(f"{S}c", f"{S}row"), **parser()):
        if element.tag == f"{S}row":
            element.clear()
        elif (formula := element.findtext(f"{S}f")) is not None:
            yield element, formula
