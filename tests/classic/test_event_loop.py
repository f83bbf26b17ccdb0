"""What policies do at the limits must not hold up the event loop of all rollouts: see benchmarks/heartbeat.py."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from asyncio import events
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

vf = pytest.importorskip("verifiers", reason="the classic extra is not installed")

from rubric_env.classic import Family, build_environment  # noqa: E402
from rubric_env.classic._tool_calls import DEPTH, read_calls  # noqa: E402
from rubric_env.classic.tools import ToolRefusal, Workspace  # noqa: E402
from rubric_env.classic.tools._xlsx import make_xlsx  # noqa: E402

MOST = 0.05
"""CPU seconds of one step on the loop."""

DEEP = [[n, [n]] for n in range(60_000)]
"""A megabyte of JSON, of a hundred thousand lists."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """CPU seconds of every step on the loop, without garbage collection."""
    taken: list[float] = []
    run = events.Handle._run

    def timed(handle: events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - began)

    monkeypatch.setattr(events.Handle, "_run", timed)
    gc.disable()
    yield taken
    gc.enable()


def calls(*arguments: Any) -> Any:
    made = [
        vf.ToolCall(id=f"c{n}", name="write_file", arguments=json.dumps(given)) for n, given in enumerate(arguments)
    ]
    return vf.AssistantMessage(content="", tool_calls=made)


@pytest.fixture
def env(tmp_path: Path) -> Any:
    tests = tmp_path / "instances" / "a" / "tests"
    tests.mkdir(parents=True)
    (tests.parent / "instruction.md").write_text("Write output/memo.md.")
    (tests / "rubric.json").write_text('[{"description": "States the total", "weight": 1}]')
    family = Family("tiny-env", tests.parents[1], tools=("list_files", "write_file"))
    return build_environment(family, judge={"settings": {"backend": "local"}})


async def test_arguments_of_a_megabyte_are_read_and_made_fit_for_the_history(
    env: Any, tmp_path: Path, steps: list[float]
) -> None:
    text = "The profit rose. " * 60_000
    said = calls({"path": "output/a.md", "content": text}, {"path": "b.md", "content": DEEP}, DEEP)
    step = {"prompt": [vf.UserMessage(content="Write.")], "completion": [said], "is_truncated": False}
    state = {"workspace": Workspace.make(parent=tmp_path), "trajectory": [step]}
    await asyncio.sleep(0)  # what was made here is not what is measured
    steps.clear()
    *_, repaired, wrote, refused, broken = await env.get_prompt_messages(state)
    assert max(steps) < MOST
    assert wrote.content.startswith("wrote 1,020,000 bytes")
    assert "content: Input should be a valid string" in refused.content
    assert "they are a list" in broken.content
    assert [call.arguments for call in repaired.tool_calls[1:]] == [said.tool_calls[1].arguments, "{}"]


async def test_a_workbook_of_a_hundred_thousand_cells_is_checked_beside_the_loop(
    tmp_path: Path, steps: list[float]
) -> None:
    sheets: list[Any] = [{"name": "A", "rows": [[n] * 40 for n in range(3_000)]}, {"name": "B", "cells": []}]
    workspace = Workspace.make(parent=tmp_path)
    await asyncio.sleep(0)
    steps.clear()
    with pytest.raises(ToolRefusal, match="unknown key cells"):
        await make_xlsx(workspace, "output/a.xlsx", sheets)
    assert max(steps) < MOST


async def test_a_new_file_in_a_workspace_of_thousands_is_named_beside_the_loop(
    tmp_path: Path, steps: list[float]
) -> None:
    workspace = Workspace.make(parent=tmp_path)
    for folder in range(60):
        (workspace.root / f"{folder}").mkdir()
        for n in range(300):
            (workspace.root / f"{folder}/{n}.md").touch()
    await asyncio.sleep(0)
    steps.clear()
    with pytest.raises(ToolRefusal, match="the workspace is full"):
        await make_xlsx(workspace, "output/a.xlsx", [{"name": "A", "rows": [[1]]}])  # type: ignore[list-item]
    assert max(steps) < MOST


@pytest.mark.parametrize(("levels", "problem"), [(DEPTH, ""), (DEPTH + 1, "more than 64 levels deep")])
def test_arguments_have_as_many_levels_as_endpoints_take(levels: int, problem: str) -> None:
    text = '{"path": ' * levels + "[]" + "}" * levels
    text = text.replace("[]", "1", 1)
    said = SimpleNamespace(get=lambda _: [vf.ToolCall(id="c", name="list_files", arguments=text)])
    [call] = read_calls(said, [])
    assert problem in call.problem
    assert bool(call.problem) == bool(problem)
