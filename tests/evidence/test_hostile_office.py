"""SPEC 6, 8: office files with absurd dimensions, nesting, counts and numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evidence.hostile import office, zips
from tests.evidence.hostile.office import cell, paragraph, shape
from tests.evidence.hostile.reading import read
from tests.evidence.office import changed, encrypted

MAIN = {
    "docx": (office.document, "word/document.xml"),
    "xlsx": (office.workbook, "xl/worksheets/sheet1.xml"),
    "pptx": (office.deck, "ppt/slides/slide1.xml"),
}


@pytest.mark.parametrize("kind", MAIN)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (bytes(100 * zips.MEGABYTE), "unpacks to more than 64 MB"),
        (b"<a>" * 100_000, "XML"),
        (b"no XML", "XML"),
    ],
    ids=["a bomb", "nested without end", "no XML"],
)
def test_the_main_part_of_an_office_file_is_hostile(tmp_path: Path, kind: str, content: bytes, words: str) -> None:
    package, part = MAIN[kind]
    assert words in read(tmp_path, f"a.{kind}", changed(package(), {part: content})).note


def test_fifteen_million_elements_end_with_the_time_or_memory_for_one_file(tmp_path: Path) -> None:
    content = changed(office.document(), {"word/document.xml": b"<a>" + b"<a/>" * (15 * zips.MEGABYTE) + b"</a>"})
    extract = read(tmp_path, "a.docx", content, cpu_seconds=2)
    assert extract.status == "unreadable"
    assert "more than 2 s of CPU time" in extract.note or "memory" in extract.note


FAR = '<row r="1048576">{}</row><row r="999999999">{}</row>'.format(
    cell("XFD1048576", "a far cell"), cell("ZZZ999999999", "a farther cell")
)
ODD_ROWS = '<row r="{}">{}</row><row r="-5">{}</row><row r="x">{}</row>'.format(
    "9" * 5000, cell("A1", "first"), cell("A" * 5000, "second"), cell("", "third")
)
ODD_CELLS = "".join(
    f'<c r="A1" s="{style}" t="{kind}"><v>{value}</v></c>'
    for style in ("0", "1", "9" * 5000, "-1", "x")
    for kind in ("n", "s", "b", "e", "d", "?")
    for value in ("1e400", "nan", "-1e300", "x", "", "9" * 5000, "-5", "1e-320", "2958466")
)
FORMATS = (
    '<numFmts count="2"><numFmt numFmtId="200" formatCode="yyyy"/><numFmt numFmtId="x" formatCode="[h]"/></numFmts>'
)


def odd_numbers() -> bytes:
    rows = f'<row r="1">{ODD_CELLS}</row><row r="2">{cell("A2", "the last cell")}</row>'
    formats = '<xf numFmtId="200"/><xf numFmtId="46"/><xf numFmtId="99999"/><xf/>'
    return changed(
        office.workbook_with(rows),
        {
            "xl/styles.xml": lambda text: text.replace("<fonts", FORMATS + "<fonts", 1).replace(
                "</cellXfs>", formats + "</cellXfs>"
            )
        },
    )


def odd_columns() -> bytes:
    columns = '<cols><col min="x" max="-7" hidden="1"/><col min="1" max="99999999999" hidden="1"/></cols>'
    return changed(
        office.workbook(),
        {"xl/worksheets/sheet1.xml": lambda text: text.replace("<sheetData>", f"{columns}<sheetData>")},
    )


def in_workbook(old: str, new: str) -> bytes:
    return changed(office.workbook(), {"xl/workbook.xml": lambda text: text.replace(old, new)})


def many_names() -> bytes:
    names = "".join(f'<definedName name="n{number}">First!$A$1</definedName>' for number in range(100_000))
    return in_workbook("</sheets>", f"</sheets><definedNames>{names}</definedNames>")


def merged() -> bytes:
    ranges = '<mergeCell ref="A1:XFD1048576"/>' * 100_000
    return office.workbook_with(f'<row r="1">{cell("A1", "one")}</row>', f"<mergeCells>{ranges}</mergeCells>")


SHEETS: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "cells far away": (lambda: office.workbook_with(FAR), ("a far cell", "a farther cell")),
    "odd numbers of rows": (lambda: office.workbook_with(ODD_ROWS), ("first", "second", "third")),
    "odd numbers in cells": (odd_numbers, ("the last cell",)),
    "odd columns": (odd_columns, ("Quarter",)),
    "100,000 columns": (
        lambda: office.workbook_with('<row r="1">' + "".join(cell("", f"n{n}") for n in range(100_000)) + "</row>"),
        ("n0 ", "n99999"),
    ),
    "100,000 merged sheets": (merged, ("one",)),
    "100,000 names": (many_names, ("Quarter", "n99999")),
    "a name of megabytes": (lambda: in_workbook('name="First"', f'name="{"long " * 300_000}"'), ()),
}


@pytest.mark.parametrize("case", SHEETS)
def test_a_workbook_of_absurd_dimensions_is_read(tmp_path: Path, case: str) -> None:
    make, words = SHEETS[case]
    extract = read(tmp_path, "a.xlsx", make(), cpu_seconds=10)
    assert extract.status in ("read", "cut")
    assert [word for word in words if word not in extract.text] == []


@pytest.mark.parametrize(("columns", "rows"), [(16_000, 1_000_000), (10**9, 10**9)])
def test_a_sheet_that_unpacks_to_billions_of_cells_costs_its_file_alone(
    tmp_path: Path, columns: int, rows: int
) -> None:
    extract = read(tmp_path, "a.ods", office.repeated_cells(columns, rows))
    assert extract.kind == "ods" and (extract.status == "unreadable" or "x" in extract.text)


def test_sheets_that_all_are_one_part_end_with_the_time_for_one_file(tmp_path: Path) -> None:
    sheets = "".join(f'<sheet name="s{number}" sheetId="{number + 2}" r:id="rId1"/>' for number in range(20_000))
    extract = read(tmp_path, "a.xlsx", in_workbook("</sheets>", f"{sheets}</sheets>"), cpu_seconds=2)
    assert extract.note == "reading it takes more than 2 s of CPU time"


def long_paragraph() -> bytes:
    return office.document_with(paragraph("word " * 1_900_000) + paragraph("after"))


def deleted(depth: int) -> bytes:
    opening, closing = '<w:del w:author="A">', "</w:del>"
    run = "<w:r><w:t>deepest</w:t></w:r>"
    return office.document_with(f"<w:p>{opening * depth}{run}{closing * depth}</w:p>{paragraph('after')}")


def odd_symbols() -> bytes:
    symbols = "".join(f'<w:sym w:char="{code}"/>' for code in ("FFFFFFFF", "D800", "110000", "-1", "x", ""))
    return office.document_with(f"<w:p><w:r>{symbols}<w:t>between</w:t></w:r></w:p>{paragraph('after')}")


DOCUMENTS: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "tables in tables": (lambda: office.nested_tables(60), ("deepest", "after")),
    "boxes in boxes": (lambda: office.nested_boxes(45), ("deepest", "after")),
    "deletions in deletions": (lambda: deleted(150), ("deepest", "after")),
    "controls without content": (lambda: office.document_with("<w:sdt/>" + paragraph("after")), ("after",)),
    "a table of 100,000 columns": (lambda: office.wide_table(100_000), ("99999", "after")),
    "a paragraph of ten megabytes": (long_paragraph, ("word", "after")),
    "100,000 paragraphs": (lambda: office.document_with(paragraph("word") * 100_000 + paragraph("after")), ("word",)),
    "symbols that are none": (odd_symbols, ("between", "after")),
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_document_of_absurd_nesting_and_length_is_read(tmp_path: Path, case: str) -> None:
    make, words = DOCUMENTS[case]
    extract = read(tmp_path, "a.docx", make(), cpu_seconds=15)
    assert extract.status in ("read", "cut")
    assert [word for word in words if word not in extract.text] == []


def test_text_boxes_in_text_boxes_are_read_once(tmp_path: Path) -> None:
    assert read(tmp_path, "a.docx", office.nested_boxes(3, paragraphs=2)).text.count("deepest") == 2


def test_a_text_box_in_a_header_is_read(tmp_path: Path) -> None:
    box = f"<w:p><w:r><w:pict><w:txbxContent>{paragraph('in the box')}</w:txbxContent></w:pict></w:r></w:p>"
    content = changed(office.document(), {"word/header1.xml": lambda text: text.replace("</w:hdr>", f"{box}</w:hdr>")})
    assert "[header 1/text box 1] (text box) in the box" in read(tmp_path, "a.docx", content).text


def test_fifty_megabytes_in_one_paragraph_are_cut_and_it_is_said(tmp_path: Path) -> None:
    content = office.document_with(paragraph("word " * 10_000_000) + paragraph("after"))
    extract = read(tmp_path, "a.docx", content, cpu_seconds=10)
    assert "word word" in extract.text
    assert "not extracted, which does not mean not there: the end of the document" in extract.note


def odd_places() -> bytes:
    shapes = shape(30, "far away", x=10**30, size=10**300)
    shapes += shape(31, "nowhere").replace('x="0"', 'x="x"').replace('cx="900000"', 'cx="NaN"')
    shapes += shape(32, "no size").replace("<a:r>", f'<a:r><a:rPr sz="{"9" * 5000}" b="maybe"/>')
    return office.deck_with(shapes + shape(33, "after"))


DECKS: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "groups in groups": (lambda: office.nested_groups(90), ("deepest", "after", "A title")),
    "odd places and sizes": (odd_places, ("far away", "nowhere", "no size", "after")),
    "3,000 shapes": (lambda: office.deck_with("".join(shape(n, f"w{n}", n * 1000) for n in range(3000))), ("w0",)),
    "cells over a billion": (lambda: office.slide_table(3, 2, f'gridSpan="{10**9}" rowSpan="{10**9}"'), ("after",)),
    "cells over nothing": (lambda: office.slide_table(3, 2, 'gridSpan="x" rowSpan="-5"'), ("after",)),
    "a slide of a light year": (
        lambda: changed(office.deck(), {"ppt/presentation.xml": lambda text: text.replace('cx="9', f'cx="{9**400}')}),
        ("A title",),
    ),
    "a list of 20,000 slides": (
        lambda: changed(
            office.deck(),
            {
                "ppt/presentation.xml": lambda text: text.replace(
                    "</p:sldIdLst>", '<p:sldId id="300" r:id="rId7"/>' * 20_000 + "</p:sldIdLst>"
                )
            },
        ),
        ("A title",),
    ),
}


@pytest.mark.parametrize("case", DECKS)
def test_a_deck_of_absurd_nesting_and_places_is_read(tmp_path: Path, case: str) -> None:
    make, words = DECKS[case]
    extract = read(tmp_path, "a.pptx", make(), cpu_seconds=10)
    assert extract.status in ("read", "cut")
    assert [word for word in words if word not in extract.text] == []


def test_a_hundred_thousand_shapes_or_cells_cost_their_file_alone(tmp_path: Path) -> None:
    for content in (office.deck_with(shape(3, "w") * 100_000), office.slide_table(50_000)):
        extract = read(tmp_path, "a.pptx", content, cpu_seconds=2)
        assert extract.note == "reading it takes more than 2 s of CPU time" or "after" in extract.text


@pytest.mark.parametrize("name", ["a.pptx", "a.docx", "a.xlsx"])
def test_an_encrypted_file_is_named_so(tmp_path: Path, name: str) -> None:
    extract = read(tmp_path, name, encrypted())
    assert (extract.status, extract.ours) == ("unreadable", False) and "encrypted" in extract.note
