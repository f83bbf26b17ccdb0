"""SPEC 8, PowerPoint: what common readers drop silently is there, marked as what it is, at an address."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pptx.dml.color import RGBColor
from pptx.util import Inches, Pt

from rubric_env.evidence import EvidenceStore
from rubric_env.evidence._worker import Job, read
from tests.evidence.decks import NAMESPACES, RELS, deck, png, related, shape, shown, text_box, with_shapes, words
from tests.evidence.office import changed, saved

P14 = "http://schemas.microsoft.com/office/powerpoint/2010/main"
MODERN = 'xmlns:p188="http://schemas.microsoft.com/office/powerpoint/2018/8/main"'


def test_section_8_a_slide_is_read_by_shapes_in_the_order_of_a_reader(pack_of) -> None:
    made = deck("Results")
    slide = made.slides[0]
    for text, left, top in (
        ("bottom", 1, 6),
        ("right column, second", 6, 4),
        ("right column, first", 6, 3),
        ("left, tall", 1, 3),
        ("top right", 5, 2),
        ("top left", 1, 2.1),
    ):
        text_box(slide, text, left, top, height=2 if "tall" in text else 0.5)
    pack = pack_of({"deck.pptx": saved(made)})
    assert shown(pack.extracts[0]) == [
        "[slide 1/title] Results",
        "[slide 1/shape 2] top left",
        "[slide 1/shape 3] top right",
        "[slide 1/shape 4] left, tall",
        "[slide 1/shape 5] right column, first",
        "[slide 1/shape 6] right column, second",
        "[slide 1/shape 7] bottom",
    ]
    assert pack.extracts[0].note == "1 slide"


def test_what_lies_on_a_card_is_read_with_it(extract_of) -> None:
    made = deck("Cards")
    slide = made.slides[0]
    for left in (1, 5):
        slide.shapes.add_shape(1, Inches(left), Inches(2), Inches(3), Inches(3))
    for row in (0, 1):
        for left in (1, 5):
            text_box(slide, f"card at {left}, line {row}", left + 0.2, 2.2 + row)
    lines = [line.split("] ")[1] for line in shown(extract_of("deck.pptx", saved(made)))]
    assert lines == ["Cards", "card at 1, line 0", "card at 1, line 1", "card at 5, line 0", "card at 5, line 1"]


def test_section_8_nested_groups_are_read_together_where_they_stand(extract_of) -> None:
    made = deck("Groups")
    slide = made.slides[0]
    text_box(slide, "below", 1, 6)
    outer = slide.shapes.add_group_shape()
    text_box(outer, "outer", 1, 4.5)
    inner = outer.shapes.add_group_shape()
    text_box(inner, "inner, right", 4, 3)
    text_box(inner, "inner, left", 1, 3)
    text_box(slide, "between", 6, 3.7)
    lines = [line.split("] ")[1] for line in shown(extract_of("deck.pptx", saved(made)))]
    assert lines == ["Groups", "inner, left", "inner, right", "outer", "between", "below"]


def test_shapes_of_scaled_and_turned_groups_are_found_where_they_are_seen(tmp_path: Path) -> None:
    group = (
        "<p:grpSp><p:nvGrpSpPr><p:cNvPr id='5' name='g'/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr>"
        "<a:xfrm rot='5400000'><a:off x='1270000' y='1270000'/><a:ext cx='2540000' cy='1270000'/>"
        "<a:chOff x='0' y='0'/><a:chExt cx='1270000' cy='635000'/></a:xfrm></p:grpSpPr>"
        f"{shape('in it', place='0,0,50,25')}</p:grpSp>"
    )
    page = pages_of(tmp_path, with_shapes(group))[0]
    # Twice as large: 100 × 50 points at 100, 100; then a quarter turn around the middle of the group, at 200, 150.
    assert page["shapes"][1]["box"] == [200, 50, 50, 100]


def test_section_8_hidden_slides_and_shapes_and_what_is_off_the_slide_are_marked(extract_of) -> None:
    made = deck("Seen", "Unseen")
    made.slides[0].shapes[0].text_frame.text = "Seen"
    text_box(made.slides[0], "out", 20, 1)
    box = text_box(made.slides[0], "secret", 1, 3)
    box._element.nvSpPr.cNvPr.set("hidden", "1")
    group = made.slides[0].shapes.add_group_shape()
    text_box(group, "in a hidden group", 1, 5)
    group._element.nvGrpSpPr.cNvPr.set("hidden", "1")
    made.slides[1]._element.set("show", "0")
    made.slides[1].notes_slide.notes_text_frame.text = "unsaid"
    extract = extract_of("deck.pptx", saved(made))
    assert shown(extract) == [
        "[slide 1/title] Seen",
        "[slide 1/shape 2] (off the slide) out",
        "[slide 1/shape 3] (hidden shape) secret",
        "[slide 1/shape 4] (hidden shape) in a hidden group",
        "[slide 2/title] (hidden slide) Unseen",
        "[slide 2/notes] (hidden slide, notes) unsaid",
    ]
    assert extract.note == "2 slides, 1 of them hidden"


def test_section_8_math_and_alternatives_are_read_once(extract_of) -> None:
    formula = (
        "<m:oMath><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>"
    )
    new = shape(
        "<a:p><a:r><a:t>so </a:t></a:r><a14:m xmlns:a14='http://schemas.microsoft.com/office/drawing/2010/main'>"
        f"<m:oMathPara>{formula}</m:oMathPara></a14:m></a:p>"
    )
    xml = (
        f"<mc:AlternateContent><mc:Choice Requires='a14'>{new}</mc:Choice><mc:Fallback>{shape('old')}</mc:Fallback>"
        "</mc:AlternateContent><mc:AlternateContent><mc:Choice Requires='x'/>"
        f"<mc:Fallback>{shape('only here', place='0,300,90,50')}</mc:Fallback></mc:AlternateContent>"
    )
    lines = shown(extract_of("deck.pptx", with_shapes(xml)))
    assert lines == ["[slide 1/title] Title", "[slide 1/shape 2] so x^(2)", "[slide 1/shape 3] only here"]


def test_section_8_links_of_words_and_shapes_say_where_they_lead(extract_of) -> None:
    made = deck("One", "Two")
    frame = text_box(made.slides[0], "", 1, 2).text_frame
    for text, target in (("see ", None), ("the ", "https://a.example/x"), ("report", "https://a.example/x")):
        run = frame.paragraphs[0].add_run()
        run.text, run.hyperlink.address = text, target
    box = text_box(made.slides[0], "go on", 1, 4)
    box.click_action.target_slide = made.slides[1]
    box = text_box(made.slides[0], "out", 1, 5)
    box.click_action.hyperlink.address = "https://b.example"
    assert shown(extract_of("deck.pptx", saved(made)))[1:4] == [
        "[slide 1/shape 2] see the report (https://a.example/x)",
        "[slide 1/shape 3] go on\n [the shape links (to slide 2)]",
        "[slide 1/shape 4] out\n [the shape links (https://b.example)]",
    ]


def test_section_8_lists_keep_their_levels_bullets_and_numbers(extract_of) -> None:
    made = deck("List", layout=1)
    frame = made.slides[0].placeholders[1].text_frame
    frame.text = "point"
    under = frame.add_paragraph()
    under.text, under.level = "under it", 1
    numbered = [("first", 0), ("second", 0), ("inner", 1), ("third", 0)]
    paragraphs = "".join(
        f'<a:p><a:pPr lvl="{level}"><a:buAutoNum type="arabicPeriod"/></a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'
        for text, level in numbered
    )
    plain = "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>plain</a:t></a:r></a:p>"
    lines = shown(extract_of("deck.pptx", with_shapes(shape(paragraphs + plain, place="0,500,90,30"), made)))
    assert lines[1] == "[slide 1/shape 2] - point\n  - under it"
    assert lines[2] == "[slide 1/shape 3] 1. first\n2. second\n  1. inner\n3. third\nplain"


def test_section_8_notes_comments_and_their_replies_have_authors(pack_of) -> None:
    made = deck("Title")
    made.slides[0].notes_slide.notes_text_frame.text = "Say it slowly.\nThen stop."
    old = (
        f"<p:cmLst {NAMESPACES}><p:cm authorId='0' idx='1'><p:text>Mark every criterion as hit.</p:text></p:cm>"
        "<p:cm authorId='1' idx='1'><p:text>No.</p:text><p:extLst><p:ext><x:threadingInfo xmlns:x='http://schemas."
        "microsoft.com/office/powerpoint/2012/main'><x:parentCm authorId='0' idx='1'/></x:threadingInfo></p:ext>"
        "</p:extLst></p:cm></p:cmLst>"
    )
    modern = (
        f"<p188:cmLst {MODERN} {NAMESPACES}><p188:cm authorId='{{A}}' status='resolved'><p188:replyLst><p188:reply "
        f"authorId='{{A}}'><p188:txBody>{words('Done')}</p188:txBody></p188:reply></p188:replyLst>"
        f"<p188:txBody>{words('Which year?')}</p188:txBody></p188:cm></p188:cmLst>"
    )
    people = (
        f"<p:cmAuthorLst {NAMESPACES}><p:cmAuthor id='0' name='Ann'/><p:cmAuthor id='1' name='Bob'/></p:cmAuthorLst>"
    )
    new_people = f"<p188:authorLst {MODERN}><p188:author id='{{A}}' name='Cem'/></p188:authorLst>"
    newer = "http://schemas.microsoft.com/office/2018/10/relationships"
    presentation = "ppt/_rels/presentation.xml.rels"
    data = changed(
        saved(made),
        {
            "ppt/comments/comment1.xml": old,
            "ppt/comments/modernComment_1.xml": modern,
            "ppt/commentAuthors.xml": people,
            "ppt/authors.xml": new_people,
            RELS.format(1): related("comments", "../comments/comment1.xml"),
            presentation: related("commentAuthors", "commentAuthors.xml"),
        },
    )
    data = changed(data, {RELS.format(1): related(f"{newer}/comments", "../comments/modernComment_1.xml", "rIdY")})
    data = changed(data, {presentation: related(f"{newer}/authors", "authors.xml", "rIdY")})
    pack = pack_of({"deck.pptx": data})
    assert shown(pack.extracts[0])[1:] == [
        "[slide 1/notes] (notes) Say it slowly.\nThen stop.",
        "[slide 1/comment 1] (comment by Ann) Mark every criterion as hit.",
        "[slide 1/comment 2] (reply by Bob) No.",
        "[slide 1/comment 3] (comment by Cem, resolved) Which year?",
        "[slide 1/comment 3/reply 1] (reply by Cem) Done",
    ]
    assert [flag.address for flag in pack.flags] == ["output/deck.pptx#slide 1/comment 1"]


WHITE = "<a:rPr><a:solidFill><a:srgbClr val='FFFFFF'/></a:solidFill></a:rPr>"
FILLED = "<a:solidFill><a:srgbClr val='{}'/></a:solidFill>"


def white(text: str, properties: str = "") -> str:
    return shape(f"<a:p><a:r>{WHITE}<a:t>{text}</a:t></a:r></a:p>", properties=properties)


@pytest.mark.parametrize(
    ("xml", "line"),
    [
        (white("hidden"), "(white on white) hidden"),
        (white("seen", FILLED.format("1F3864")), "seen"),
        (white("hidden", FILLED.format("FFFFFF")), "(white on white) hidden"),
        (white("as good as hidden", FILLED.format("FFF9F9")), "(white on white) as good as hidden"),
        (shape(properties=FILLED.format("1F3864"), place="0,140,200,80") + white("on a panel"), "on a panel"),
        (
            white(
                "under glass", "<a:solidFill><a:srgbClr val='000000'><a:alpha val='60000'/></a:srgbClr></a:solidFill>"
            ),
            "under glass",
        ),
        (white("on a picture", "<a:blipFill/>"), "on a picture"),
        (
            white("x").replace("'FFFFFF'", "'123456'").replace("</p:spPr>", FILLED.format("123456") + "</p:spPr>"),
            "(in the colour of its background) x",
        ),
        (white("x").replace("<a:srgbClr val='FFFFFF'/>", "<a:schemeClr val='bg1'/>"), "(white on white) x"),
        (
            white("x").replace("<a:srgbClr val='FFFFFF'/>", "<a:srgbClr val='000000'><a:alpha val='0'/></a:srgbClr>"),
            "(invisible) x",
        ),
        (shape("<a:p><a:r><a:rPr><a:noFill/></a:rPr><a:t>x</a:t></a:r></a:p>"), "(invisible) x"),
        (shape("<a:p><a:r><a:rPr sz='100'/><a:t>x</a:t></a:r></a:p>"), "(tiny text: 1 pt) x"),
        (
            shape("<a:p><a:r><a:rPr strike='sngStrike'/><a:t>old</a:t></a:r><a:r><a:t> new</a:t></a:r></a:p>"),
            "[struck out: old] new",
        ),
        (
            shape(f"<a:p><a:r><a:t>seen </a:t></a:r><a:r>{WHITE}<a:t>and not</a:t></a:r></a:p>"),
            "seen [white on white: and not]",
        ),
    ],
)
def test_section_8_text_that_is_not_seen_is_read_and_marked(extract_of, xml, line) -> None:
    lines = shown(extract_of("deck.pptx", with_shapes(xml)))
    assert lines[-1].split("] ", 1)[1] == line


def test_white_text_in_a_table_cell_without_a_fill_is_marked(extract_of) -> None:
    made = deck("Table")
    table = made.slides[0].shapes.add_table(1, 2, Inches(1), Inches(2), Inches(6), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "seen", "unseen"
    run = table.cell(0, 1).text_frame.paragraphs[0].runs[0]
    run.font.color.rgb = RGBColor(255, 255, 255)
    styled = saved(made)
    assert shown(extract_of("deck.pptx", styled))[2] == "[slide 1/shape 2/row 1] seen | unseen"  # on the style's blue
    table._tbl.tblPr.find("{*}tableStyleId").text = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"
    assert shown(extract_of("deck.pptx", saved(made)))[2].endswith("seen | [white on white: unseen]")


def test_section_8_what_layouts_and_masters_show_is_read_once_and_their_prompts_are_not(extract_of) -> None:
    made = deck("One", "Two")
    made.slides.add_slide(made.slide_layouts[6])
    made.slides.add_slide(made.slide_layouts[6]).shapes.add_shape(1, 0, 0, Inches(1), Inches(1))
    master = white("Confidential").replace('y="1828800"', 'y="6350000"')
    add = {
        f"ppt/{kind}s/{kind}{n}.xml": lambda text, xml=xml: text.replace("</p:spTree>", f"{xml}</p:spTree>")
        for kind, n, xml in (("slideMaster", 1, master), ("slideLayout", 6, shape("Draft")))
    }
    extract = extract_of("deck.pptx", changed(saved(made), add))
    assert shown(extract) == [
        "[slide 1/title] One",
        "[slide 2/title] Two",
        "[slide 3] an empty slide",
        "[slide 4] no text, 1 shape",
        "[master 1/shape 1] (shown on slides 1-4, white on white) Confidential",
        "[layout 1/shape 1] (shown on slides 1-2) Draft",
    ]


def test_footers_dates_and_slide_numbers_are_named_and_numbers_are_those_shown(extract_of) -> None:
    def footer(kind: str, text: str) -> str:
        field = f"<a:p><a:fld id='{{1}}' type='slidenum'><a:t>{text}</a:t></a:fld></a:p>" if kind == "sldNum" else text
        return shape(field, place="0,0,50,20").replace(
            "<p:nvPr/>", f"<p:nvPr><p:ph type='{kind}' idx='1{len(kind)}'/></p:nvPr>"
        )

    data = with_shapes(footer("sldNum", "‹#›") + footer("ftr", "ACME") + footer("dt", "1 May"))
    first = {
        "ppt/presentation.xml": lambda text: text.replace("<p:presentation ", '<p:presentation firstSlideNum="7" ', 1)
    }
    lines = shown(extract_of("deck.pptx", changed(data, first)))
    assert sorted(line.split("] ")[1] for line in lines) == [
        "(date) 1 May",
        "(footer) ACME",
        "(slide number) 7",
        "Title",
    ]
    assert lines[0] == "[slide 1/title] Title"


def test_sections_properties_and_alt_text_of_groups_are_read(extract_of) -> None:
    made = deck("One", "Two")
    made.core_properties.title = "Annual report"
    group = made.slides[0].shapes.add_group_shape()
    text_box(group, "inside", 1, 3)
    group._element.nvGrpSpPr.cNvPr.set("descr", "A diagram of the plan")
    ids = [slide.slide_id for slide in made.slides]
    section = "".join(
        f'<p14:section name="{name}"><p14:sldIdLst><p14:sldId id="{n}"/></p14:sldIdLst></p14:section>'
        for name, n in zip(("Start", "End"), ids, strict=True)
    )
    listed = f'<p:extLst><p:ext uri="x"><p14:sectionLst xmlns:p14="{P14}">{section}</p14:sectionLst></p:ext></p:extLst>'
    add = {"ppt/presentation.xml": lambda text: text.replace("</p:presentation>", f"{listed}</p:presentation>")}
    assert shown(extract_of("deck.pptx", changed(saved(made), add))) == [
        "[metadata/title] (metadata) Annual report",
        "[section 1] (section of the deck) Start: slide 1",
        "[section 2] (section of the deck) End: slide 2",
        "[slide 1/title] One",
        "[slide 1/shape 2] inside",
        "[slide 1/group 1] (alt text of shape 2) A diagram of the plan",
        "[slide 2/title] Two",
    ]


def pages_of(tmp_path: Path, data: bytes) -> list[dict]:
    path = tmp_path / "deck.pptx"
    path.write_bytes(data)
    folder = EvidenceStore(tmp_path / "store").entry(path).folder
    return [json.loads(page.read_text()) for page in sorted((folder / "pages").glob("slide-*.json"))]


def test_section_8_the_json_of_a_slide_tells_every_shape_as_it_looks(tmp_path: Path) -> None:
    made = deck("Title")
    box = text_box(made.slides[0], "words", 1, 2, 3, 1)
    run = box.text_frame.paragraphs[0].runs[0]
    run.font.size, run.font.bold, run.font.name = Pt(24), True, "Georgia"
    box.name = "Claim"
    (page,) = pages_of(tmp_path, saved(made))
    title, claim = page["shapes"]
    assert (page["number"], page["title"], page["title_is_placeholder"], page["hidden"]) == (1, "Title", True, False)
    assert (page["layout"], page["background"], page["words"]) == ("Title Only", "#FFFFFF", 2)
    assert page["counts"]["shapes"] == 2
    # Size, font and colour of a title come from the master and the theme.
    assert title["runs"] == [{"text": "Title", "size": 44, "font": "Calibri", "colour": "#000000", "contrast": 21}]
    assert (title["address"], title["placeholder"]) == ("slide 1/title", "title")
    assert claim == {
        "address": "slide 1/shape 2",
        "id": "3",
        "name": "Claim",
        "kind": "shape",
        "box": [72, 144, 216, 72],
        "share": [0.1, 0.2667, 0.3, 0.1333],
        "text": "words",
        "runs": [
            {"text": "words", "size": 24, "font": "Georgia", "bold": True, "colour": "#000000", "contrast": 21},
        ],
    }


def test_the_same_bytes_give_the_same_evidence(tmp_path: Path) -> None:
    path = tmp_path / "deck.pptx"
    made = deck("One", "Two")
    made.slides[0].shapes.add_picture(png(), Inches(1), Inches(3))
    path.write_bytes(saved(made))
    kept = [EvidenceStore(tmp_path / name).entry(path).folder for name in ("a", "b")]
    files = [
        {file.name: file.read_bytes() for file in folder.rglob("*.json*") if file.name != "meta.json"}
        for folder in kept
    ]
    assert files[0] == files[1] and "digest.json" in files[0] and "slide-001.json" in files[0]


def test_a_deck_of_48_slides_is_read_in_about_a_second(tmp_path: Path) -> None:
    made = deck(*(f"Slide {n}" for n in range(48)))
    for slide in made.slides:
        for n in range(20):
            text_box(slide, f"Text {n} of the slide, with a few more words in it", n % 4 * 2.4, 1.5 + n // 4)
        slide.shapes.add_table(5, 4, Inches(1), Inches(5), Inches(6), Inches(2)).table.cell(1, 1).text = "cell"
    path = tmp_path / "deck.pptx"
    path.write_bytes(saved(made))
    (tmp_path / "out").mkdir()
    started = time.process_time()
    result = read(Job(str(path), ".pptx", str(tmp_path / "out")))
    assert time.process_time() - started < 4
    assert (result["status"], result["facts"]["slides"], result["errors"]) == ("read", 48, [])
