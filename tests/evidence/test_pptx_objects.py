"""SPEC 8, PowerPoint: tables, charts, diagrams, pictures, embedded files and media on a slide."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import openpyxl
import pptx
import pytest
from PIL import Image
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import PROG_ID
from pptx.util import Inches

from tests.evidence.decks import NAMESPACES, RELS, SLIDE, deck, png, related, shown, with_shapes, words
from tests.evidence.office import changed, saved


def test_section_8_tables_are_read_by_rows_with_their_merged_cells(extract_of) -> None:
    made = deck("Table")
    table = made.slides[0].shapes.add_table(3, 3, Inches(1), Inches(2), Inches(6), Inches(2)).table
    table.cell(0, 0).text, table.cell(0, 2).text = "Year", "Count"
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(1, 0).text, table.cell(1, 2).text = "2023", "5"
    table.cell(1, 0).merge(table.cell(2, 0))
    table.cell(2, 2).text = "6\nseven"
    table.cell(2, 0).text_frame.text = "under"
    assert shown(extract_of("deck.pptx", saved(made)))[1:] == [
        "[slide 1/shape 2] table, 3 rows, 3 columns",
        "[slide 1/shape 2/row 1] Year | ″ | Count",
        "[slide 1/shape 2/row 2] 2023 |  | 5",
        "[slide 1/shape 2/row 3] ″ [covered by the merged cell: under] |  | 6 / seven",
    ]


def charted() -> bytes:
    made = deck("Chart")
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("North", (1.5, None))
    data.add_series("South", (3, 4))
    place = Inches(1), Inches(2), Inches(6), Inches(4)
    frame = made.slides[0].shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
    frame.chart.has_title = True
    frame.chart.chart_title.text_frame.text = "Sales"
    frame.chart.value_axis.has_title = True
    frame.chart.value_axis.axis_title.text_frame.text = "Mio. €"
    frame.chart.plots[0].series[1].points[0].data_label.text_frame.text = "a record"
    frame._element.nvGraphicFramePr.cNvPr.set("descr", "Sales rise")
    return saved(made)


CHART = (
    "[slide 1/shape 2] chart (bar): Sales\naxis: Mio. €\ncategories: Q1; Q2\nNorth: 1.5\nSouth: 3; 4\n"
    "South, labels: a record"
)


def test_section_8_charts_are_read_with_categories_series_values_and_labels(extract_of) -> None:
    assert shown(extract_of("deck.pptx", charted()))[1:] == [CHART, "[slide 1/shape 2/alt] (alt text) Sales rise"]


@pytest.mark.parametrize(
    "changes",
    [
        {"ppt/charts/_rels/chart{}.xml.rels": None},
        {"ppt/embeddings/Microsoft_Excel_Sheet{}.xlsx": None},
        {
            "ppt/charts/_rels/chart{}.xml.rels": lambda text: text.replace(
                "<Relationship ", '<Relationship TargetMode="External" '
            )
        },
    ],
)
def test_a_chart_without_its_workbook_keeps_its_values(extract_of, changes) -> None:
    data = charted()
    names = " ".join(zipfile.ZipFile(io.BytesIO(data)).namelist())
    number = re.search(r"ppt/charts/chart(\d+)\.xml", names)[1]
    workbook = re.search(r"Sheet(\d+)\.xlsx", names)[1]
    real = {name.format(workbook if "embeddings" in name else number): change for name, change in changes.items()}
    assert shown(extract_of("deck.pptx", changed(data, real)))[1] == CHART


def test_a_chart_without_its_part_is_said_to_be_lost(extract_of) -> None:
    made = deck("Chart")
    data = XyChartData()
    data.add_series("s").add_data_point(1, 2)
    place = Inches(1), Inches(2), Inches(6), Inches(4)
    made.slides[0].shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *place, data)._element.nvGraphicFramePr.cNvPr.set(
        "descr", "A point"
    )
    missing = {RELS.format(1): lambda text: text.replace("/charts/", "/nowhere/")}
    extract = extract_of("deck.pptx", changed(saved(made), missing))
    assert shown(extract)[1] == "[slide 1/shape 2] (chart, not fully read) A point"
    assert "slide 1/shape 2: its part is missing (ppt/nowhere/" in extract.note


DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"


def diagram(xml: dict[str, str]) -> bytes:
    frame = (
        "<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id='7' name='d'/><p:cNvGraphicFramePr/><p:nvPr/>"
        "</p:nvGraphicFramePr><p:xfrm><a:off x='0' y='2540000'/><a:ext cx='2540000' cy='2540000'/></p:xfrm>"
        f"<a:graphic><a:graphicData uri='{DIAGRAM}'><dgm:relIds xmlns:dgm='{DIAGRAM}' r:dm='rIdD'/>"
        "</a:graphicData></a:graphic></p:graphicFrame>"
    )
    drawing = "http://schemas.microsoft.com/office/2007/relationships/diagramDrawing"
    data = changed(with_shapes(frame), {RELS.format(1): related("diagramData", "../diagrams/data1.xml", "rIdD")})
    data = changed(data, {RELS.format(1): related(drawing, "../diagrams/drawing1.xml", "rIdE")})
    return changed(data, {f"ppt/diagrams/{name}.xml": part for name, part in xml.items()})


def test_section_8_smart_art_is_read_from_its_data_or_else_from_its_drawing(extract_of) -> None:
    points = "".join(
        f"<dgm:pt modelId='{n}' type='{kind}'><dgm:t>{words(text)}</dgm:t></dgm:pt>"
        for n, (kind, text) in enumerate([("node", "Plan"), ("pres", "Plan"), ("node", "Do")])
    )
    data = f"<dgm:dataModel xmlns:dgm='{DIAGRAM}' {NAMESPACES}><dgm:ptLst>{points}</dgm:ptLst></dgm:dataModel>"
    drawing = f"<dsp:drawing xmlns:dsp='urn:dsp' {NAMESPACES}>{words('Plan')}{words('Act')}</dsp:drawing>"
    both = extract_of("deck.pptx", diagram({"data1": data, "drawing1": drawing}))
    assert shown(both)[1] == "[slide 1/shape 2] diagram\n- Plan\n- Do"
    drawn = extract_of("deck.pptx", diagram({"drawing1": drawing}))
    assert shown(drawn)[1] == "[slide 1/shape 2] diagram\n- Plan\n- Act"
    assert "the data of slide 1/shape 2: its part is missing" in drawn.note


def test_section_8_pictures_are_described_by_kind_size_and_alt_text(extract_of) -> None:
    made = deck("Pictures")
    slide = made.slides[0]
    first = slide.shapes.add_picture(png(), Inches(1), Inches(2))
    first._element.nvPicPr.cNvPr.set("descr", "A red house")
    second = slide.shapes.add_picture(png(1600, 900, "JPEG"), Inches(4), Inches(2), Inches(4))
    second._element.nvPicPr.cNvPr.set("descr", "")
    second.crop_left = 0.25
    assert shown(extract_of("deck.pptx", saved(made)))[1:] == [
        "[slide 1/shape 2] (picture, PNG, 40 × 30 pixels, alt text) A red house",
        "[slide 1/shape 3] (picture, JPEG, 1,600 × 900 pixels, cropped) no alt text",
    ]


def test_a_large_picture_that_all_slides_share_is_told_by_its_head(extract_of) -> None:
    made = deck("One", "Two")
    noise = io.BytesIO()
    Image.effect_noise((900, 800), 80).save(noise, "PNG")
    assert noise.tell() > 512 * 1024
    for slide in made.slides:
        noise.seek(0)
        slide.shapes.add_picture(noise, Inches(1), Inches(2))
    lines = shown(extract_of("deck.pptx", saved(made)))
    assert [line.split("(")[1].split(", alt")[0] for line in lines if "picture" in line] == [
        "picture, PNG, 900 × 800 pixels",
        "picture, PNG, 900 × 800 pixels",
    ]


def test_words_in_an_svg_picture_are_read(extract_of) -> None:
    made = deck("Title")
    made.slides[0].shapes.add_picture(png(), Inches(1), Inches(2))
    vector = '<asvg:svgBlip xmlns:asvg="http://schemas.microsoft.com/office/drawing/2016/SVG/main" r:embed="rIdX"/>'
    changes = {
        SLIDE.format(1): lambda text: text.replace(
            'r:embed="rId2"/>', f'r:embed="rId2"><a:extLst><a:ext>{vector}</a:ext></a:extLst></a:blip>'
        ),
        RELS.format(1): related("image", "../media/image2.svg"),
        "ppt/media/image2.svg": "<svg xmlns='http://www.w3.org/2000/svg'><g><text>Total: <b>12</b></text></g></svg>",
    }
    lines = shown(extract_of("deck.pptx", changed(saved(made), changes)))
    assert lines[2] == "[slide 1/shape 2/svg] (text in the picture) Total: 12"


def with_object(content: bytes, prog_id: PROG_ID | str) -> pptx.presentation.Presentation:
    made = deck("Objects")
    made.slides[0].shapes.add_ole_object(
        io.BytesIO(content), prog_id, Inches(1), Inches(2), Inches(1), Inches(1), png()
    )
    return made


def test_section_8_embedded_files_are_listed_and_read_and_media_are_listed(extract_of, tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["profit", 42])
    workbook.properties.creator = ""
    made = with_object(saved(workbook), PROG_ID.XLSX)
    film = tmp_path / "film.mp4"
    film.write_bytes(b"y" * 99)
    made.slides[0].shapes.add_movie(str(film), Inches(4), Inches(2), Inches(2), Inches(2), png(), "video/mp4")
    extract = extract_of("deck.pptx", saved(made))
    listed, *inside, video = shown(extract)[1:]
    assert listed.startswith("[slide 1/shape 2] (embedded file) Excel.Sheet.12") and listed.endswith(" bytes")
    assert any("slide 1/shape 2!Sheet!" in line and "profit" in line and "42" in line for line in inside)
    assert video == "[slide 1/shape 3] (video) media1.mp4, 99 bytes"
    assert "1 video; 1 embedded object" in extract.note


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(900), "is an embedded file (office document), not read"),
        (b"PK\x03\x04 no zip", "is an embedded file (archive), not read"),
        (b"\x89PNG\r\n\x1a\n no picture", "cannot be read: "),
    ],
)
def test_an_embedded_file_that_is_not_read_is_said_and_costs_nothing_else(extract_of, content, says) -> None:
    extract = extract_of("deck.pptx", saved(with_object(content, "Anything.1")))
    assert shown(extract)[0] == "[slide 1/title] Objects"
    assert shown(extract)[1].startswith("[slide 1/shape 2] (embedded file) Anything.1")
    assert f"slide 1/shape 2 {says}" in extract.note


def test_a_deck_in_a_deck_in_a_deck_is_read_one_level_deep(extract_of) -> None:
    innermost = saved(deck("innermost"))
    inner = saved(with_object(innermost, PROG_ID.PPTX))
    extract = extract_of("deck.pptx", saved(with_object(inner, PROG_ID.PPTX)))
    assert "[slide 1/shape 2!slide 1/title] Objects" in shown(extract)
    assert "innermost" not in extract.text
