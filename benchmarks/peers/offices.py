"""Office files as people and models make them, for the benchmark of evidence."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from types import MappingProxyType

WORDS = "Revenue of the region rose because the second largest customer renewed its contract in August"


def saved(document: object) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]
    return buffer.getvalue()


def deck(slides: int = 48) -> bytes:
    """Titles, bullets, a table, a chart, a group and notes on every slide."""
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    made = Presentation()
    for number in range(1, slides + 1):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = f"Region {number}: 结果"
        slide.placeholders[1].text = "\n".join(f"{WORDS}, point {number}.{point}" for point in range(5))
        cells = slide.shapes.add_table(4, 3, Inches(0.5), Inches(4), Inches(4), Inches(2)).table
        for row in range(4):
            for column in range(3):
                cells.cell(row, column).text = f"cell {number}-{row}-{column}"
        data = CategoryChartData()
        data.categories = [f"quarter {number}-{quarter}" for quarter in range(4)]
        data.add_series(f"series {number}", (number, number + 0.25, number + 0.5, number + 0.75))
        slide.shapes.add_chart(XL_CHART_TYPE.LINE, Inches(5), Inches(4), Inches(4), Inches(3), data)
        group = slide.shapes.add_group_shape()
        group.shapes.add_textbox(0, 0, Inches(2), Inches(0.5)).text_frame.text = f"In a group {number}"
        slide.notes_slide.notes_text_frame.text = f"What is said to slide {number}"
    return saved(made)


def report(pages: int = 20) -> bytes:
    """Headings, paragraphs, tables and a header."""
    from docx import Document

    made = Document()
    made.sections[0].header.paragraphs[0].text = "The header of the report"
    for number in range(1, pages + 1):
        made.add_heading(f"Chapter {number}", 1)
        for point in range(6):
            made.add_paragraph(f"{WORDS}, paragraph {number}.{point}. " * 3)
        table = made.add_table(4, 3)
        for row in range(4):
            for column in range(3):
                table.cell(row, column).text = f"cell {number}-{row}-{column}"
    return saved(made)


def workbook(rows: int = 2000) -> bytes:
    """A table of texts and numbers, a formula a row, a hidden sheet."""
    from openpyxl import Workbook

    made = Workbook()
    made.active.append(["Region", "Revenue", "Cost", "Margin"])
    for number in range(2, rows + 2):
        made.active.append([f"region {number}", number * 1.5, number, f"=B{number}-C{number}"])
    hidden = made.create_sheet("Assumptions")
    hidden.append(["Growth stays at two percent"])
    hidden.sheet_state = "hidden"
    return saved(made)


SAMPLES: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {"48 slides.pptx": deck, "report.docx": report, "book.xlsx": workbook}
)
