"""Office files with absurd dimensions, nesting and counts."""

from __future__ import annotations

from functools import cache

from tests.evidence.hostile.xmls import nest
from tests.evidence.hostile.zips import packed
from tests.evidence.office import changed, saved

OFFICE = "urn:oasis:names:tc:opendocument:xmlns"


@cache
def document() -> bytes:
    from docx import Document

    made = Document()
    made.add_paragraph("A plain paragraph.")
    made.add_table(1, 1).cell(0, 0).text = "A cell"
    made.sections[0].header.paragraphs[0].text = "A header"
    return saved(made)


@cache
def workbook() -> bytes:
    import io

    from xlsxwriter import Workbook

    buffer = io.BytesIO()
    with Workbook(buffer) as made:
        sheet = made.add_worksheet("First")
        sheet.write_row(0, 0, ["Quarter", "Revenue"])
        sheet.write_row(1, 0, ["Q1", 4.5])
        sheet.write_formula("C2", "=B2*2", value=9)
        sheet.write_comment("A1", "A comment")
        chart = made.add_chart({"type": "line"})
        chart.add_series({"values": "=First!$B$2:$B$2"})
        sheet.insert_chart("E2", chart)
    return buffer.getvalue()


@cache
def deck() -> bytes:
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    made = Presentation()
    slide = made.slides.add_slide(made.slide_layouts[5])
    slide.shapes.title.text = "A title"
    slide.notes_slide.notes_text_frame.text = "Notes"
    data = CategoryChartData()
    data.categories = ["a", "b"]
    data.add_series("s", (1, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 1_000_000, 1_000_000, data)
    return saved(made)


def document_with(body: str) -> bytes:
    """`body` after the paragraph of `document`."""
    return changed(document(), {"word/document.xml": lambda text: text.replace("<w:sectPr", f"{body}<w:sectPr", 1)})


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def nested_tables(depth: int) -> bytes:
    opening = "<w:tbl><w:tr><w:tc>"
    closing = "<w:p/></w:tc></w:tr></w:tbl>"
    return document_with(nest(opening, closing, depth, paragraph("deepest")) + paragraph("after"))


def nested_boxes(depth: int, paragraphs: int = 10) -> bytes:
    """Text boxes in text boxes, several times."""
    opening = "<w:p><w:r><w:pict><w:txbxContent>"
    boxes = nest(opening, "</w:txbxContent></w:pict></w:r></w:p>", depth, paragraph("deepest"))
    return document_with(boxes * paragraphs + paragraph("after"))


def wide_table(columns: int) -> bytes:
    cells = "".join(f"<w:tc>{paragraph(str(number))}</w:tc>" for number in range(columns))
    return document_with(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>" + paragraph("after"))


def workbook_with(rows: str, after: str = "") -> bytes:
    """`rows` in place of those of `workbook`, and `after` behind the rows."""

    def change(text: str) -> str:
        start, end = text.index("<sheetData>"), text.index("</sheetData>")
        return f"{text[:start]}<sheetData>{rows}{text[end : end + 12]}{after}{text[end + 12 :]}"

    return changed(workbook(), {"xl/worksheets/sheet1.xml": change})


def cell(place: str, text: str, attributes: str = "") -> str:
    return f'<c r="{place}" t="inlineStr" {attributes}><is><t>{text}</t></is></c>'


def deck_with(shapes: str) -> bytes:
    """`shapes` after those of the slide of `deck`."""
    return changed(deck(), {"ppt/slides/slide1.xml": lambda text: text.replace("</p:spTree>", f"{shapes}</p:spTree>")})


def shape(number: int, text: str, x: int = 0, y: int = 0, size: int = 900_000) -> str:
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="s"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr><a:xfrm>'
        f'<a:off x="{x}" y="{y}"/><a:ext cx="{size}" cy="{size}"/></a:xfrm><a:prstGeom prst="rect"/></p:spPr>'
        f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def nested_groups(depth: int) -> bytes:
    opening = (
        '<p:grpSp><p:nvGrpSpPr><p:cNvPr id="5" name="g"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr><a:xfrm>'
        '<a:off x="0" y="0"/><a:ext cx="9" cy="9"/><a:chOff x="0" y="0"/><a:chExt cx="1" cy="1"/></a:xfrm></p:grpSpPr>'
    )
    return deck_with(nest(opening, "</p:grpSp>", depth, shape(6, "deepest")) + shape(7, "after"))


def slide_table(columns: int, rows: int = 1, attributes: str = "") -> bytes:
    cells = f"<a:tc {attributes}><a:txBody><a:bodyPr/><a:p><a:r><a:t>c</a:t></a:r></a:p></a:txBody></a:tc>" * columns
    grid, lines = '<a:gridCol w="1000"/>' * columns, f'<a:tr h="1000">{cells}</a:tr>' * rows
    return deck_with(
        '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="9" name="t"/><p:cNvGraphicFramePr/><p:nvPr/>'
        '</p:nvGraphicFramePr><p:xfrm><a:off x="0" y="0"/><a:ext cx="9000" cy="9000"/></p:xfrm><a:graphic>'
        '<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/table"><a:tbl><a:tblPr/>'
        f"<a:tblGrid>{grid}</a:tblGrid>{lines}</a:tbl></a:graphicData></a:graphic>"
        "</p:graphicFrame>" + shape(8, "after")
    )


def repeated_cells(columns: int, rows: int) -> bytes:
    """An OpenDocument sheet whose one cell says that it is there `columns` × `rows` times."""
    content = (
        f'<office:document-content xmlns:office="{OFFICE}:office:1.0" xmlns:table="{OFFICE}:table:1.0" xmlns:text='
        f'"{OFFICE}:text:1.0"><office:body><office:spreadsheet><table:table table:name="a"><table:table-row '
        f'table:number-rows-repeated="{rows}"><table:table-cell office:value-type="string" '
        f'table:number-columns-repeated="{columns}"><text:p>x</text:p></table:table-cell></table:table-row>'
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<m:manifest xmlns:m="{OFFICE}:manifest:1.0"><m:file-entry m:full-path="/" m:media-type="{kind}"/>'
        "</m:manifest>"
    )
    return packed(
        {"mimetype": kind.encode(), "META-INF/manifest.xml": manifest.encode(), "content.xml": content.encode()}
    )
