"""SPEC 6, 8: PDF files, pictures and pages of HTML that unpack to too much, refer to themselves, or end too early."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rubric_env.evidence import EvidenceStore
from rubric_env.evidence._store import Drawing
from tests.evidence.hostile import pdfs, pictures, xmls
from tests.evidence.hostile.reading import read

PDFS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a deep tree of pages": (lambda: pdfs.deep_page_tree(500), "Some words"),
    "a tree of pages without end": (pdfs.page_tree_of_itself, "cannot be opened"),
    "a tree of pages too deep to walk": (lambda: pdfs.deep_page_tree(20_000), "p1: Failed to load page"),
    "an object stream that unpacks": (pdfs.object_stream, "Some words"),
    "content that unpacks to 400 MB": (pdfs.content_bomb, "more than 2 s of CPU time"),
    "forms in forms": (pdfs.form_of_itself, "takes more than 2 s of CPU time|crashes its reader"),
    "a page of a light year": (lambda: pdfs.page(pdfs.words(), "0 0 1e9 1e9"), "Some words"),
    "a page without width": (lambda: pdfs.page(pdfs.words(), "0 0 0 800"), "Some words|no text on p1"),
    "100,000 comments": (lambda: pdfs.annotations(100_000), "note"),
    "100,000 words on a page": (lambda: pdfs.page(pdfs.words(count=100_000)), "Some words"),
    "5,000 pages": (lambda: pdfs.page(pdfs.words(), count=5000), "only the first 2,000 of 5,000 pages were read"),
    "nothing after its first line": (lambda: b"%PDF-1.7\n" + b"x" * 5000, "cannot be opened"),
}


@pytest.mark.parametrize("case", PDFS)
def test_a_hostile_pdf_costs_itself_alone(tmp_path: Path, case: str) -> None:
    make, words = PDFS[case]
    extract = read(tmp_path, "a.pdf", make(), cpu_seconds=10 if "00" in case and "MB" not in case else 2)
    assert any(word in f"{extract.note}\n{extract.text}" for word in words.split("|"))


def drawn(folder: Path, content: bytes, cpu_seconds: int = 2) -> Drawing:
    (folder / "a.pdf").write_bytes(content)
    store = EvidenceStore(folder / "store", cpu_seconds=cpu_seconds)
    return store.pictures(store.entry(folder / "a.pdf"), 170)


@pytest.mark.parametrize("box", ["0 0 1e9 1e9", "0 0 14400 1", "0 0 0 0", "0 0 0.0001 50000", "-9 -9 -99999 -99999"])
def test_pages_of_any_size_are_drawn_small_or_named(tmp_path: Path, box: str) -> None:
    drawing = drawn(tmp_path, pdfs.page(pdfs.words(), box))
    assert not drawing.ours
    assert all(picture.width <= 1081 and picture.height <= 1081 for picture in drawing.pictures)
    assert drawing.pictures or drawing.note


def test_a_page_that_cannot_be_drawn_costs_itself_alone(tmp_path: Path) -> None:
    broken = pdfs.page(pdfs.words(), count=3).replace(b"[3 0 R 3 0 R 3 0 R]", b"[3 0 R 9 0 R 3 0 R]")
    drawing = drawn(tmp_path, broken)
    assert [picture.page for picture in drawing.pictures] == [1, 3]
    assert (drawing.note, drawing.ours) == ("pages that cannot be drawn: 2", False)


def test_pages_that_were_drawn_when_the_time_was_over_are_kept(tmp_path: Path) -> None:
    drawing = drawn(tmp_path, pdfs.page(pdfs.words(count=9000), count=100), cpu_seconds=2)
    assert 0 < len(drawing.pictures) < 100
    assert (drawing.note, drawing.ours) == (f"only {len(drawing.pictures)} pages were drawn in time", True)


def test_a_page_that_takes_all_the_time_is_not_drawn_and_it_is_said(tmp_path: Path) -> None:
    drawing = drawn(tmp_path, pdfs.form_of_itself(), cpu_seconds=1)
    assert not drawing.pictures and drawing.note.startswith("not drawn: ")
    assert not drawing.ours


PICTURES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "3.6 billion pixels": ("a.png", lambda: pictures.png(60_000, 60_000), "more than 200,000,000 pixels"),
    "120 million pixels": ("a.png", lambda: pictures.white(12_000, 10_000), "12,000 × 10,000 pixels|memory"),
    "a line of two million pixels": ("a.png", lambda: pictures.white(2_000_000, 1), "2,000,000 × 1 pixels"),
    "a text that unpacks": ("a.png", lambda: pictures.compressed_text(100), "damaged picture"),
    "a PNG that is cut": ("a.png", lambda: pictures.picture("PNG")[:-3000], "damaged picture"),
    "a JPEG that is cut": ("a.jpg", lambda: pictures.picture("JPEG")[:-500], "damaged picture"),
    "a TIFF that is cut": ("a.tiff", lambda: pictures.picture("TIFF")[:-500], "picture"),
    "10,000 frames": ("a.gif", lambda: pictures.gif(10_000), "10000 frames"),
    "a directory without end": ("a.tiff", pictures.circular_tiff, "1 × 1 pixels"),
}


@pytest.mark.parametrize("case", PICTURES)
def test_a_hostile_picture_costs_itself_alone(tmp_path: Path, case: str) -> None:
    name, make, words = PICTURES[case]
    extract = read(tmp_path, name, make(), cpu_seconds=10)
    assert any(word in f"{extract.note}\n{extract.text}" for word in words.split("|"))


DEEP = "nested too deeply"
PAGES: dict[str, tuple[Callable[[], str], tuple[str, ...]]] = {
    "1,500 boxes in boxes": (lambda: xmls.nest("<div>", "</div>", 1500, "deepest") + "<p>after", ("deepest", "after")),
    "100,000 letters in letters": (lambda: "<p>before" + "<b>" * 100_000 + "deepest", ("before", DEEP)),
    "a table of 50,000 columns": (lambda: f"<table><tr>{'<td>c' * 50_000}</table><p>after", ("after",)),
    "nothing but marks": (lambda: "<" * 300_000 + "<p>after", ("after",)),
    "a tag that never ends": (lambda: "<p>before</p><p " + "a" * 1_000_000, ("before",)),
    "a chart as a drawing": (lambda: "<svg><g><text>Revenue</text><text>5 M</text></g></svg>", ("Revenue | 5 M",)),
}


@pytest.mark.parametrize("case", PAGES)
def test_a_page_of_absurd_nesting_is_read(tmp_path: Path, case: str) -> None:
    make, words = PAGES[case]
    extract = read(tmp_path, "a.html", make().encode(), cpu_seconds=10)
    assert [word for word in words if word not in f"{extract.note}\n{extract.text}"] == []


def test_thousands_of_attributes_cost_their_page_alone(tmp_path: Path) -> None:
    attributes = " ".join(f"a{number}=1" for number in range(200_000))
    extract = read(tmp_path, "a.html", f"<p {attributes}>hello</p>".encode(), cpu_seconds=2)
    assert extract.note == "reading it takes more than 2 s of CPU time" or "hello" in extract.text


@pytest.mark.parametrize(
    "content",
    [
        b'{"cells": [' + b'{"cell_type": "code", "source": "x", "outputs": []},' * 20_000 + b"{}]}",
        b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"cells": [{"cell_type": 5, "source": 7, "outputs": {"a": 1}}, null, 3, {"source": [1, null, []]}]}',
        b'{"cells": [{"cell_type": ["x"], "execution_count": {}, "source": {"a": 1}, "outputs": [{"data": 7}]}]}',
        b'{"worksheets": [{"cells": 5}, 7]}',
        b'{"cells": {"a": 1}, "metadata": null}',
    ],
    ids=["20,000 cells", "nested without end", "odd cells", "odd outputs", "odd sheets", "no list"],
)
def test_an_odd_notebook_costs_no_more_than_itself(tmp_path: Path, content: bytes) -> None:
    extract = read(tmp_path, "a.ipynb", content, cpu_seconds=10)
    assert extract.text or extract.note
