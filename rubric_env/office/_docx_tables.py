"""Tables of a Word document: lines, a heading that repeats on every page, columns as wide as their words need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Emu, Pt

from rubric_env.office._docx_styles import HEADER_FILL, LINE, shade

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

    from rubric_env.office._docx_markdown import Writer

_ALIGN = {"left": WD_ALIGN_PARAGRAPH.LEFT, "center": WD_ALIGN_PARAGRAPH.CENTER, "right": WD_ALIGN_PARAGRAPH.RIGHT}
_SIDES = ("top", "left", "bottom", "right", "insideH", "insideV")
_LONG = 60
"""Characters above which a longer cell makes its column no wider."""


def add_table(writer: Writer, rows: Sequence[Sequence[SyntaxTreeNode]]) -> None:
    """`rows` are cells of Markdown, the first row is the heading."""
    from rubric_env.office._docx_markdown import Look

    count = len(rows[0])
    table: Any = writer.document.add_table(rows=len(rows), cols=count)
    table.autofit = False
    _lines(table)
    widths = _widths([[_text(cell) for cell in row] for row in rows], writer.width)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Emu(width)
    for place, (row, cells) in enumerate(zip(table.rows, rows, strict=True)):
        _keep_together(row, heading=place == 0)
        for cell, node, width in zip(row.cells, cells, widths, strict=False):
            cell.width = Emu(width)
            paragraph = cell.paragraphs[0]
            paragraph.paragraph_format.space_before = paragraph.paragraph_format.space_after = Pt(2)
            paragraph.paragraph_format.line_spacing = 1.0
            style = str(node.attrs.get("style", ""))
            paragraph.alignment = _ALIGN.get(style.removeprefix("text-align:"))
            writer.inline(node.children, paragraph, Look(bold=place == 0))
            if place == 0:
                shade(cell._tc.get_or_add_tcPr(), HEADER_FILL)
    after = writer.document.add_paragraph()  # else two tables in a row become one
    after.paragraph_format.space_after = Pt(4)
    after.paragraph_format.line_spacing = Pt(6)


def _text(node: SyntaxTreeNode) -> str:
    return "".join(child.content for child in node.walk() if child.type in ("text", "code_inline"))


def _widths(texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """Columns share the page as their longest cells do, none is narrower than its longest word can bear."""
    wanted = []
    for column in zip(*texts, strict=True):
        longest = max(min(_LONG, _letters(text)) for text in column)
        word = max((_letters(word) for text in column for word in text.split()), default=1)
        wanted.append(max(longest, min(word, 24) * 5 // 4, 4) + 3)
    total = sum(wanted)
    return [room * one // total for one in wanted]


def _letters(text: str) -> int:
    """Chinese characters take the room of two."""
    return len(text) + sum(letter > "⺀" for letter in text)


def _lines(table: Any) -> None:
    borders = OxmlElement("w:tblBorders")
    for side in _SIDES:
        line = OxmlElement(f"w:{side}")
        for name, value in (("val", "single"), ("sz", "4"), ("space", "0"), ("color", LINE)):
            line.set(qn(f"w:{name}"), value)
        borders.append(line)
    properties = table._tbl.tblPr
    layout = properties.find(qn("w:tblLayout"))
    layout.addprevious(borders)


def _keep_together(row: Any, *, heading: bool) -> None:
    properties = row._tr.get_or_add_trPr()
    for name in ("w:cantSplit", *(("w:tblHeader",) if heading else ())):
        properties.append(OxmlElement(name))
