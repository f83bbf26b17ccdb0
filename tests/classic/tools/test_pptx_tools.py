"""make_pptx and edit_pptx: slides on which everything has its place, edits at the addresses that read_file shows."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path
from typing import Any

import pptx
import pytest
from PIL import Image
from pptx.util import Inches

from rubric_env.classic.tools import Workspace
from rubric_env.classic.tools._pptx import edit_pptx, make_pptx
from tests.classic.tools.office import pages, read, refusal
from tests.evidence.office import changed, saved

CHART: dict[str, Any] = {
    "kind": "column",
    "categories": ["Q1", "Q2", "Q3"],
    "series": [{"name": "2024", "values": [2.9, 3.0, None]}, {"name": "2025", "values": [3.1, 3.4, 3.9]}],
    "title": "Revenue, M€",
    "number_format": "0.0",
}
POINTS = [f"Point {n} says something of a usual length about the harbour line" for n in range(9)]
SHARES = {**CHART, "kind": "pie", "series": CHART["series"][1:]}
SLIDES: list[dict[str, Any]] = [
    {"title": "Harbour Line: the year", "subtitle": "Board, March 2025", "notes": "Welcome."},
    {
        "title": "Revenue grew 12 % because the night service filled its boats",
        "bullets": ["**Night service** carried more", "New stops", "  Old Quay: 1,200 a day", "- Fuel fell"],
        "notes": "Say why.",
    },
    {
        "title": "Two options",
        "columns": [{"heading": "Renovate", "bullets": ["Cheaper"]}, {"heading": "Rebuild", "bullets": ["Lasts"]}],
    },
    {"title": "Three pillars", "columns": [{"heading": f"Pillar {n}", "bullets": ["One", "Two"]} for n in range(3)]},
    {"title": "Figures", "table": [["Quarter", "Revenue", "Growth"], ["Q1", 3100, "2.1%"], ["Q2", 3400, "9.7%"]]},
    {"title": "Revenue", "chart": CHART},
    {
        "title": "Share of the night",
        "bullets": ["It grows"],
        "chart": {**CHART, "kind": "pie", "series": CHART["series"][1:]},
    },
    {"title": "The harbour", "picture": {"path": "bars.png", "alt": "Bars that rise"}, "bullets": ["See the bars"]},
    {"title": "What we ask for", "subtitle": "Decisions"},
    {
        "title": "本季度收入增长了百分之十二，主要来自夜间航线",
        "bullets": ["夜间航线增长 41%", "新增两个站点"],
    },
    {"title": "Ranking", "subtitle": "A lead line", "chart": {**CHART, "kind": "bar", "stacked": True}},
    {
        "title": "Dense",
        "bullets": [f"Point {n} says something of a usual length about the harbour line" for n in range(9)],
    },
    {
        "title": "Long table",
        "table": [["Name", "Amount", "Remark"], *([f"Item {n}", n, "agreed"] for n in range(15))],
    },
]


async def made(workspace: Workspace, slides: list[dict[str, Any]] = SLIDES) -> Path:
    Image.new("RGB", (1200, 700), "#336699").save(workspace.root / "bars.png")
    await make_pptx(workspace, "output/a.pptx", slides)  # type: ignore[arg-type]
    return workspace.root / "output/a.pptx"


async def edited(workspace: Workspace, *edits: dict[str, Any]) -> dict[str, str]:
    await edit_pptx(workspace, "output/a.pptx", [*edits])  # type: ignore[list-item]
    return read(workspace.root / "output/a.pptx")


# --- make -------------------------------------------------------------------------------------------------------------


async def test_slides_say_what_was_asked_and_nothing_is_wrong_with_their_layout(workspace: Workspace) -> None:
    units = read(await made(workspace))
    assert units["slide 1/title"] == "Harbour Line: the year"
    assert units["slide 1/notes"] == "Welcome."
    assert units["slide 2/shape 2"].splitlines() == [
        "- Night service carried more",
        "- New stops",
        "  - Old Quay: 1,200 a day",
        "- Fuel fell",
    ]
    assert units["slide 5/shape 2/row 2"] == "Q1 | 3100 | 2.1%"
    assert "categories: Q1; Q2; Q3" in units["slide 6/shape 2"]
    assert "Bars that rise" in units.values()
    assert not [label for label in units if label.startswith("slide") and label.endswith("/layout")]
    assert "slides of 13.33 × 7.50 inches" in units["deck/layout"]


async def test_layouts_are_real_and_no_placeholder_stays_empty(workspace: Workspace) -> None:
    deck = pptx.Presentation(str(await made(workspace)))
    names = [slide.slide_layout.name for slide in deck.slides]
    assert names[:6] == [*("Title Slide", "Title and Content", "Comparison", "Title Only", "Title Only", "Title Only")]
    assert names[8] == "Section Header"
    for slide in deck.slides:
        assert all(shape.text_frame.text.strip() for shape in slide.placeholders)
        assert slide.shapes.title is not None
    run = deck.slides[1].placeholders[1].text_frame.paragraphs[0].runs[0]
    assert (run.text, run.font.bold) == ("Night service", True)
    assert deck.slides[5].shapes[1].chart.has_legend


async def test_libreoffice_draws_a_page_for_each_slide(workspace: Workspace) -> None:
    assert pages(await made(workspace)) == len(SLIDES)


async def test_equal_arguments_make_equal_bytes(workspace: Workspace) -> None:
    first = (await made(workspace)).read_bytes()
    await asyncio.sleep(2.1)
    assert (await made(workspace)).read_bytes() == first


async def test_what_does_not_fit_is_refused_with_the_remedy_and_all_problems_at_once(workspace: Workspace) -> None:
    told = await refusal(
        make_pptx(
            workspace,
            "output/a.pptx",
            [
                {"title": " "},
                {"title": "word " * 60},
                {"title": "a", "bullets": ["word " * 200] * 10},
                {"title": "t", "table": [["a"]] + [["b"]] * 40},
                {"title": "c", "picture": {"path": "no.png", "alt": ""}, "table": [["a"], ["b"]]},
                {"title": "c", "picture": {"path": "no.png", "alt": ""}},
                {"title": "c", "columns": [{"heading": None, "bullets": ["a"]}]},
                {"title": "c", "chart": {**CHART, "categories": ["Q1"]}},
                {"title": "c", "chart": {**CHART, "kind": "pie"}},
            ],  # type: ignore[list-item]
        )
    )
    for problem in (
        "slide 1: its title is empty",
        "slide 2: title: ",
        "slide 3: bullets: ",
        "spread it over",
        "slide 4: table: of its 41 rows",
        "slide 5: table and picture: a slide has room for one of them",
        "slide 6: picture no.png: no such file",
        "slide 7: columns: two or three, not 1",
        "slide 8: chart: 2024, 2025 has not one value for each of the 1 categories",
        "slide 9: chart: a pie has one series",
    ):
        assert problem in told
    assert not (workspace.root / "output/a.pptx").exists()
    nothing: list[Any] = []
    assert "1 to 100 slides" in await refusal(make_pptx(workspace, "output/a.pptx", nothing))


# --- edit -------------------------------------------------------------------------------------------------------------


def scattered() -> bytes:
    """A deck whose shapes stand in the file in another order than a reader meets them, some of them in a group."""
    deck = pptx.Presentation()
    for number in range(2):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        for left, top in ((5, 5), (1, 5), (5, 2.5), (1, 2.5)):
            box = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(0.5))
            box.text_frame.text = f"{number} {left} {top}"
        group = slide.shapes.add_group_shape()
        group.shapes.add_textbox(Inches(5), Inches(3.6), Inches(2), Inches(0.5)).text_frame.text = "right"
        group.shapes.add_textbox(Inches(1), Inches(3.6), Inches(2), Inches(0.5)).text_frame.text = "left"
        slide.shapes.title.text = f"Title {number}"
    return changed(
        saved(deck), {"ppt/slides/slide1.xml": lambda text: text.replace("<p:spTree>", "<p:spTree><!-- a note -->", 1)}
    )


async def test_every_address_that_a_reader_shows_is_the_one_that_is_changed(workspace: Workspace) -> None:
    path = workspace.root / "output/a.pptx"
    path.write_bytes(scattered())
    before = read(path)
    labels = [label for label in before if label.startswith("slide") and not label.endswith("/layout")]
    assert len(labels) == 14
    wanted = {label: f"word {n}" for n, label in enumerate(labels)}
    after = await edited(workspace, *({"action": "replace", "at": at, "text": text} for at, text in wanted.items()))
    assert {label: after[label] for label in labels} == wanted


async def test_text_keeps_its_look_and_other_parts_stay(workspace: Workspace) -> None:
    path = await made(workspace)
    before = parts(path)
    await edited(workspace, {"action": "replace", "at": "slide 2/shape 2", "text": "- **One**\n  - Two\n- Three"})
    after = parts(path)
    assert {name for name in before | after if before.get(name) != after.get(name)} <= {
        "ppt/slides/slide2.xml",
        "docProps/core.xml",
    }
    frame = pptx.Presentation(str(path)).slides[1].placeholders[1].text_frame
    assert [(one.text, one.level, one.runs[0].font.size.pt) for one in frame.paragraphs] == [
        ("One", 0, 24),
        ("Two", 1, 22),
        ("Three", 0, 24),
    ]


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as package:
        return {name: package.read(name) for name in package.namelist()}


async def test_slides_are_inserted_replaced_and_deleted_at_the_addresses_of_the_file_as_it_was(
    workspace: Workspace,
) -> None:
    path = await made(workspace, [{"title": f"Slide {n}", "bullets": ["x"]} for n in range(1, 6)])
    await edit_pptx(
        workspace,
        "output/a.pptx",
        json.dumps(  # type: ignore[arg-type]  # some models send their lists as text
            [
                {"action": "delete", "at": "slide 1"},
                {"action": "insert_after", "at": "slide 2", "slide": {"title": "After 2", "chart": CHART}},
                {"action": "insert_after", "at": "slide 2", "slide": {"title": "And this", "bullets": ["y"]}},
                {"action": "replace", "at": "slide 4", "slide": {"title": "New 4", "table": [["a"], ["b"]]}},
                {"action": "insert_before", "at": "slide 5", "slide": {"title": "Before 5"}},
                {"action": "replace", "at": "slide 5/title", "text": "Last"},
            ]
        ),
    )
    units = read(path)
    titles = [text for label, text in units.items() if label.endswith("/title") and label.startswith("slide")]
    assert titles == ["Slide 2", "After 2", "And this", "Slide 3", "New 4", "Before 5", "Last"]
    assert len(parts(path)) == len(zipfile.ZipFile(path).namelist())


async def test_rows_charts_and_notes_are_changed(workspace: Workspace) -> None:
    await made(workspace)
    units = await edited(
        workspace,
        {"action": "replace", "at": "slide 5/shape 2/row 2", "text": "Q1 | 9,999 | **1%**"},
        {"action": "insert_after", "at": "slide 5/shape 2/row 3", "text": "Q3 | 1 | 2"},
        {"action": "delete", "at": "slide 5/shape 2/row 3"},
        {
            "action": "replace",
            "at": "slide 6/shape 2",
            "chart": {**CHART, "title": "New", "series": CHART["series"][1:]},
        },
        {"action": "replace", "at": "slide 1/notes", "text": "Good morning."},
        {"action": "replace", "at": "slide 3/notes", "text": "Added."},
        {"action": "delete", "at": "slide 8/shape 2"},
    )
    assert [units[f"slide 5/shape 2/row {n}"] for n in (2, 3)] == ["Q1 | 9,999 | 1%", "Q3 | 1 | 2"]
    assert units["slide 6/shape 2"].splitlines()[0] == "chart (bar): New"
    assert "2024" not in units["slide 6/shape 2"]
    assert (units["slide 1/notes"], units["slide 3/notes"]) == ("Good morning.", "Added.")
    assert "See the bars" not in "".join(units.values())


async def test_words_are_found_on_slides_and_in_notes_or_in_one_place(workspace: Workspace) -> None:
    await made(workspace)
    units = await edited(workspace, {"action": "replace", "at": "slide 4", "find": "Pillar", "text": "Column"})
    assert "Column 0" in units.values()
    units = await edited(workspace, {"action": "replace", "find": "Say why", "text": "Explain"})
    assert units["slide 2/notes"] == "Explain."


async def test_a_slide_is_added_to_a_deck_of_another_template(workspace: Workspace) -> None:
    path = workspace.root / "output/a.pptx"
    path.write_bytes(scattered())
    units = await edited(
        workspace,
        {"action": "insert_after", "at": "slide 1", "slide": {"title": "New", "bullets": ["One", "Two"]}},
        {"action": "insert_after", "at": "slide 1", "slide": {"title": "Chart", "bullets": ["One"], "chart": CHART}},
    )
    assert units["slide 2/shape 2"].splitlines() == ["- One", "- Two"]
    assert "slide 2/layout" not in units and "slide 3/layout" not in units


async def test_an_edit_says_what_has_become_of_the_layout(workspace: Workspace) -> None:
    path = workspace.root / "output/a.pptx"
    path.write_bytes(scattered())
    edits: list[Any] = [{"action": "replace", "at": "slide 1/shape 2", "text": "far too many words for it\n" * 20}]
    assert "layout to look at:\nslide 1: " in await edit_pptx(workspace, "output/a.pptx", edits)


async def test_all_problems_of_edits_are_named_and_the_file_stays(workspace: Workspace) -> None:
    path = await made(workspace)
    before = path.read_bytes()
    edits: list[Any] = [
        {"action": "replace", "at": "slide 1/title", "text": "fine"},
        {"action": "replace", "at": "slide 99/title", "text": "x"},
        {"action": "replace", "at": "slide 2/shape 2"},
        {"action": "insert_after", "at": "slide 2"},
        {"action": "replace", "at": "slide 5/shape 2/row 2", "text": "a"},
        {"action": "replace", "find": "nowhere", "text": "x"},
        {"action": "replace", "at": "slide 5/shape 2", "text": "x"},
        {"action": "replace", "at": "slide 2/title", "chart": CHART},
        {"action": "insert_after", "at": "slide 2/title", "text": "x"},
        {"action": "insert_after", "at": "slide 2", "slide": {"title": "x", "picture": {"path": "no.png", "alt": ""}}},
    ]
    told = await refusal(edit_pptx(workspace, "output/a.pptx", edits))
    for problem in (
        "edit 2: 'slide 99/title' is no address of this file; near it are",
        "edit 3: replace needs `text`",
        "edit 4: insert_after at a slide needs `slide`",
        "edit 5: the row has 3 cells and `text` 1",
        "edit 6: 'nowhere' does not occur",
        "edit 7: this shape holds no text; of tables the rows can be replaced",
        "edit 8: `chart` goes with the shape of a chart",
        "edit 9: insert_after goes with a slide or a row",
        "edit 10: picture no.png: no such file",
    ):
        assert problem in told
    assert path.read_bytes() == before


@pytest.mark.parametrize("deck", [b"PK\x03\x04", b"text"], ids=["damaged", "text"])
async def test_a_file_that_is_no_deck_is_refused(workspace: Workspace, deck: bytes) -> None:
    (workspace.root / "a.pptx").write_bytes(deck)
    edits: list[Any] = [{"action": "delete", "at": "slide 1"}]
    assert "no zip container" in await refusal(edit_pptx(workspace, "a.pptx", edits))
