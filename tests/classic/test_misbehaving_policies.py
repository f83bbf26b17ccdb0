"""A policy that misbehaves, over the wire, in the environment that ships: it is judged by what it delivered.

The policy's endpoint is as strict as any: a history with broken arguments, odd names, an id twice or a call without its
answer is refused.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import Family, build_environment
from rubric_env.classic._family import FILE_TOOLS
from rubric_env.classic.tools import Workspace
from rubric_env.sandbox import SandboxUnavailable, find_sandbox
from tests.servers.endpoint import Call, Endpoint
from tests.servers.scenarios import Scenario, error

verifiers_types = pytest.importorskip("verifiers.types", reason="the classic extra is not installed")

FAMILY = Family("tiny-env", Path("none-ships"), tools=(*FILE_TOOLS, "run_python"))
FACT = "The total is 42 euros."
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
TURNS = 5


async def sabotage(workspace: Workspace, how: str) -> str:
    """Do to the workspace what code can do that a policy runs in it.

    Args:
        how: what to do
    """
    output = workspace.root / workspace.output
    if how == "root without rights":
        output.joinpath("memo.md").write_text(FACT)
        workspace.root.chmod(0)
        return "done"
    output.rmdir()
    if how == "output is a file":
        output.write_text(FACT)
    elif how == "output is a link":
        outside = workspace.root / "elsewhere"
        outside.mkdir()
        outside.joinpath("memo.md").write_text(FACT)
        output.symlink_to(outside)
    elif how == "a deep tree":
        workspace.root.joinpath(*["d"] * 300).mkdir(parents=True)
    return "done"


async def fail(workspace: Workspace, how: str) -> str:
    """Fail as the machine does.

    Args:
        how: what fails
    """
    if how == "disk":
        raise OSError(errno.ENOSPC, "No space left on device", str(workspace.root / "output" / "memo.md"))
    if how == "program":
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "bwrap")
    raise RuntimeError("a bug of ours")


async def flood(workspace: Workspace, characters: int) -> Any:
    """Say too much.

    Args:
        characters: how much
    """
    return ["\0" * characters]


def sandboxed() -> bool:
    try:
        find_sandbox()
    except SandboxUnavailable:
        return False
    return True


def say(text: Any) -> dict[str, Any]:
    return {"content": text}


def call(name: Any, arguments: Any, id: str = "c") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def use(name: str, arguments: Any) -> dict[str, Any]:
    return {"content": None, "tool_calls": [call(name, arguments)]}


def write(path: str, content: Any = FACT) -> dict[str, Any]:
    return use("write_file", {"path": path, "content": content})


DELIVER = write("output/memo.md")
LOOK = use("list_files", {})
DONE = say("Done.")


@dataclass(frozen=True)
class Case:
    """What the policy says, turn by turn; what a tool tells it; what its rollout is worth, and why it ends."""

    turns: list[Any]
    reward: float
    told: str = ""
    missing: bool = False
    stop: str = "no_tools_called"


def nothing(*turns: Any, told: str = "", stop: str = "no_tools_called") -> Case:
    return Case(list(turns), 0.0, told, missing=True, stop=stop)


def poor(*turns: Any, told: str = "") -> Case:
    """No file that counts, and closing words that are judged."""
    return Case(list(turns), 0.0, told)


def fine(*turns: Any, told: str = "", stop: str = "no_tools_called") -> Case:
    return Case(list(turns), 1.0, told, stop=stop)


def broken(arguments: str, told: str) -> Case:
    """Broken arguments first; then the policy delivers, which it can only when its history was accepted."""
    return fine(use("write_file", arguments), DELIVER, DONE, told=told)


def too_long(status: int, message: str, code: str = "") -> Case:
    refusal = error("too long", status, message, type="invalid_request_error", code=code)
    return fine(DELIVER, refusal, stop="prompt_too_long")


CASES = {
    "delivers": fine(DELIVER, DONE),
    "says-app": fine(write("/app/output/memo.md"), DONE),
    "answers": fine(say(FACT)),
    "delivers-elsewhere": nothing(write("memo.md"), *[LOOK] * 9, stop="max_turns_reached"),
    # No words.
    "only-thinks": nothing(say(f"<think>{FACT}</think>")),
    "is-cut-while-thinking": nothing(say(f"<think>{FACT}")),
    "only-reasons": nothing({"content": None, "reasoning_content": FACT}),
    "only-white-space": nothing(say(" \n\t")),
    "says-nothing": nothing(say(""), stop="ended_by_policy"),
    "sends-null": nothing(say(None), stop="ended_by_policy"),
    "delivers-and-says-nothing": fine(DELIVER, say(""), stop="ended_by_policy"),
    "answers-and-says-nothing": nothing({**LOOK, **say(FACT)}, say(""), stop="ended_by_policy"),
    "hides-in-thinking": fine(say(f"<think>plan</think>Nothing. <think>{FACT}</think>")),
    # No end.
    "never-ends": nothing(*[LOOK] * 10, stop="max_turns_reached"),
    "delivers-and-never-ends": fine(DELIVER, *[LOOK] * 9, stop="max_turns_reached"),
    "answers-and-goes-on": nothing(*[{**LOOK, **say(FACT)}] * 10, stop="max_turns_reached"),
    "a-thousand-calls": fine(
        {"content": None, "tool_calls": [call("list_files", {}, f"c{n}") for n in range(1000)]},
        DELIVER,
        DONE,
        told="968 more calls were not run",
    ),
    # Broken calls.
    "no-json": broken("{no json", "no JSON object (Expecting property name"),
    "no-object": broken('["output/memo.md"]', "no JSON object (they are a list)"),
    "null-arguments": broken("null", "no JSON object (they are a NoneType)"),
    "empty-arguments": broken("", "path: Field required; content: Field required. write_file takes path, content"),
    "not-a-number": broken('{"path": NaN}', "NaN is no JSON"),
    "nested-without-end": broken('{"path": ' * 5000, "no JSON object"),
    "nested-deeply": broken('{"path": ' * 90 + "1" + "}" * 90, "more than 64 levels deep"),
    "cut-in-a-call": broken('{"path": "output/memo.md", "content": "The total', "your message was cut"),
    "unknown-argument": broken(json.dumps({"path": "a", "content": "", "mode": "w"}), "mode: unknown argument"),
    "another-workspace": broken(
        json.dumps({"path": "a", "content": FACT, "workspace": "/tmp"}), "workspace: unknown argument"
    ),
    "number-as-content": broken(json.dumps({"path": "a", "content": 42}), "content: Input should be a valid string"),
    "null-for-a-default": fine(use("list_files", {"path": None}), DELIVER, DONE, told="(empty)"),
    "no-such-tool": fine(use("rm", {"path": "/"}), DELIVER, DONE, told="there is no tool rm; there are list_files"),
    "odd-name": fine(use("rm -rf / # 删除", "{}"), DELIVER, DONE, told="there is no tool rm_-rf"),
    "no-name": fine(use("", "{}"), DELIVER, DONE, told="there is no tool _;"),
    "long-tool-name": fine(use("a" * 100_000, "{}"), DELIVER, DONE, told="there is no tool aaaa"),
    "an-id-twice": fine(
        {"content": None, "tool_calls": [call("list_files", {}), DELIVER["tool_calls"][0], call("list_files", {})]},
        LOOK,
        DONE,
        told="output/memo.md (22 bytes)",
    ),
    "no-id": fine({"content": None, "tool_calls": [call("list_files", {}, "")]}, DELIVER, DONE, told="(empty)"),
    "giant-argument": fine(write("output/memo.md", FACT + "\n" + "x " * 2**20), DONE, told="wrote 2,097,"),
    "giant-unknown-argument": broken(json.dumps({"x" * 2**21: 1}), "x: unknown argument"),
    "half-a-character": fine(DELIVER, say("Done. \ud83d"), stop=""),
    "half-a-character-in-a-call": fine(write("output/memo.md", f"{FACT}\udc00"), DONE, told="wrote 25 bytes"),
    # Where it may not go.
    "climbs-out": poor(write("../../memo.md"), DONE, told="outside the workspace"),
    "absolute-path": poor(write("/etc/memo.md"), DONE, told="outside the workspace"),
    "output-of-the-root": poor(write("/output/memo.md"), DONE, told="outside the workspace"),
    "reads-the-host": poor(use("read_file", {"path": "/etc/passwd"}), DONE, told="outside the workspace"),
    "null-byte": fine(write("output/a\0b"), say(FACT), told="NUL character"),
    "half-a-path": fine(write("output/\ud83d"), DONE, told="wrote 22 bytes to output/\ufffd"),
    "long-name": fine(write("output/" + "a" * 500), say(FACT), told="file name too long"),
    "long-path": fine(write("output/" + "a" * 5000), say(FACT), told="a path of 5,007 characters"),
    "too-deep": fine(write("output/" + "a/" * 40), say(FACT), told="more than 32 folders deep"),
    "too-large": fine(write("output/memo.md", "x" * 33 * 2**20), say(FACT), told="a file may have 33,554,432"),
    "writes-on-the-output": fine(write("output"), say(FACT), told="no regular file"),
    "output-is-a-file": poor(use("sabotage", {"how": "output is a file"}), DONE, told="done"),
    "output-is-a-link": poor(use("sabotage", {"how": "output is a link"}), DONE, told="done"),
    "output-is-gone": poor(use("sabotage", {"how": "output is gone"}), DONE, told="done"),
    "writes-through-a-link": poor(use("sabotage", {"how": "output is a link"}), DELIVER, DONE, told="a link"),
    "a-deep-tree": poor(use("sabotage", {"how": "a deep tree"}), LOOK, DONE, told="too deep"),
    "no-rights": fine(use("sabotage", {"how": "root without rights"}), DONE, told="done"),
    # What the machine says.
    "says-too-much": fine(use("flood", {"characters": 100_000}), say(FACT), told="(cut: 400,004 characters)"),
    "context-of-openai": too_long(
        400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"
    ),
    "context-of-a-server": too_long(400, "the request exceeds the available context size, try increasing it"),
    "context-in-chinese": too_long(400, "输入超过模型最大长度限制"),
    "body-too-large": too_long(413, "Request Entity Too Large"),
}
SAY = f"open({{!r}}, 'w').write({FACT!r})"
CODE = {
    "code-makes-the-output-a-file": f"os.rmdir('output'); {SAY.format('output')}",
    "code-makes-the-output-a-link": f"os.rmdir('output'); os.symlink('.', 'output'); {SAY.format('memo.md')}",
    "code-deletes-the-output": "os.rmdir('output')",
    "code-writes-elsewhere": f"{SAY.format('/tmp/memo.md')}; {SAY.format('/memo.md')}",
    "code-takes-its-rights-away": f"{SAY.format('output/memo.md')}; os.chmod('output', 0); os.chmod('.', 0)",
}
CASES |= {name: poor(use("run_python", {"code": f"import os\n{code}"}), DONE) for name, code in CODE.items()}
CASES["code-takes-its-rights-away"] = replace(CASES["code-takes-its-rights-away"], reward=1.0)
if version("verifiers") < "0.2":  # later ones take no such message from an endpoint
    CASES["answers-in-parts"] = fine(say([{"type": "text", "text": FACT}]))

FAILURES = {
    "disk": "No space left on device",
    "program": "FileNotFoundError",
    "bug": "RuntimeError: a bug of ours",
}


def refused(call: Call) -> bool:
    """What strict endpoints do with a history."""
    ids: list[str] = []
    open_calls: list[str] = []
    for message in call.body["messages"]:
        if message["role"] == "tool":
            if open_calls[:1] != [message["tool_call_id"]] or not isinstance(message["content"], str):
                return True
            open_calls.pop(0)
            continue
        if open_calls:
            return True
        for made in message.get("tool_calls") or ():
            name, arguments = made["function"]["name"], made["function"]["arguments"]
            try:
                read = json.loads(arguments, parse_constant=lambda _: 1 / 0)
                json.dumps(read, ensure_ascii=False).encode()
            except (ValueError, ZeroDivisionError, RecursionError):
                return True
            if not isinstance(read, dict) or not re.fullmatch("[A-Za-z0-9_-]{1,64}", name) or not made["id"]:
                return True
            open_calls.append(made["id"])
        ids += open_calls
    return len(set(ids)) < len(ids)


def scripted(endpoint: Endpoint, name: str, turns: list[Any]) -> None:
    for number, turn in enumerate(turns):

        def fits(call: Call, number: int = number) -> bool:
            roles = [m["role"] for m in call.body["messages"]]
            asked = str(call.body["messages"][roles.index("user")]["content"])
            return f"Case {name}." in asked and roles.count("assistant") == number

        finish = "tool_calls" if isinstance(turn, dict) and turn.get("tool_calls") else "stop"
        finish = "length" if "cut-in" in name and number == 0 else finish
        made = (
            turn if isinstance(turn, Scenario) else Scenario(name, content="", message=turn, finish=finish, usage=USAGE)
        )
        endpoint.rule(fits, made)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mapping[str, Any], Mapping[str, list[Call]]]]:
    """Every case, played once in one run: its rollout, and the requests of its policy."""
    folder = tmp_path_factory.mktemp("instances")
    scripts = {name: case.turns for name, case in CASES.items()}
    scripts |= {f"fails-{how}": [use("fail", {"how": how}), DONE] for how in FAILURES}
    with Endpoint() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLICY_KEY", "any")
        endpoint.rule(refused, error("strict", 400, "invalid tool calls", type="invalid_request_error"))
        for name, turns in scripts.items():
            tests = folder / name / "tests"
            tests.mkdir(parents=True)
            (tests.parent / "instruction.md").write_text(f"Case {name}. Write output/memo.md, which states the total.")
            (tests / "rubric.json").write_text('[{"description": "States that the total is 42 euros", "weight": 1}]')
            (tests / "judge_instruction.md").write_text("Judge.")
            scripted(endpoint, name, turns)
        env = build_environment(FAMILY, str(folder), judge={"settings": {"backend": "local"}}, max_turns=TURNS)
        for tool in (sabotage, fail, flood):
            env.add_tool(tool, ["workspace"])
        client = verifiers_types.ClientConfig(api_base_url=endpoint.base_url, api_key_var="POLICY_KEY")
        options = {"num_examples": -1, "rollouts_per_example": 1, "state_columns": ["trajectory"]}
        outputs = asyncio.run(env.evaluate(client=client, model="policy", **options))["outputs"]
        rollouts = {output["info"]["name"]: output for output in outputs}
        calls: dict[str, list[Call]] = {name: [] for name in scripts}
        for made in endpoint.calls:
            asked = next(str(m["content"]) for m in made.body["messages"] if m["role"] == "user")
            calls[asked.split()[1].rstrip(".")].append(made)
        yield rollouts, calls


@pytest.mark.parametrize("name", CASES)
def test_section_6_what_a_policy_does_is_judged_and_never_errs_the_rollout(name: str, ran: Any) -> None:
    if name in CODE and not sandboxed():
        pytest.skip("no sandbox can be had here")
    case, rollout, calls = CASES[name], ran[0][name], ran[1][name]
    assert rollout["error"] is None
    assert rollout["metrics"]["judge_scored"] == 1.0
    assert rollout["reward"] == case.reward
    assert rollout["metrics"]["delivery_missing"] == float(case.missing)
    assert rollout["stop_condition"] == case.stop or not case.stop
    assert rollout["is_truncated"] == (case.stop == "prompt_too_long" or "cut-in" in name)
    told = [str(m["content"]) for made in calls for m in made.body["messages"] if m["role"] == "tool"]
    assert any(case.told in text for text in told) or not case.told
    assert all(len(text) < 26_000 for text in told)


@pytest.mark.parametrize("how", FAILURES)
def test_what_the_machine_suffers_is_no_failure_of_the_policy(how: str, ran: Any) -> None:
    rollout = ran[0][f"fails-{how}"]
    assert rollout["error"]["error"] == "InfraError"
    assert FAILURES[how] in str(rollout["error"])
    assert rollout["metrics"]["judge_scored"] == 0.0


def test_what_is_trained_on_stays_as_it_was_sampled(ran: Any) -> None:
    steps = ran[0]["no-json"]["trajectory"]
    sampled = [step["completion"][-1]["tool_calls"] for step in steps]
    assert sampled[0][0]["arguments"] == "{no json"
    asked = next(m for m in steps[1]["prompt"] if m["role"] == "assistant")["tool_calls"]
    assert asked[0]["arguments"] == "{}"
    assert sampled[1][0]["id"] == "c"


def test_a_call_that_is_well_goes_back_as_it_was_written(ran: Any) -> None:
    sent = ran[1]["delivers"][-1].body["messages"]
    calls = [m["tool_calls"] for m in sent if m["role"] == "assistant"]
    assert calls == [DELIVER["tool_calls"]]
