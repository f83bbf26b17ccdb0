"""SPEC 8, PowerPoint: what a rubric about slides asks for is measured: sizes, contrast, overlaps, edges, pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pptx.dml.color import RGBColor
from pptx.enum.dml import MSO_THEME_COLOR
from pptx.util import Inches, Pt

from rubric_env.evidence import EvidenceStore
from tests.evidence.decks import deck, png, shape, text_box, with_shapes
from tests.evidence.office import changed, saved


@pytest.fixture
def measured(tmp_path: Path):
    """The measured facts of the first slide, and the shapes of its JSON by name."""

    def measure(data: bytes) -> tuple[dict, dict]:
        path = tmp_path / "deck.pptx"
        path.write_bytes(data)
        folder = EvidenceStore(tmp_path / "store").entry(path).folder
        page = json.loads((folder / "pages" / "slide-001.json").read_text())
        return page["layout_facts"], {one["name"]: one for one in page["shapes"]}

    return measure


def layout_line(extract, label: str = "slide 1/layout") -> str:
    return next((unit.text for unit in extract.units if unit.label == label), "")


def run_of(box):
    return box.text_frame.paragraphs[0].runs[0]


def test_section_8_a_plain_slide_has_nothing_notable(extract_of) -> None:
    made = deck("A clear claim")
    run_of(text_box(made.slides[0], "One short sentence.", 1, 3, 8, 1)).font.size = Pt(24)
    extract = extract_of("deck.pptx", saved(made))
    assert "slide 1/layout" not in [unit.label for unit in extract.units]
    assert layout_line(extract, "deck/layout") == (
        "slides of 10.00 × 7.50 inches; 6 words on slides; fonts: Calibri 100%; text of 24 to 44 pt"
    )


def test_section_8_everything_notable_stands_in_one_line(extract_of) -> None:
    made = deck("")
    slide = made.slides[0]
    small = run_of(text_box(slide, "fine print", 1, 3, 3, 0.4))
    small.font.size, small.font.color.rgb = Pt(8), RGBColor(0xAA, 0xAA, 0xAA)
    slide.shapes.add_picture(png(100, 100), Inches(6), Inches(3), Inches(5), Inches(4))
    assert layout_line(extract_of("deck.pptx", saved(made))) == (
        "no title placeholder with text; text of 8 pt; contrast 2.32 in shape 2; shape 3 72 pt beyond the slide; "
        "1 empty placeholder (title); shape 3 at 20 pixels per inch; shape 3 stretched by 25%"
    )


@pytest.mark.parametrize(
    ("colour", "fill", "size", "ratio"),
    [
        ("777777", "FFFFFF", 12, 4.48),
        ("767676", "FFFFFF", 12, None),
        ("777777", "FFFFFF", 18, None),
        ("FFFF00", "FFFFFF", 40, 1.07),
        ("0000FF", "000000", 12, 2.44),
        ("FFFFFF", "000080", 12, None),
    ],
)
def test_contrast_is_that_of_wcag_and_large_text_needs_less(measured, colour, fill, size, ratio) -> None:
    xml = shape(
        f"<a:p><a:r><a:rPr sz='{size}00'><a:solidFill><a:srgbClr val='{colour}'/></a:solidFill></a:rPr><a:t>text</a:t>"
        "</a:r></a:p>",
        properties=f"<a:solidFill><a:srgbClr val='{fill}'/></a:solidFill>",
    )
    facts, shapes = measured(with_shapes(xml))
    found = [one["contrast"] for one in facts["low_contrast"]]
    if ratio == 1.07:  # not seen at all: that is marked in the text instead
        assert (found, shapes["Made"]["runs"][0]["contrast"]) == ([], 1.07)
    else:
        assert found == ([ratio] if ratio else [])


def test_colours_come_from_the_theme_with_their_changes(measured) -> None:
    made = deck("Title")
    box = text_box(made.slides[0], "text", 1, 3)
    box.name = "Theme"
    box.fill.solid()
    box.fill.fore_color.theme_color = MSO_THEME_COLOR.ACCENT_1
    box.fill.fore_color.brightness = 0.4
    run_of(box).font.color.theme_color = MSO_THEME_COLOR.TEXT_2
    drawn = made.slides[0].shapes.add_shape(1, Inches(5), Inches(3), Inches(2), Inches(1))
    drawn.name, drawn.text_frame.text = "Styled", "words"
    _, shapes = measured(saved(made))
    # Accent 1 of the default theme is 4F81BD; "lighter 40 %" of it is what PowerPoint calls 95B3D7.
    assert (shapes["Theme"]["fill"], shapes["Theme"]["runs"][0]["colour"]) == ("#95B3D7", "#1F497D")
    # A drawn shape takes fill and font colour from its style.
    assert shapes["Styled"]["runs"][0]["colour"] == "#FFFFFF"


def test_what_text_stands_on_is_found_behind_it(measured) -> None:
    made = deck("Title")
    slide = made.slides[0]
    slide.background.fill.solid()
    slide.background.fill.fore_color.rgb = RGBColor(0, 0, 0)
    panel = slide.shapes.add_shape(1, Inches(1), Inches(2), Inches(4), Inches(4))
    panel.fill.solid()
    panel.fill.fore_color.rgb = RGBColor(255, 255, 255)
    slide.shapes.add_picture(png(), Inches(6), Inches(2), Inches(3), Inches(3))
    for name, left, top in (("on panel", 1.5, 3), ("on slide", 1.5, 6.5), ("on picture", 6.5, 3), ("half", 4.7, 4)):
        text_box(slide, "many words", left, top).name = name
    _, shapes = measured(saved(made))
    contrasts = {name: shapes[name]["runs"][0].get("contrast") for name in shapes if name.startswith(("on", "half"))}
    assert contrasts == {"on panel": 21, "on slide": 1, "on picture": None, "half": None}


def test_sizes_are_inherited_and_scaled_as_shown(measured) -> None:
    made = deck("Title", layout=1)
    frame = made.slides[0].placeholders[1].text_frame
    frame.text = "first level"
    under = frame.add_paragraph()
    under.text, under.level = "second level", 1
    data = saved(made)
    facts, _ = measured(data)
    assert facts["font_sizes"] == {"28": 12, "32": 11, "44": 5}
    fitted = {
        "ppt/slides/slide1.xml": lambda text: "<a:bodyPr><a:normAutofit fontScale='50000'/></a:bodyPr>".join(
            text.rsplit("<a:bodyPr/>", 1)
        )
    }
    facts, _ = measured(changed(data, fitted))
    assert facts["font_sizes"] == {"14": 12, "16": 11, "44": 5}


def test_overlaps_are_of_what_is_seen_and_not_of_empty_boxes(measured) -> None:
    made = deck("Title")
    slide = made.slides[0]
    text_box(slide, "short", 1, 2, 3, 3)  # whose letters end far above the next box
    text_box(slide, "also short", 1, 4, 3, 1)
    picture = slide.shapes.add_picture(png(), Inches(5), Inches(2), Inches(4), Inches(3))
    text_box(slide, "a caption on it", 5.5, 3)
    facts, _ = measured(saved(made))
    assert facts["overlaps"] == []
    text_box(slide, "text on text", 1, 4.1, 3, 1)
    picture.left, picture.top = Inches(2), Inches(3.5)
    facts, _ = measured(saved(made))
    assert [(one["shapes"], one["share"]) for one in facts["overlaps"]] == [
        (["shape 3", "shape 4"], 0.28),
        (["shape 3", "shape 5"], 0.67),
        (["shape 4", "shape 5"], 0.4),
    ]


def test_text_that_does_not_fit_its_shape_is_estimated(measured) -> None:
    made = deck("Title")
    box = made.slides[0].shapes.add_shape(1, Inches(1), Inches(2), Inches(2), Inches(0.5))
    box.text_frame.text = "far too many words for a box as small as this one " * 3
    facts, _ = measured(saved(made))
    (spill,) = facts["text_outside_its_shape_estimated"]
    assert spill["shape"] == "shape 2" and 3 < spill["of_its_size"] < 12
    box.text_frame.text = "fits"
    assert measured(saved(made))[0]["text_outside_its_shape_estimated"] == []


def test_chinese_letters_are_as_wide_as_they_are_high(measured) -> None:
    made = deck("Title")
    box = made.slides[0].shapes.add_shape(1, Inches(1), Inches(2), Inches(2), Inches(0.5))
    box.text_frame.text = "季度营业收入同比增长百分之十二"
    (spill,) = measured(saved(made))[0]["text_outside_its_shape_estimated"]
    # 15 letters of 18 points in 129.6 points: three lines of 21.6 points in a box of 36.
    assert spill["of_its_size"] == 1.8


def test_shapes_beyond_the_slide_and_pictures_out_of_shape(measured) -> None:
    made = deck("Title")
    slide = made.slides[0]
    text_box(slide, "cut off", 9.5, 3, 1, 0.5)
    picture = slide.shapes.add_picture(png(400, 200), Inches(1), Inches(4), Inches(2), Inches(2))
    picture.crop_left = 0.5
    facts, _ = measured(saved(made))
    assert facts["outside_the_slide"] == [{"shape": "shape 2", "points_beyond": {"right": 36.0}, "entirely": False}]
    # Half of its width is cropped: 200 × 200 pixels in 2 × 2 inches.
    assert facts["pictures"] == [{"shape": "shape 3", "pixels_per_inch": 100, "stretched": 0.0}]


def test_a_slide_of_a_thousand_shapes_is_measured_in_bounds(measured) -> None:
    xml = "".join(shape(f"n{n}", place=f"{n % 40 * 18},{n // 40 * 20},17,19") for n in range(1000))
    facts, _ = measured(with_shapes(xml))
    assert facts["font_sizes"]["18"] == 3890
