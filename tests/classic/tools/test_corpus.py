"""search_corpus and open_document: what a policy is told, and whose failure is what."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rubric_env.citations import CorpusError
from rubric_env.classic.tools import ToolRefusal, Workspace
from rubric_env.classic.tools._corpus import PAGE, open_document, search_corpus
from tests.citations.conftest import DOCUMENTS, make_corpus
from tests.heartbeat import the_loop_goes_on


@pytest.fixture
def desk(workspace: Workspace, tmp_path: Path) -> Workspace:
    """A workspace with a corpus outside it."""
    long = ("A long one", "https://long.example.org/", "".join(f"{n:06} words\n" for n in range(4_000)))
    return replace(workspace, corpus=make_corpus(tmp_path / "corpus", {**DOCUMENTS, "KS-04": long}))


async def test_results_come_with_id_title_address_date_and_passage(desk: Workspace) -> None:
    found = await search_corpus(desk, "limescale electricity", 2)
    lines = found.splitlines()
    assert lines[0] == "1. [KS-01] Kettle survey 2024"
    assert lines[1].split(" · ") == ["   https://www.kettles.example.org/survey/2024?year=2024", "2024-05-01"]
    assert "because of limescale" in lines[2]
    assert lines[-1] == "open_document(id) gives the whole text."
    assert (await search_corpus(desk, "水垢")).startswith("1. [KS-03] 水壶能耗调查报告")


async def test_a_search_without_a_hit_says_how_to_go_on(desk: Workspace) -> None:
    assert "there are 4 documents: try other or fewer words" in await search_corpus(desk, "zeppelin")


async def test_a_long_document_comes_in_pages_that_join_to_the_whole(desk: Workspace) -> None:
    first = await open_document(desk, "https://long.example.org")
    assert first.startswith(
        "id: KS-04\ntitle: A long one\nurl: https://long.example.org/\ndate: 2024-05-01\n\n000000 words"
    )
    text, offset = "", 0
    while True:
        page = (await open_document(desk, "KS-04", offset)).partition("\n\n")[2]
        body, said, more = page.partition("\n\n(")
        text += body
        assert len(body) <= PAGE
        if not said:
            break
        assert (
            more == f"{len(DOCUMENTS_LONG) - offset - PAGE} more characters: open_document with offset={offset + PAGE})"
        )
        offset += PAGE
    assert text == DOCUMENTS_LONG


DOCUMENTS_LONG = "".join(f"{n:06} words\n" for n in range(4_000))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda desk: search_corpus(desk, " "), "query: some words"),
        (lambda desk: search_corpus(desk, None), "query: some words"),
        (lambda desk: search_corpus(desk, "x", 0), "limit: a number from 1 to 20"),
        (lambda desk: search_corpus(desk, "x", "3"), "limit: a number from 1 to 20"),
        (lambda desk: open_document(desk, "KS-99"), "KS-99: no such document; search_corpus gives the ids"),
        (lambda desk: open_document(desk, "../../etc/passwd"), "no such document"),
        (lambda desk: open_document(desk, 7), "no such document"),
        (lambda desk: open_document(desk, "KS-02", -1), "offset: a number from 0 to"),
        (lambda desk: open_document(desk, "KS-02", 10**9), "offset: a number from 0 to"),
        (lambda desk: open_document(desk, "KS-02", True), "offset: a number from 0 to"),
    ],
)
async def test_what_a_policy_does_wrong_is_told_to_it(desk: Workspace, call: Any, says: str) -> None:
    with pytest.raises(ToolRefusal, match=says):
        await call(desk)


async def test_a_task_without_documents_says_so(workspace: Workspace) -> None:
    with pytest.raises(ToolRefusal, match="without documents"):
        await search_corpus(workspace, "kettle")


async def test_a_broken_corpus_is_never_the_policys_mistake(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="no document in it"):
        await search_corpus(replace(workspace, corpus=tmp_path / "empty"), "kettle")


async def test_the_event_loop_runs_on_while_a_corpus_is_read(workspace: Workspace, tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for number in range(600):
        (root / f"{number}.md").write_text(f"# Note {number}\n\n" + "kettle limescale electricity " * 100)
    desk = replace(workspace, corpus=root)
    async with the_loop_goes_on():
        found = await asyncio.gather(*(search_corpus(desk, f"note {number}", 1) for number in range(200)))
    assert found[7].startswith("1. [7.md] Note 7")
