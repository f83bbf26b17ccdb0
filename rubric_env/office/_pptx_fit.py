"""How large text can be so that it stays in its box: from mean widths of letters, as the evidence measures it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from rubric_env.evidence._pptx_runs import is_wide
from rubric_env.office._problems import Refused

POINT = 12_700
_LETTER, _BOLD = 0.56, 0.6
"""Width of a letter in font sizes: that of wide fonts, which stand in where a deck's own is missing."""

_LINE, _GAP, _INSET = 1.2, 6.0, 7.2
SMALLEST = 12

_MARK = re.compile(r"^(?P<indent>[ \t]*)(?:[-*•–][ \t]+)?(?P<text>.*)$", re.DOTALL)
_STRONG = re.compile(r"(\*\*.+?\*\*)")


class Box(NamedTuple):
    """A place on a slide, in the units of the file."""

    left: int
    top: int
    width: int
    height: int

    def part(self, left: float, width: float) -> Box:
        """A part of its width, both as shares."""
        return Box(self.left + int(left * self.width), self.top, int(width * self.width), self.height)

    def below(self, height: int) -> Box:
        return Box(self.left, self.top + height, self.width, self.height - height)


class Line(NamedTuple):
    """One paragraph: its level from 0, and its runs, each with whether it is bold."""

    level: int
    runs: list[tuple[str, bool]]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.runs)


def lines_of(texts: Sequence[str]) -> list[Line]:
    """Lines as policies write them: two spaces a level, a list sign or none, `**bold**`."""
    lines = []
    for text in texts:
        match = _MARK.match(text.rstrip())
        assert match is not None  # it matches everything
        level = min(len(match["indent"].expandtabs(2)) // 2, 4)
        pieces = [one for one in _STRONG.split(match["text"]) if one]
        runs = [(one[2:-2], True) if _STRONG.fullmatch(one) else (one, False) for one in pieces]
        if runs:
            lines.append(Line(level, runs))
    return lines


def size_of(level: int, size: int) -> int:
    """The points of a level, when those of the first are `size`."""
    return max(SMALLEST, size - 2 * level)


def fitting(lines: Sequence[Line], box: Box, sizes: Sequence[int], what: str) -> int:
    """The largest of `sizes` with which the lines stay in the box. Raises Refused with how much is too much."""
    for size in sizes:
        if height(lines, box.width, size) <= box.height / POINT:
            return size
    over = height(lines, box.width, sizes[-1]) / (box.height / POINT)
    raise Refused(
        f"{what}: {over:.1f} times what fits at {sizes[-1]} pt; shorten it, or spread it over {math.ceil(over)} slides"
    )


def height(lines: Sequence[Line], width: int, size: int) -> float:
    """Points."""
    total = _INSET
    for line in lines:
        points = size_of(line.level, size)
        room = width / POINT - 2 * _INSET - 18 * (line.level + 1)
        total += wrapped(line.runs, points, room) * points * _LINE + _GAP
    return total


def wrapped(runs: Sequence[tuple[str, bool]], points: float, room: float) -> int:
    """Lines that it takes."""
    width = 0.0
    for text, bold in runs:
        wide = sum(map(is_wide, text))
        width += points * (wide + (_BOLD if bold else _LETTER) * (len(text) - wide))
    return max(1, math.ceil(width / max(room, points)))
