"""SPEC 4: an address or quote that the pack does not have is found, and little else is."""

from __future__ import annotations

import io
import json
import time
import zipfile

import pytest

from rubric_env.evidence import build_pack
from rubric_env.submission import read_submission
from tests.evidence.office import saved

REPORT = """# Market report

Revenue grew by **12 %** to 4.2 million euros, the "strongest" quarter since 2019.

[¶9] is a label that the file made up.

营业收入四百二十万元，同比增长百分之十二，创历史新高。

- See appendix.pdf for the details
"""


@pytest.fixture
def pack(pack_of):
    files = {
        "report.md": REPORT,
        "My notes.txt": "one\n\ntwo",
        "data.csv": "item,price\npens,3.50\nink,4.00\n",
        "tree.json": '{"a": [1, 2, {"b": "' + "x y " * 200 + '"}], "c d": ' + str(list(range(300))) + "}",
        "log.jsonl": '{"n": 1}\n{"n": 2}\n',
        "deck.pptx": b"PK\x03\x04rest",
    }
    reply = "The report is in output/report.md.\n\nIt took two days."
    return pack_of(files, reply=reply, reference="The expected growth is twelve percent.")


@pytest.mark.parametrize(
    "evidence",
    [
        "",
        "none",
        "The report is thorough and well argued.",
        "output/report.md",
        "report.md",
        "output/report.md#¶2",
        "output/report.md#¶2-¶4 and ¶5",
        "[¶3] and [¶1]",
        "see `output/report.md`, ¶2: revenue",
        "output/data.csv#row 2",
        "data.csv#rows 2-3",
        "data.csv#row 2: pens",
        "My notes.txt#¶2",
        "output/tree.json#$.a[2].b",
        "output/tree.json#$.a",
        'output/tree.json#$["c d"][299]',
        "output/log.jsonl#L2",
        "model_response_text.txt#¶2",
        "output/deck.pptx, slide 3",
        "output/report.md#¶2: “Revenue grew by 12 % to 4.2 million euros”",
        "output/report.md#¶2: 'Revenue grew'",
        'the report says "revenue  grew by\n12 % … since 2019."',
        'It calls it the ""strongest" quarter since 2019"',
        "报告写道“营业收入四百二十万元，同比增长百分之十二”",
        "「同比增长百分之十二，创历史新高」",
        'The reference has "expected growth is twelve percent".',
        'The report has no sentence such as "costs fell by a third in the same period".',
        '"Costs fell by a third in the same period" is not stated anywhere.',
        "The row asks for output/summary.md, which was not delivered.",
        "summary.xlsx is missing",
        "The file mentions appendix.pdf.",
        "未找到“净利润同比下降百分之三十五点二”的表述",
        "the price is $4.2 million",
        'A 5" screen and a 7" screen are compared in the text',
        'The terms "net" and "gross" are used.',
    ],
)
def test_section_4_what_is_there_or_names_nothing_resolves(pack, evidence):
    assert pack.resolves(evidence)


@pytest.mark.parametrize(
    "evidence",
    [
        "output/report.md#¶6",
        "[¶9]",
        "output/report.md#¶2-¶40",
        "output/data.csv#row 4",
        "output/data.csv#¶1",
        "output/tree.json#$.z",
        'output/tree.json#$["c d"][300]',
        "output/log.jsonl#L3",
        "My notes.txt#¶3",
        "Stated in output/summary.md",
        "table 2 of figures.xlsx",
        "output/report.md#¶2: “Revenue grew by 13 % to 4.2 million euros”",
        'It says "costs fell by a third in the same period".',
        'It says "Revenue grew by 12 % … the weakest quarter since 2019".',
        "报告写道“净利润同比下降百分之三十五点二”",
    ],
)
def test_section_4_what_is_not_there_does_not_resolve(pack, evidence):
    assert not pack.resolves(evidence)


def test_section_4_an_address_that_was_cut_is_not_there(pack_of):
    pack = pack_of({"long.md": "\n\n".join(f"Paragraph {n} " + "word " * 30 for n in range(400))}, tokens=2000)
    assert pack.resolves("output/long.md#¶1")
    assert pack.resolves("output/long.md#¶400")
    assert not pack.resolves("output/long.md#¶200")


def test_section_4_cells_of_rows_that_were_cut_may_be_there_and_those_of_no_sheet_are_not(pack_of):
    from openpyxl import Workbook

    book = Workbook()
    for row in range(1, 401):
        book.active.append([row, "some words of a row"])
    book.create_sheet("Last")["A1"] = "end"
    pack = pack_of({"book.xlsx": saved(book)}, tokens=2000)
    assert pack.extracts[0].omitted
    for cell in ("Sheet!B2", "Sheet!B200", "Sheet!B399", "cell A200", "book.xlsx#Sheet!A150:B250", "Last!A1"):
        assert pack.resolves(cell), cell
    for cell in ("Sheet!C2", "Plan!B200", "book.xlsx#Sheet9!A1", "Last!B1"):
        assert not pack.resolves(cell), cell


def test_section_4_slides_that_were_cut_are_there_and_those_after_the_last_are_not(pack_of):
    from pptx import Presentation

    made = Presentation()
    for number in range(60):
        made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = f"Title {number} " + "word " * 20
    pack = pack_of({"deck.pptx": saved(made)}, tokens=1500)
    assert pack.extracts[0].omitted
    assert pack.resolves("deck.pptx#slide 30") and pack.resolves("slides 29-31, shape 1") and pack.resolves("slide 60")
    assert not pack.resolves("deck.pptx#slide 61") and not pack.resolves("slide 75")


def test_section_4_a_file_that_nobody_can_open_has_no_address(pack_of):
    pack = pack_of({"deck.pptx": b"PK\x03\x04rest", "book.xlsx": b"PK\x03\x04rest"})
    assert not pack.resolves("deck.pptx#slide 3")
    assert pack.resolves("deck.pptx cannot be opened, so slide 3 is unknown")


def test_section_4_a_quote_across_the_pieces_of_a_long_paragraph_resolves(pack_of):
    text = " ".join(f"word{n}" for n in range(2000))
    pack = pack_of({"long.md": text})
    assert len(pack.extracts[0].units) > 5
    assert all(pack.resolves(f'It says "{text[start : start + 60]}"') for start in range(0, len(text) - 60, 97))


PIECES = ["x", "x.y", "/", "a.md.", "¶1-", "row 1 to ", "$.a", '$["', '"a ', "“a", "no ", "1"]
OFFICE_PIECES = [
    "slides 1, ",
    "slides 1-2 to ",
    "第1",
    "第1-2页",
    "p.",
    "p. 3, ",
    "a1:",
    "!b7",
    "'!b7",
    "cells b7",
    "slide ",
    "' ",
]


@pytest.mark.parametrize("piece", [*PIECES, *OFFICE_PIECES])
def test_a_citation_that_never_ends_is_looked_up_in_linear_time(pack, office, piece):
    start = time.process_time()
    pack.resolves(piece * 50_000)
    office.resolves(piece * 10_000)
    assert time.process_time() - start < 10  # well under a second; from each letter anew it would be minutes


def deck():
    from pptx import Presentation

    presentation = Presentation()
    for number in range(1, 6):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Title of part {number}"
        slide.placeholders[1].text = f"Words on part {number}, taken from Smith 2020, p. 45"
    return saved(presentation)


def workbook():
    from openpyxl import Workbook
    from openpyxl.comments import Comment

    book = Workbook()
    sheet = book.active
    sheet.title = "Sheet1"
    for row in range(1, 11):
        sheet.append([f"item {row}", row, None, "=SUM('Old plan'!B2:B9)", "x", "y"])
    sheet["H2"].comment = Comment("why", "A")
    for name in ("Budget 2024", "销售"):
        other = book.create_sheet(name)
        other["B7"] = f"total of {name}"
    return saved(book)


def document():
    from docx import Document

    report = Document()
    report.sections[0].header.paragraphs[0].text = "confidential"
    for number in range(1, 13):
        report.add_paragraph(f"Paragraph number {number}")
    for size in (2, 3):
        table = report.add_table(size, 2)
        for row in table.rows:
            row.cells[0].text = row.cells[1].text = "cell"
    return saved(report)


def pdf(pages):
    """Pages without text, which have no passage of their own."""
    import pypdfium2

    document = pypdfium2.PdfDocument.new()
    for _ in range(pages):
        document.new_page(200, 200)
    return saved(document)


def notebook():
    cells = [
        {"cell_type": "code", "source": f"x = {n}", "outputs": [{"output_type": "stream", "text": "1"}]}
        for n in range(4)
    ]
    return json.dumps({"cells": cells, "nbformat": 4})


def archive():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("in/file.md", "one\n\ntwo\n\nthree")
        made.writestr("inner.py", "a = 1\n" * 12)
        made.writestr("book.xlsx", workbook())
    return buffer.getvalue()


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    from PIL import Image

    root = tmp_path_factory.mktemp("office")
    (root / "output").mkdir()
    files = {
        "deck.pptx": deck(),
        "slide 40 draft.pptx": deck(),
        "book.xlsx": workbook(),
        "report.docx": document(),
        "paper.pdf": pdf(6),
        "nb.ipynb": notebook().encode(),
        "code.py": b"first = 1\n\n\n" * 10 + b"last = 2\n",
        "data.csv": b"a,b\n1,2\n3,4\n",
        "all.zip": archive(),
        "chart.png": saved_picture(Image.new("RGB", (60, 40), "red")),
    }
    for name, content in files.items():
        (root / "output" / name).write_bytes(content)
    return build_pack(read_submission(root), budget_tokens=50_000, sights="none")


@pytest.fixture(scope="module")
def counted(office, tmp_path_factory):
    """A submission of which every page is counted."""
    root = tmp_path_factory.mktemp("counted")
    (root / "output").mkdir()
    (root / "output" / "deck.pptx").write_bytes(deck())
    (root / "output" / "paper.pdf").write_bytes(pdf(6))
    return build_pack(read_submission(root), budget_tokens=50_000)


def saved_picture(picture):
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "evidence",
    [
        "output/deck.pptx#slide 3",
        "deck.pptx#slide 3/shape 2",
        "[slide 3/shape 2]",
        "slide 3",
        "Slide 3, shape 2 has the words",
        "page 3, shape 2 has the words",
        "Slide #3 and slide no. 4",
        "On slides 3-5 the parts are named",
        "slides 1, 3 and 5",
        "slides 1 to 5, 40 words each",
        "Slides 2–4: 12 bullet points, 5 % growth",
        "(slide 5; 16:9)",
        "page 4 of the deck",
        "第3张幻灯片",
        "第3页、第5页写明了",
        "第三页和第五张幻灯片",
        "第2-4页",
        "幻灯片3",
        "deck.pptx 中第 5 页",
        "幻灯片 2 和幻灯片 4",
        "there is no slide 12",
        "Slide 12 is missing",
        "The row asks for ten slides, so slide 10 should have sources",
        "第12页不存在",
        "没有第12张幻灯片",
        "slide-12.png was not drawn, 12 slides wanted",
        "Cited on it is Smith (2020), page 45",
        "output/slide 40 draft.pptx#slide 5",
        "book.xlsx#Sheet1!B7",
        "output/book.xlsx#Sheet1!A7:F7",
        "Sheet1!B7",
        "Sheet1!$B$7",
        "Sheet1！B7",
        "[book.xlsx]Sheet1!B7",
        "sheet1!b2:b9 and Sheet1!B:B",
        "Sheet1!C3 is empty",
        "Sheet1!H2 carries a comment",
        "'Budget 2024'!B7",
        "book.xlsx#Budget 2024!B7",
        "Budget 2024!B7",
        "销售!B7",
        "book.xlsx#B7",
        "cell B7 of book.xlsx",
        "cells B2:B9",
        "单元格B7",
        "B7单元格的数值",
        "D3 holds =SUM('Old plan'!B2:B9)",
        "cell Z7 is empty",
        "The row wants a total in cell B90",
        "data.csv#row 3",
        "data.csv#B3",
        "report.docx#¶12",
        "report.docx#table 2/row 3",
        "table 2/row 3",
        "report.docx#header 1",
        "report.docx, page 9",
        "Table 7 of the annual report",
        "footnote 9",
        "paper.pdf#p4",
        "paper.pdf#p4/¶2",
        "p. 4",
        "pp. 4-6",
        "page 4 and pages 5, 6",
        "[p6]",
        "nb.ipynb#cell 4/output 1",
        "cell 4",
        "Cells 2-4",
        "code.py#L10-L20",
        "code.py#L1, L31",
        "all.zip#in/file.md!¶3",
        "all.zip!in/file.md#¶3",
        "in/file.md#¶3",
        "all.zip#inner.py!L12",
        "all.zip#book.xlsx!Sheet1!B7",
        "chart.png#picture",
        "The P0 and p95 figures, a 3-page note, 20 slides per hour",
        "report.docx#Summary",
        "It has only 5 slides. 12 were wanted.",
        "a 2-page 2024 budget, and the slides 2024 brought",
        "Slide 5 – 12 suppliers; slides 3 and 4 and 20 sources",
        "slides 1, 2, 15 suppliers",
        "Complaint ¶ 45",
        "stated in ¶2, data.csv#row 2, and [¶3] from data.csv",
    ],
)
def test_section_4_addresses_of_every_kind_resolve_as_people_write_them(office, evidence):
    assert office.resolves(evidence)


@pytest.mark.parametrize(
    "evidence",
    [
        "output/deck.pptx#slide 6",
        "deck.pptx#slide 3/shape 9",
        "[slide 3/shape 9]",
        "slide 12",
        "Slide 0 has a title",
        "slides 3-12",
        "slides 2, 4 and 50",
        "On slide 12, the chart has no labels",
        "deck.pptx, slide 6: a chart",
        "slide 6 of deck.pptx",
        "第12张幻灯片",
        "标题在第12张幻灯片上",
        "幻灯片 9",
        "output/slide 40 draft.pptx#slide 6",
        "book.xlsx#Sheet1!B70",
        "Sheet1!B70",
        "Sheet1!K7",
        "Sheet1!B20:B30",
        "'Budget 2025'!B7",
        "Budget 2024!B8",
        "book.xlsx#Sheet9!B7",
        "销售!B70",
        "book.xlsx#B70",
        "cell B70",
        "cell Z7 holds the total",
        "单元格B70",
        "B70单元格的数值",
        "data.csv#row 4",
        "data.csv#B9",
        "report.docx#¶13",
        "report.docx#table 3",
        "report.docx#table 1/row 3",
        "table 1/row 9",
        "report.docx#header 2",
        "paper.pdf#p7",
        "paper.pdf, p. 7",
        "nb.ipynb#cell 5",
        "nb.ipynb#cell 4/output 2",
        "code.py#L10-L90",
        "all.zip#in/file.md!¶4",
        "in/file.md#¶4",
        "all.zip#inner.py!L13",
        "all.zip#book.xlsx!Sheet1!B70",
    ],
)
def test_section_4_an_address_of_any_kind_that_is_not_there_is_found_out(office, evidence):
    assert not office.resolves(evidence)


@pytest.mark.parametrize("evidence", ["page 44", "pp. 3-9", "第十二页写明了", "第3-9页", "pages 3 and 77", "[p7]"])
def test_section_4_a_page_that_no_file_has_is_found_out_where_all_pages_are_counted(office, counted, evidence):
    assert not counted.resolves(evidence)
    assert office.resolves(evidence)  # nobody counted those of report.docx
