"""A policy that misbehaves, over the wire, in the environment that ships: it is judged by what it delivered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import Family, build_environment
from rubric_env.classic.tools import Workspace
from rubric_env.classic.tools._files import list_files, read_file, write_file
from tests.servers.endpoint import Call, Endpoint
from tests.servers.scenarios import Scenario

verifiers_types = pytest.importorskip("verifiers.types", reason="the classic extra is not installed")

TINY = Family("tiny-env", Path("none-ships"), tools=("list_files", "read_file", "write_file"))
FACT = "The total is 42 euros."
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def say(text: str | None) -> dict[str, Any]:
    return {"content": text}


def use(name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": text}
    return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def write(path: str, content: Any = FACT) -> dict[str, Any]:
    return use("write_file", {"path": path, "content": content})


TURNS: Mapping[str, list[dict[str, Any]]] = {
    "delivers": [write("output/memo.md"), say("Done.")],
    "says-app": [write("/app/output/memo.md"), say("Done.")],
    "answers": [say(FACT)],
    "delivers-elsewhere": [write("memo.md"), use("list_files", {})] + [use("list_files", {})] * 9,
    "only-thinks": [say(f"<think>{FACT}</think>")],
    "is-cut-while-thinking": [say(f"<think>{FACT}")],
    "hides-in-thinking": [say(f"<think>plan</think>Nothing. <think>{FACT}</think>")],
    "never-ends": [use("list_files", {})] * 10,
    "delivers-and-never-ends": [write("output/memo.md"), *[use("list_files", {})] * 9],
    "answers-and-goes-on": [{**say(FACT), "tool_calls": use("list_files", {})["tool_calls"]}] * 10,
    "says-nothing": [say("")],
    "sends-null": [say(None)],
    "delivers-and-says-nothing": [write("output/memo.md"), say("")],
    "answers-and-says-nothing": [{**say(FACT), "tool_calls": use("list_files", {})["tool_calls"]}, say("")],
    "broken-json": [use("write_file", "{no json"), say(FACT)],
    "no-such-tool": [use("rm", {"path": "/"}), say(FACT)],
    "no-arguments": [use("write_file", {}), say(FACT)],
    "another-workspace": [
        use("write_file", {"path": "output/memo.md", "content": FACT, "workspace": "/tmp"}),
        say("Done."),
    ],
    "leaves-the-workspace": [write("../../memo.md"), say("Done.")],
    "null-byte": [write("output/a\0b"), say(FACT)],
    "long-name": [write("output/" + "a" * 5000), say(FACT)],
    "number-as-content": [write("output/memo.md", 42), say(FACT)],
    "output-becomes-a-file": [write("output"), say(FACT)],
}
REWARDS = {
    **dict.fromkeys(TURNS, 1.0),
    **dict.fromkeys(["delivers-elsewhere", "only-thinks", "is-cut-while-thinking", "never-ends"], 0.0),
    **dict.fromkeys(["answers-and-goes-on", "leaves-the-workspace"], 0.0),
    **dict.fromkeys(["says-nothing", "sends-null", "answers-and-says-nothing"], 0.0),
}
MISSING = {
    *("delivers-elsewhere", "only-thinks", "is-cut-while-thinking", "never-ends", "answers-and-goes-on"),
    *("says-nothing", "sends-null", "answers-and-says-nothing"),
}
SILENT = {name for name in TURNS if name.endswith(("says-nothing", "sends-null"))}


def scripted(endpoint: Endpoint, case: str, turns: list[dict[str, Any]]) -> None:
    for number, message in enumerate(turns):

        def fits(call: Call, number: int = number) -> bool:
            roles = [m["role"] for m in call.body["messages"]]
            asked = str(call.body["messages"][roles.index("user")]["content"])
            return f"Case {case}." in asked and roles.count("assistant") == number

        finish = "tool_calls" if message.get("tool_calls") else "stop"
        endpoint.rule(fits, Scenario(case, content="", message=message, finish=finish, usage=USAGE))


async def test_section_6_what_a_policy_does_is_judged_and_never_errs_the_rollout(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for case, turns in TURNS.items():
        tests = tmp_path / case / "tests"
        tests.mkdir(parents=True)
        (tests.parent / "instruction.md").write_text(f"Case {case}. Write output/memo.md, which states the total.")
        (tests / "rubric.json").write_text('[{"description": "States that the total is 42 euros", "weight": 1}]')
        (tests / "judge_instruction.md").write_text("Judge.")
        scripted(endpoint, case, turns)
    monkeypatch.setenv("POLICY_KEY", "any")
    env = build_environment(TINY, tmp_path, judge={"settings": {"backend": "local"}}, max_turns=5)
    done = await env.evaluate(
        client=verifiers_types.ClientConfig(api_base_url=endpoint.base_url, api_key_var="POLICY_KEY"),
        model="policy",
        num_examples=-1,
        rollouts_per_example=1,
    )
    rollouts = {}
    for output in done["outputs"]:
        asked = next(str(m["content"]) for m in output["prompt"] if m["role"] == "user")
        rollouts[asked.split()[1].rstrip(".")] = output
    assert {case: output["reward"] for case, output in rollouts.items()} == REWARDS
    assert {case for case, output in rollouts.items() if output["metrics"]["delivery_missing"]} == MISSING
    for case, output in rollouts.items():
        assert output["error"] is None
        assert (output["stop_condition"] == "ended_by_policy") == (case in SILENT)
        assert output["metrics"]["judge_scored"] == 1.0


async def test_app_is_what_instructions_call_the_workspace_and_only_as_a_whole_name(tmp_path: Path) -> None:
    root = Workspace.make(parent=tmp_path)
    names = {"/app/output/a.md": "output/a.md", "output/b.md": "output/b.md", "/appendix.md": "appendix.md"}
    for path, name in names.items():
        await write_file(root, path, "x")
        assert await read_file(root, name) == "x"
    listed = await list_files(root, "/app")
    assert listed.splitlines() == [f"{name} (1 bytes)" for name in sorted(names.values())]
