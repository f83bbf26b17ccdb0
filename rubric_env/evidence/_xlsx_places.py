"""Addresses of cells: columns by letters or number, areas, and the references of a formula."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r'"[^"]*"')
_PLACE = r"\$?([A-Z]{1,3})\$?(\d{1,7})"
_REFERENCE = re.compile(rf"(?:(?:'((?:[^']|'')+)'|([^\W\d][\w.]*))!)?(?<![\w.]){_PLACE}(?::{_PLACE})?(?![\w.(!])")
# A name, a table, a whole column, or a function that makes references as it goes.
_ELSEWHERE = re.compile(
    r"(?:INDIRECT|OFFSET)\(|(?<![\w.])(?!(?:TRUE|FALSE)\b)[^\W\d][\w.]*(?![\w.(])|[:!\[#]", re.IGNORECASE
)


class Area(NamedTuple):
    """Cells of one sheet, from one corner to the other; columns and rows count from 1."""

    sheet: str
    left: int
    top: int
    right: int
    bottom: int

    def meets(self, other: Area) -> bool:
        return (
            self.sheet == other.sheet
            and self.left <= other.right
            and other.left <= self.right
            and self.top <= other.bottom
            and other.top <= self.bottom
        )


def area_of(address: str, sheet: str) -> Area | None:
    """`B7` or `B7:C9` of that sheet; None for what is no address."""
    found = _REFERENCE.fullmatch(address)
    return _area(found, sheet) if found and not (found[1] or found[2]) else None


def references(formula: str, sheet: str) -> list[Area] | None:
    """The cells that a formula on that sheet reads; None when it may read others too."""
    plain = _TEXT.sub("", formula)
    if _ELSEWHERE.search(_REFERENCE.sub("", plain)):
        return None
    return [_area(found, sheet) for found in _REFERENCE.finditer(plain)]


def column_number(letters: str) -> int:
    """A is 1, AA is 27."""
    total = 0
    for letter in letters:
        total = 26 * total + ord(letter) - 64
    return total


def column_letters(number: int) -> str:
    """The name of a column: 1 is A, 27 is AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _area(found: re.Match[str], sheet: str) -> Area:
    named = found[1].replace("''", "'") if found[1] else found[2] or sheet
    left, top = column_number(found[3]), int(found[4])
    right, bottom = (column_number(found[5]), int(found[6])) if found[5] else (left, top)
    return Area(named, min(left, right), min(top, bottom), max(left, right), max(top, bottom))
