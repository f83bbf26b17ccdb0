"""Tables on slides: columns as wide as their words need, figures to the right, letters as large as there is room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
from pptx.util import Emu, Pt

from rubric_env.evidence._pptx_runs import is_wide
from rubric_env.office._pptx_fit import POINT, Box, lines_of, wrapped
from rubric_env.office._problems import Refused

COLUMNS = 12
_SIZES = (16, 14, 12, 11)
_MARGIN, _PADDING = 7.2, 3.6
_FIGURE = re.compile(r"[-+−–(]?[€$£¥]?\s?\d[\d.,  ]*\s?(%|[kKmMbB]|pp|pts?)?\)?|[-–—]|n/?a", re.IGNORECASE)


def add_table(slide: Any, rows: Sequence[Sequence[Any]], area: Box) -> None:
    """Raises Refused for a table that no slide holds."""
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    count = max(map(len, texts))
    if not 1 <= count <= COLUMNS or len(texts) < 2:
        raise Refused(
            f"table: {len(texts)} rows of {count} cells; it takes a heading, a row, and 1 to {COLUMNS} columns"
        )
    texts = [row + [""] * (count - len(row)) for row in texts]
    widths = _widths(texts, area.width)
    size, heights = _fit(texts, widths, area)
    frame = slide.shapes.add_table(len(texts), count, area.left, area.top, area.width, sum(heights))
    table = frame.table
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Emu(width)
    figures = [all(_FIGURE.fullmatch(row[number].strip() or "-") for row in texts[1:]) for number in range(count)]
    for place, (row, height) in enumerate(zip(table.rows, heights, strict=True)):
        row.height = Emu(height)
        for cell, text, figure in zip(row.cells, texts[place], figures, strict=True):
            cell.vertical_anchor = MSO_ANCHOR.MIDDLE
            cell.margin_top = cell.margin_bottom = Pt(_PADDING)
            put(cell, text, size, right=figure)


def put(cell: Any, text: str, size: int, *, right: bool) -> None:
    """The words of a new cell."""
    frame = cell.text_frame
    for number, line in enumerate(lines_of(text.split("\n"))):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.alignment = PP_ALIGN.RIGHT if right else None
        for words, bold in line.runs:
            run = paragraph.add_run()
            run.text = words
            run.font.size = Pt(size)
            if bold:
                run.font.bold = True


def _widths(texts: Sequence[Sequence[str]], width: int) -> list[int]:
    wanted = [max(4, min(40, max(map(_letters, column)))) + 2 for column in zip(*texts, strict=True)]
    shared = [width * one // sum(wanted) for one in wanted]
    return [*shared[:-1], width - sum(shared[:-1])]


def _letters(text: str) -> int:
    return max((len(line) + sum(map(is_wide, line)) for line in text.split("\n")), default=0)


def _fit(texts: Sequence[Sequence[str]], widths: Sequence[int], area: Box) -> tuple[int, list[int]]:
    for size in _SIZES:
        heights = [_height(row, widths, size, bold=place == 0) for place, row in enumerate(texts)]
        if sum(heights) <= area.height:
            # Few rows get air, but no more than looks well.
            spare = min(1.35, area.height / sum(heights))
            return size, [int(height * spare) for height in heights]
    fitting = len([1 for place in range(len(heights)) if sum(heights[: place + 1]) <= area.height])
    raise Refused(
        f"table: of its {len(texts)} rows {fitting} fit at {_SIZES[-1]} pt; shorten cells or spread it over slides"
    )


def _height(row: Sequence[str], widths: Sequence[int], size: int, *, bold: bool) -> int:
    tallest = max(
        sum(wrapped([(line, bold)], size, width / POINT - 2 * _MARGIN) for line in text.split("\n"))
        for text, width in zip(row, widths, strict=True)
    )
    return int((tallest * size * 1.2 + 2 * _PADDING) * POINT)
