"""SPEC 8: decks from models are often broken; each break costs what is broken, and is said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pptx.util import Inches

from rubric_env.evidence import EvidenceStore
from tests.evidence.decks import NAMESPACES, RELS, SLIDE, deck, png, related, shape, shown, text_box, with_shapes
from tests.evidence.office import changed, encrypted, saved, strict

THREE = ["[slide 1/title] One", "[slide 2/title] Two", "[slide 3/title] Three"]
PRESENTATION, PRESENTATION_RELS = "ppt/presentation.xml", "ppt/_rels/presentation.xml.rels"


def three() -> bytes:
    return saved(deck("One", "Two", "Three"))


def pictured() -> bytes:
    made = deck("Title")
    made.slides[0].shapes.add_picture(png(), Inches(1), Inches(3), Inches(4), Inches(3))
    return saved(made)


def removed(pattern: str):
    return lambda text: re.sub(pattern, "", text)


@pytest.mark.parametrize(
    "changes",
    [
        {"[Content_Types].xml": None},
        {"[Content_Types].xml": removed(r'<Override PartName="/ppt/slides/slide2.xml"[^>]*>')},
        {"[Content_Types].xml": removed(r"<Default [^>]*>")},
        {"[Content_Types].xml": lambda text: text.replace("presentation.main", "slideshow.main")},
        {"[Content_Types].xml": lambda text: text.replace("presentation.main", "template.main")},
        {
            "[Content_Types].xml": lambda text: text.replace(
                "</Types>",
                '<Override PartName="/ppt/slideMasters/slideMaster9.xml" ContentType="application/xml"/></Types>',
            )
        },
        {SLIDE.format(2): lambda text: "\ufeff" + text},
        {PRESENTATION: lambda text: "\ufeff" + text},
        {SLIDE.format(2): lambda text: "\n " + text},
        {RELS.format(2): related("image", "NULL")},
        {RELS.format(2): related("tags", "../tags/tag99.xml")},
        {"_rels/.rels": None},
        {PRESENTATION_RELS: related("slideMaster", "slideMasters/slideMaster9.xml")},
        {"ppt/theme/theme1.xml": None, "ppt/notes.txt": "x"},
        {PRESENTATION_RELS: lambda text: text.replace('"slides/', '"/ppt/slides/')},
    ],
)
def test_what_stops_other_readers_costs_no_text(extract_of, changes) -> None:
    extract = extract_of("deck.pptx", changed(three(), changes))
    assert (extract.kind, shown(extract)) == ("pptx", THREE)


@pytest.mark.parametrize("suffix", [".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"])
def test_section_8_every_suffix_of_a_deck_is_read_and_strict_files_too(extract_of, suffix) -> None:
    made = deck("One")
    made.slides[0].shapes.add_table(1, 1, 0, Inches(3), Inches(2), Inches(1)).table.cell(0, 0).text = "cell"
    expected = ["[slide 1/title] One", "[slide 1/shape 2] table, 1 row, 1 column", "[slide 1/shape 2/row 1] cell"]
    assert shown(extract_of(f"deck{suffix}", strict(saved(made)))) == expected
    assert shown(extract_of(f"deck{suffix}", saved(made))) == expected


def test_a_slide_whose_part_is_missing_keeps_its_number(extract_of) -> None:
    extract = extract_of("deck.pptx", changed(three(), {SLIDE.format(2): None}))
    assert shown(extract) == [THREE[0], THREE[2]]
    assert "not extracted, which does not mean not there: slide 2: its part is missing" in extract.note
    assert "3 slides" in extract.note and "1 of 3 entries lead to no slide" in extract.note
    assert not extract.ours


def test_an_entry_of_the_list_that_leads_elsewhere_takes_the_slide_that_no_entry_names(extract_of) -> None:
    def mistaken(text: str) -> str:
        first = re.search(r'<p:sldMasterId [^>]*r:id="(\w+)"', text)[1]
        second = re.findall(r'<p:sldId [^>]*r:id="(\w+)"', text)[1]
        return re.sub(rf'(<p:sldId [^>]*r:id="){second}"', rf'\g<1>{first}"', text)

    extract = extract_of("deck.pptx", changed(three(), {PRESENTATION: mistaken}))
    assert shown(extract) == THREE
    assert "its list of slides is broken: 1 of 3 entries lead to no slide" in extract.note


@pytest.mark.parametrize(
    "changes",
    [
        {PRESENTATION: removed(r"<p:sldIdLst>.*</p:sldIdLst>")},
        {PRESENTATION_RELS: None},
        {PRESENTATION: None},
        {PRESENTATION: "<p:presentation"},
    ],
)
def test_without_a_list_slides_are_in_the_order_of_their_numbers(extract_of, changes) -> None:
    made = changed(three(), {SLIDE.format(1): None, SLIDE.format(10): lambda text: text, **changes})
    made = changed(made, {SLIDE.format(10): SLIDE_TEN, RELS.format(10): None})
    extract = extract_of("deck.pptx", made)
    assert [line.split("] ")[1] for line in shown(extract)] == ["Two", "Three", "Ten"]
    assert "list of slides is" in extract.note


SLIDE_TEN = (
    '<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><p:cSld><p:spTree>'
    f"{shape('Ten')}</p:spTree></p:cSld></p:sld>"
)


def test_slides_that_the_presentation_does_not_list_are_counted_and_not_read(extract_of) -> None:
    hidden = changed(three(), {PRESENTATION: removed(r'<p:sldId [^>]*id="257"[^>]*/>')})
    extract = extract_of("deck.pptx", hidden)
    assert shown(extract) == [THREE[0], "[slide 2/title] Three"]
    assert "1 slide in the file that the presentation does not list, not read" in extract.note


def test_a_slide_that_is_cut_keeps_what_came_before(extract_of) -> None:
    made = deck("One", "Two", "Three")
    text_box(made.slides[1], "before the cut", 1, 3)
    text_box(made.slides[1], "after the cut", 1, 4)
    data = changed(saved(made), {SLIDE.format(2): lambda text: text[: text.index("after")]})
    extract = extract_of("deck.pptx", data)
    assert shown(extract) == [*THREE[:2], "[slide 2/shape 2] before the cut", THREE[2]]
    assert "some of slide 2: its XML does not parse" in extract.note


@pytest.mark.parametrize("lost", ["a", "p", "r"])
def test_a_slide_that_forgot_a_namespace_keeps_its_words(extract_of, lost) -> None:
    made = deck("One", "Two", "Three")
    text_box(made.slides[1], "words", 1, 3).text_frame.paragraphs[0].runs[0].hyperlink.address = "https://a.example"
    data = changed(saved(made), {SLIDE.format(2): removed(rf' xmlns:{lost}="[^"]*"')})
    extract = extract_of("deck.pptx", data)
    assert shown(extract) == [*THREE[:2], "[slide 2/shape 2] words (https://a.example)", THREE[2]]
    assert "some of slide 2" in extract.note


def test_a_slide_of_garbage_costs_itself_alone(extract_of) -> None:
    extract = extract_of("deck.pptx", changed(three(), {SLIDE.format(2): b"\x00\x01garbage"}))
    assert shown(extract) == [THREE[0], THREE[2]]
    assert "slide 2: its XML does not parse" in extract.note
    assert not extract.ours


def test_without_a_layout_a_slide_takes_after_the_master(tmp_path: Path) -> None:
    data = changed(three(), {RELS.format(2): None, "ppt/slideLayouts/slideLayout6.xml": None})
    digest = digest_of(tmp_path, data)
    assert [page["title"] for page in digest["slides"]] == ["One", "Two", "Three"]
    assert [page["smallest_font"] for page in digest["slides"]] == [44, 44, 44]
    assert not digest["structure_ok"] and "slideLayout6.xml" in digest["structure_note"]
    assert digest["extract_errors"] == 2  # the layout, however many slides want it, and the slide that names none


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({RELS.format(1): lambda text: text.replace("../media/image1.png", "NULL")}, "its file is missing"),
        ({RELS.format(1): lambda text: text.replace("../media/image1.png", "../../NULL")}, "its file is missing"),
        ({"ppt/media/image1.png": None}, "its file is missing"),
        ({RELS.format(1): removed(r"<Relationship [^>]*image1[^>]*/>")}, "its file is missing"),
        ({SLIDE.format(1): removed(r"<p:blipFill>.*?</p:blipFill>")}, "its file is missing"),
        ({"ppt/media/image1.png": b"no picture"}, "PNG that does not open"),
        ({"ppt/media/image1.png": png(form="JPEG").read()}, "JPEG, 40 × 30 pixels"),
        (
            {
                RELS.format(1): lambda text: text.replace(
                    'Target="../media/image1.png"', 'Target="http://a.example/x.png" TargetMode="External"'
                )
            },
            "linked, not in the file: http://a.example/x.png",
        ),
    ],
)
def test_a_broken_picture_costs_itself_alone(extract_of, changes, says) -> None:
    data = changed(pictured(), changes)
    lines = shown(extract_of("deck.pptx", data))
    assert lines[0] == "[slide 1/title] Title"
    assert lines[1].startswith(f"[slide 1/shape 2] (picture, {says}")


@pytest.mark.parametrize(("form", "says"), [("MPO", "MPO, 40 × 30 pixels"), ("GIF", "GIF"), ("TIFF", "TIFF")])
def test_picture_formats_are_named(extract_of, form, says) -> None:
    data = changed(pictured(), {"ppt/media/image1.png": png(form=form).read()})
    assert says in shown(extract_of("deck.pptx", data))[1]


@pytest.mark.parametrize("suffix", ["emf", "wmf", "EMF"])
def test_vector_pictures_have_no_pixels(extract_of, suffix) -> None:
    moved = {
        "ppt/media/image1.png": None,
        f"ppt/media/image1.{suffix}": b"\x01\x00\x00\x00",
        RELS.format(1): lambda text: text.replace("image1.png", f"image1.{suffix}"),
    }
    lines = shown(extract_of("deck.pptx", changed(pictured(), moved)))
    assert lines[1].startswith(f"[slide 1/shape 2] (picture, {suffix.upper()}")
    assert "pixels" not in lines[1]


def test_shapes_without_a_place_come_last_and_zero_is_a_place(extract_of) -> None:
    xml = shape("nowhere", xfrm=False) + shape("corner", place="0,0,9,9") + shape("low", place="0,400,90,40")
    lines = shown(extract_of("deck.pptx", with_shapes(xml)))
    assert [line.split("] ")[1] for line in lines] == ["Title", "corner", "low", "nowhere"]


@pytest.mark.parametrize("bad", ["", "abc", "1e999", "99999999999999999999999", "-5"])
def test_sizes_that_make_no_sense_cost_no_text(extract_of, bad) -> None:
    xml = shape("still here").replace('cx="1270000"', f'cx="{bad}"') + shape("and this", place="0,300,90,40")
    lines = shown(extract_of("deck.pptx", with_shapes(xml)))
    assert {line.split("] ")[1] for line in lines} == {"Title", "still here", "and this"}


@pytest.mark.parametrize(
    "xml",
    [
        shape("<a:p><a:r><a:t/></a:r><a:r/><a:br/></a:p>"),
        "<p:sp/>",
        "<p:pic/>",
        "<p:grpSp/>",
        "<p:graphicFrame/>",
        "<p:cxnSp><p:nvCxnSpPr/></p:cxnSp>",
        "<x:new xmlns:x='urn:x'/>",
        shape().replace('id="90"', "").replace('name="Made"', ""),
        shape().replace('id="90"', 'id="2"'),
        shape(properties="<a:prstGeom prst='noSuchShape'/>"),
        shape(properties="<a:solidFill><a:schemeClr val='accent99'/></a:solidFill>"),
        shape(properties="<a:gradFill/>"),
    ],
)
def test_empty_and_unknown_shapes_cost_nothing(extract_of, xml) -> None:
    lines = shown(extract_of("deck.pptx", with_shapes(xml + shape("the last"))))
    assert lines[0] == "[slide 1/title] Title"
    assert "the last" in [line.split("] ")[1] for line in lines]


def test_text_in_a_shape_of_a_kind_that_nobody_knows_is_read(extract_of) -> None:
    odd = shape("odd words").replace("p:sp>", "p:odd>").replace("<p:sp ", "<p:odd ")
    assert "odd words" in "\n".join(shown(extract_of("deck.pptx", with_shapes(odd))))


@pytest.mark.parametrize(
    ("name", "content", "status", "why"),
    [
        ("deck.pptx", b"", "empty", ""),
        ("deck.pptx", b"<html><body>A page</body></html>", "read", "named .pptx, is plain text"),
        ("deck.pptx", "cut", "unreadable", "no zip container, or a damaged one"),
        ("deck.pptx", encrypted(), "unreadable", "encrypted: a password is needed"),
        ("deck.ppt", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "unsupported", "not read by this version"),
    ],
)
def test_what_is_no_deck_is_said(pack_of, name, content, status, why) -> None:
    data = three()[:-3000] if content == "cut" else content
    extracts = pack_of({name: data}).extracts
    if not data:
        assert extracts == ()  # nothing was delivered
        return
    assert extracts[0].status == status and why in extracts[0].note


def test_a_package_without_a_presentation_or_slides_is_no_deck(extract_of) -> None:
    parts = [SLIDE.format(n) for n in (1, 2, 3)]
    extract = extract_of("deck.pptx", changed(three(), {PRESENTATION: None, **dict.fromkeys(parts)}))
    assert (extract.status, extract.note) == ("unreadable", f"its main part {PRESENTATION} is missing")
    assert not extract.ours


def test_entities_and_deep_nesting_cost_one_slide(extract_of) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "boom"><!ENTITY y SYSTEM "file:///etc/passwd">]>'
    evil = SLIDE_TEN.replace("Ten", "&x;&y;")
    deep = SLIDE_TEN.replace(shape("Ten"), "<p:grpSp>" * 300 + "</p:grpSp>" * 300)
    data = changed(three(), {SLIDE.format(1): bomb + evil, SLIDE.format(2): deep})
    extract = extract_of("deck.pptx", data)
    assert THREE[2] in shown(extract)
    assert "boom" not in extract.text and "root:" not in extract.text
    assert "slide 2: its XML is nested deeper" in extract.note


def test_section_8_the_digest_says_what_is_missing(tmp_path: Path) -> None:
    fine = digest_of(tmp_path, three())
    assert (fine["structure_ok"], fine["extract_errors"], fine["structure_note"]) == (True, 0, "")
    broken = digest_of(tmp_path, changed(three(), {SLIDE.format(2): None}))
    assert (broken["structure_ok"], broken["extract_errors"], broken["slide_count"]) == (False, 1, 3)
    assert "slide 2: its part is missing" in broken["structure_note"]
    assert broken["slides"][1] == {"number": 2, "read": False}
    nothing = digest_of(tmp_path, changed(three(), {PRESENTATION: None, **{SLIDE.format(n): None for n in (1, 2, 3)}}))
    assert (nothing["structure_ok"], nothing["slides"]) == (False, [])


def digest_of(tmp_path: Path, data: bytes) -> dict:
    path = tmp_path / "deck.pptx"
    path.write_bytes(data)
    entry = EvidenceStore(tmp_path / "store").entry(path)
    return json.loads((entry.folder / "digest.json").read_text())


def test_what_is_no_slide_any_more_gives_its_words(extract_of) -> None:
    torn = {SLIDE.format(2): lambda text: f"<p:sld {NAMESPACES}>" + text[text.index("<a:p>") : text.index("</a:t>")]}
    extract = extract_of("deck.pptx", changed(three(), torn))
    assert shown(extract) == [THREE[0], "[slide 2] (not fully read) Two", THREE[2]]
    assert "some of slide 2" in extract.note


def test_more_slides_than_a_person_would_look_at_are_cut_and_said(extract_of) -> None:
    many = {SLIDE.format(n): SLIDE_TEN for n in range(1, 1002)}
    extract = extract_of("deck.pptx", changed(saved(deck()), {PRESENTATION: None, **many}))
    assert extract.status == "cut"
    assert "only the first 1,000 of 1,001 slides are read" in extract.note


def test_a_comment_part_or_notes_that_are_missing_cost_themselves_alone(extract_of) -> None:
    made = deck("Title")
    made.slides[0].notes_slide.notes_text_frame.text = "said aloud"
    wrong = {"ppt/notesSlides/notesSlide1.xml": None, RELS.format(1): related("comments", "../comments/none.xml")}
    extract = extract_of("deck.pptx", changed(saved(made), wrong))
    assert shown(extract) == ["[slide 1/title] Title"]
    assert "slide 1/notes" in extract.note and "comments of slide 1" in extract.note
    assert not extract.ours
