"""The policy's tools on files: what they say of every kind of file, and that they stay within the workspace."""

from __future__ import annotations

import asyncio
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_env.classic.tools import ToolRefusal, Workspace, _reading
from rubric_env.classic.tools._files import edit_file, list_files, read_file, search_files, write_file
from rubric_env.classic.tools._reading import PAGE
from rubric_env.classic.tools._workspace import FILE_BYTES, FILES, TOTAL_BYTES


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace.make(parent=tmp_path)
    yield made
    made.remove()


def put(workspace: Workspace, name: str, content: str | bytes) -> Path:
    path = workspace.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(call: object) -> str:
    with pytest.raises(ToolRefusal) as caught:
        asyncio.run(call)  # type: ignore[arg-type]
    return str(caught.value)


# --- list -----------------------------------------------------------------------------------------------------------


async def test_files_are_listed_with_their_sizes_and_what_they_are(workspace: Workspace) -> None:
    put(workspace, "data/a.csv", "a,b")
    put(workspace, "data/empty.txt", "")
    workspace.root.joinpath("link").symlink_to("/etc/passwd")
    os.mkfifo(workspace.root / "pipe")
    assert (await list_files(workspace)).splitlines() == [
        "data/a.csv (3 bytes)",
        "data/empty.txt (0 bytes)",
        "link (a link: not followed, not delivered)",
        "pipe (no regular file)",
    ]
    assert await list_files(workspace, "data") == "data/a.csv (3 bytes)\ndata/empty.txt (0 bytes)"
    assert await list_files(workspace, "/app/output/") == "(empty)"


async def test_a_long_list_is_cut_and_says_so(workspace: Workspace) -> None:
    for number in range(310):
        put(workspace, f"many/{number:03}", "x")
    lines = (await list_files(workspace)).splitlines()
    assert lines[0] == "many/000 (1 bytes)"
    assert lines[-1] == "… and 10 more: list a folder of them"
    assert len(lines) == 301


def test_what_cannot_be_listed_is_said(workspace: Workspace) -> None:
    put(workspace, "a.txt", "x")
    assert refusal(list_files(workspace, "a.txt")) == "a.txt: a file; read_file reads it"
    assert refusal(list_files(workspace, "b")) == "b: no such folder"
    assert "outside the workspace" in refusal(list_files(workspace, ".."))


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["output/a.md", "/app/output/a.md", "./output//x/../a.md", "/app//output/a.md"])
async def test_a_file_has_many_names(workspace: Workspace, name: str) -> None:
    assert await write_file(workspace, name, "x") == "wrote 1 bytes to output/a.md"
    assert await read_file(workspace, name) == "x"


@pytest.mark.parametrize("name", ["/appendix.md", "/etc/passwd", "..", "a/../../b", "/app/../b", "~/../../b"])
def test_nothing_outside_the_workspace_has_one(workspace: Workspace, name: str) -> None:
    assert "outside the workspace" in refusal(read_file(workspace, name))
    assert "outside the workspace" in refusal(write_file(workspace, name, "x"))


@pytest.mark.parametrize("target", ["/etc", "data", "nowhere", "link"])
def test_no_link_is_followed_not_even_inside(workspace: Workspace, target: str) -> None:
    put(workspace, "data/passwd", "x")
    workspace.root.joinpath("link").symlink_to(target)
    for call in (read_file(workspace, "link/passwd"), write_file(workspace, "link/passwd", "x")):
        assert "links are not followed" in refusal(call)
    assert "links are not followed" in refusal(write_file(workspace, "link", "x"))


async def test_a_file_whose_name_is_not_utf_8_is_read_by_the_name_in_the_list(workspace: Workspace) -> None:
    with open(os.fsencode(workspace.root) + b"/\xd6\xd0.txt", "w") as file:  # noqa: ASYNC230, PTH123 - bytes
        file.write("found")
    listed = await list_files(workspace)
    assert listed == "\\xd6\\xd0.txt (5 bytes)"
    assert await read_file(workspace, "\\xd6\\xd0.txt") == "found"
    assert await search_files(workspace, "found") == "\\xd6\\xd0.txt#L1: found"


# --- read -----------------------------------------------------------------------------------------------------------


async def test_a_text_is_read_as_it_is(workspace: Workspace) -> None:
    text = "# Title\n\n  indented\n[¶1] not ours\n\ttab\n"
    put(workspace, "a.md", text)
    assert await read_file(workspace, "a.md") == text


async def test_pages_put_together_are_the_text(workspace: Workspace) -> None:
    text = "".join(f"Line {number} of many, 中文 too.\n" for number in range(3000))
    put(workspace, "long.txt", text)
    pages, offset = [], 0
    while True:
        page = await read_file(workspace, "long.txt", offset)
        assert len(page) <= PAGE + 100
        more = re.search(r"\n\(it goes on: call read_file with offset=(\d+)\)$", page)
        pages.append(page[: more.start()] if more else page)
        if not more:
            break
        offset = int(more[1])
        assert pages[-1].endswith("\n")
    assert "".join(pages) == text
    assert len(pages) > 3


async def test_a_line_without_end_comes_in_pages_too(workspace: Workspace) -> None:
    put(workspace, "line.txt", "x" * (PAGE + 1))
    assert (await read_file(workspace, "line.txt")).endswith(f"\n(it goes on: call read_file with offset={PAGE})")
    assert await read_file(workspace, "line.txt", PAGE) == "x"


def test_an_offset_outside_the_text_is_refused(workspace: Workspace) -> None:
    put(workspace, "a.txt", "abc")
    assert "beyond the end: the text has 3 characters" in refusal(read_file(workspace, "a.txt", 3))
    assert "0 or more" in refusal(read_file(workspace, "a.txt", -1))


async def test_what_is_odd_about_a_text_is_said(workspace: Workspace) -> None:
    put(workspace, "gb.txt", "合同金额为四万二千元整，双方签字后生效。".encode("gb18030"))
    put(workspace, "huge.log", "x" * 99 + "\n" + "y" * 99 * 2**20)
    put(workspace, "empty.md", "")
    assert await read_file(workspace, "gb.txt") == (
        "(text; not UTF-8: read as GB18030)\n合同金额为四万二千元整，双方签字后生效。"
    )
    assert (await read_file(workspace, "huge.log")).startswith("(text; only the first 8,388,608 bytes were read)\nxxx")
    assert await read_file(workspace, "empty.md") == "(empty)"


def test_what_is_no_text_is_refused(workspace: Workspace) -> None:
    put(workspace, "garbage.txt", bytes(range(256)) * 100)
    put(workspace, "garbage.docx", b"PK\x03\x04" + bytes(range(256)))
    os.mkfifo(workspace.root / "pipe.txt")
    assert refusal(read_file(workspace, "garbage.txt")) == "garbage.txt: cannot be read: binary data, not text"
    assert refusal(read_file(workspace, "garbage.docx")).startswith("garbage.docx: cannot be read: ")
    assert refusal(read_file(workspace, "pipe.txt")) == "pipe.txt: not a regular file"
    assert refusal(read_file(workspace, "output")).startswith("output: a folder")
    assert refusal(read_file(workspace, "none.txt")) == "none.txt: no such file or directory"


async def test_files_that_cannot_be_read_share_a_time(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace.root / "a.docx").write_bytes(b"PK\x03\x04 and no zip")
    (workspace.root / "b.md").write_text("sound")
    monkeypatch.setattr(_reading, "UNREADABLE_SECONDS", 0)
    with pytest.raises(ToolRefusal, match="cannot be read"):
        await read_file(workspace, "a.docx")
    for name in ("a.docx", "b.md"):
        with pytest.raises(ToolRefusal, match="not opened: files that cannot be read have taken 0 s of this task"):
            await read_file(workspace, name)


async def test_documents_are_read_with_the_addresses_of_the_evidence(workspace: Workspace) -> None:
    docx, openpyxl = pytest.importorskip("docx"), pytest.importorskip("openpyxl")
    pptx, image = pytest.importorskip("pptx"), pytest.importorskip("PIL.Image")
    document = docx.Document()
    document.add_paragraph("First words")
    document.add_table(1, 2).cell(0, 1).text = "In a cell"
    document.save(workspace.root / "a.docx")
    book = openpyxl.Workbook()
    book.active.append(["Total", 42])
    book.save(workspace.root / "a.xlsx")
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "On a slide"
    deck.save(workspace.root / "a.pptx")
    image.new("RGB", (30, 20), "red").save(workspace.root / "a.png")
    put(workspace, "a.html", "<p>On a page</p><p hidden>Behind it</p>")
    put(workspace, "a.ipynb", '{"cells": [{"cell_type": "markdown", "source": ["In a notebook"]}], "nbformat": 4}')
    with zipfile.ZipFile(workspace.root / "a.zip", "w") as archive:
        archive.write(workspace.root / "a.docx", "inner/a.docx")
    read = {path.name: await read_file(workspace, path.name) for path in workspace.root.glob("a.*")}
    assert "\n[¶1] First words\n" in read["a.docx"]
    assert "In a cell" in read["a.docx"]
    assert "[Sheet!A1:B1]" in read["a.xlsx"]
    assert "slide 1" in read["a.pptx"]
    assert "30 × 20" in read["a.png"] or "30x20" in read["a.png"]
    assert "(hidden) Behind it" in read["a.html"]
    assert "In a notebook" in read["a.ipynb"]
    assert "[inner/a.docx!¶1] First words" in read["a.zip"]
    assert read["a.docx"].startswith("(docx")
    hits = await search_files(workspace, "IN A CELL")
    assert re.search(r"^a\.docx#\S.*: .*In a cell", hits, re.MULTILINE)
    assert re.search(r"^a\.zip#inner/a\.docx!\S.*: .*In a cell", hits, re.MULTILINE)


async def test_a_long_document_comes_in_pages(workspace: Workspace) -> None:
    document = pytest.importorskip("docx").Document()
    for number in range(1500):
        document.add_paragraph(f"Paragraph {number} says a little.")
    document.save(workspace.root / "long.docx")
    text, offset = "", 0
    while more := re.search(
        r"\n?\(it goes on: call read_file with offset=(\d+)\)$", page := await read_file(workspace, "long.docx", offset)
    ):
        text += page[: more.start()] + "\n"
        offset = int(more[1])
    text += page
    assert [int(n) for n in re.findall(r"Paragraph (\d+) says", text)] == list(range(1500))


# --- search ---------------------------------------------------------------------------------------------------------


async def test_hits_come_with_their_file_and_address(workspace: Workspace) -> None:
    put(workspace, "a.md", "one\n\nThe Total is 42\n")
    put(workspace, "b/c.csv", "name,total\nx,1\n")
    assert await search_files(workspace, "TOTAL") == "a.md#L3: The Total is 42\nb/c.csv#L1: name,total"
    assert await search_files(workspace, "total", "b") == "b/c.csv#L1: name,total"
    assert await search_files(workspace, "total", "a.md") == "a.md#L3: The Total is 42"
    assert await search_files(workspace, "t.tal") == "no line in 2 files contains it"


async def test_hits_without_end_are_counted(workspace: Workspace) -> None:
    put(workspace, "a.txt", "hit\n" * 80)
    lines = (await search_files(workspace, "hit")).splitlines()
    assert lines[49:] == ["a.txt#L50: hit", "… and 30 more: make the query or the path narrower"]


async def test_a_long_line_is_shown_around_its_hit(workspace: Workspace) -> None:
    put(workspace, "a.txt", "x" * 5000 + " needle " + "y" * 5000)
    hit = await search_files(workspace, "needle")
    assert len(hit) < 300
    assert re.fullmatch(r"a\.txt#L1: … x+ needle y+ …", hit)


async def test_files_that_cannot_be_searched_are_named(workspace: Workspace) -> None:
    put(workspace, "a.txt", "found")
    put(workspace, "b.pdf", b"%PDF-1.4 broken")
    lines = (await search_files(workspace, "found")).splitlines()
    assert lines[0] == "a.txt#L1: found"
    assert lines[1].startswith("(b.pdf: cannot be read: ")
    await asyncio.to_thread(refusal, search_files(workspace, "found", "b.pdf"))


@pytest.mark.parametrize("query", ["", " ", "two\nlines"])
def test_a_query_that_finds_nothing_anywhere_is_refused(workspace: Workspace, query: str) -> None:
    assert refusal(search_files(workspace, query)) == "query: give a text that stands in one line"


# --- write and edit -------------------------------------------------------------------------------------------------


async def test_a_workspace_takes_so_many_files(workspace: Workspace) -> None:
    for number in range(FILES - 1):
        put(workspace, f"files/{number}", "")
    assert await write_file(workspace, "last", "x") == "wrote 1 bytes to last"
    with pytest.raises(ToolRefusal, match=f"the workspace is full, it may hold {FILES} files"):
        await write_file(workspace, "one more", "x")
    assert await write_file(workspace, "last", "xx") == "wrote 2 bytes to last"


def test_a_workspace_takes_so_many_bytes(workspace: Workspace) -> None:
    for number in range(TOTAL_BYTES // FILE_BYTES):
        with put(workspace, f"large/{number}", "").open("wb") as file:
            file.truncate(FILE_BYTES)
    assert "the workspace is full, its files may have" in refusal(write_file(workspace, "a", "x"))
    workspace.accept(workspace.root / "large" / "0", FILE_BYTES)
    with pytest.raises(ToolRefusal, match="a file may have"):
        workspace.accept(workspace.root / "large" / "0", FILE_BYTES + 1)


def test_inputs_do_not_count_against_the_policy(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    for number in range(FILES + 1):
        inputs.joinpath(str(number)).write_text("x")
    made = Workspace.make(inputs, parent=tmp_path)
    made.write(made.root / "output" / "a", b"x")
    assert (made.files, made.size) == (2 * FILES + 1, TOTAL_BYTES + FILES + 1)


def test_a_pipe_is_not_written_to(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")
    assert refusal(write_file(workspace, "pipe", "x")) == "pipe: no regular file"
    assert refusal(edit_file(workspace, "pipe", "x", "y")) == "pipe: not a regular file"
    put(workspace, "file", "x")
    assert refusal(write_file(workspace, "file/below", "x")) in (
        "file/below: not a directory",
        "file/below: file exists",
    )


async def test_text_under_the_name_of_a_document_is_remarked_on(workspace: Workspace) -> None:
    told = await write_file(workspace, "output/a.docx", "x")
    assert told == "wrote 1 bytes to output/a.docx as plain text: no program will open it as .docx"


async def test_a_passage_is_replaced_when_it_occurs_once(workspace: Workspace) -> None:
    file = put(workspace, "a.md", "one\ntwo\ntwo too\nthree\n")
    assert await edit_file(workspace, "a.md", "three", "3") == "replaced 1 passage of a.md, at line 4"
    assert await edit_file(workspace, "a.md", "one\n", "") == "replaced 1 passage of a.md, at line 1"
    assert file.read_text() == "two\ntwo too\n3\n"
    wrong = {"two": "occurs 2 times", "four": "does not occur", "": "is empty"}
    for old, why in wrong.items():
        with pytest.raises(ToolRefusal, match=f"old {why}.*nothing was changed"):
            await edit_file(workspace, "a.md", old, "x")
    assert file.read_text() == "two\ntwo too\n3\n"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (b"a\r\nb\r\nc\r\n", b"a\r\nx\r\ny\r\n", ""),
        (b"\xef\xbb\xbfa\nb\nc\n", b"\xef\xbb\xbfa\nx\ny\n", ""),
        ("合同金额为四万二千元整\nb\nc\n".encode("gb18030"), "合同金额为四万二千元整\nx\ny\n".encode(), "UTF-8 now"),
        ("a\nb\nc\n".encode("utf-16"), b"a\nx\ny\n", "UTF-8 now"),
    ],
)
async def test_line_ends_and_marks_stay_and_other_encodings_become_utf_8(
    workspace: Workspace, before: bytes, after: bytes, told: str
) -> None:
    file = put(workspace, "a.txt", before)
    assert told in await edit_file(workspace, "a.txt", "b\nc", "x\ny")
    assert file.read_bytes() == after


def test_what_is_no_text_is_not_edited(workspace: Workspace) -> None:
    put(workspace, "a.docx", b"PK\x03\x04" + bytes(range(256)))
    put(workspace, "a.log", "x" * (8 * 2**20 + 1))
    assert "only text files are edited" in refusal(edit_file(workspace, "a.docx", "a", "b"))
    assert "too much to edit" in refusal(edit_file(workspace, "a.log", "x", "y"))
    assert refusal(edit_file(workspace, "none", "x", "y")) == "none: no such file or directory"
