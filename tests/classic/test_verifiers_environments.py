"""SPEC 9 in every kind of environment that verifiers has, over the wire: reward, metrics, advantages, step values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import HarborRubricGroup
from tests.classic.conftest import vf
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario

datasets = pytest.importorskip("datasets", reason="the classic extra is not installed")
verifiers_types = pytest.importorskip("verifiers.types", reason="the classic extra is not installed")

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def look_up(key: str) -> str:
    """Look a word up.

    Args:
        key: the word
    """
    return f"{key}: nothing found"


class TwoTurns(vf.MultiTurnEnv):  # type: ignore[misc, name-defined]
    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        return [{"role": "user", "content": "Go on."}]


class Stateful(vf.StatefulToolEnv):  # type: ignore[misc, name-defined]
    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.add_tool(look_up)

    def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
        return tool_args


KINDS: dict[str, tuple[Callable[..., Any], int]] = {
    "single-turn": (vf.SingleTurnEnv, 1),
    "multi-turn": (lambda **kwargs: TwoTurns(max_turns=2, **kwargs), 2),
    "tools": (lambda **kwargs: vf.ToolEnv(tools=[look_up], **kwargs), 2),
    "stateful-tools": (Stateful, 2),
}


@pytest.fixture
def policy() -> Iterator[Endpoint]:
    with Endpoint() as server:
        yield server


def plays(policy: Endpoint, *turns: dict[str, Any], when: str = "", times: int | None = None) -> None:
    """The policy's turns, told apart by how often it has spoken; `when` is in the first user message."""
    for number, turn in enumerate(turns):

        def fits(call: Any, number: int = number) -> bool:
            spoken = sum(message["role"] == "assistant" for message in call.body["messages"])
            return spoken == number and when in str(call.body["messages"])

        finish = "tool_calls" if turn.get("tool_calls") else "stop"
        policy.rule(fits, Scenario("turn", content="", message=turn, finish=finish, usage=USAGE), times=times)


def uses(arguments: str) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": arguments}
    return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def rows(*questions: str) -> Any:
    return datasets.Dataset.from_list([{"question": question, "answer": ""} for question in questions])


async def run(env: Any, policy: Endpoint, rollouts: int = 2, **options: Any) -> list[Any]:
    done = await env.evaluate(
        client=verifiers_types.ClientConfig(api_base_url=policy.base_url, api_key_var="POLICY_KEY"),
        model="policy",
        num_examples=-1,
        rollouts_per_example=rollouts,
        state_columns=["advantage", "judge_result", "trajectory"],
        **options,
    )
    return sorted(done["outputs"], key=lambda output: (output["example_id"], -output["reward"]))


@pytest.fixture(autouse=True)
def policy_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_KEY", "any")


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_each_environment_gets_the_same_values(
    make_rubric: Any, policy: Endpoint, kind: str, independent: bool
) -> None:
    build, turns = KINDS[kind]
    first = [uses('{"key": "total"}')] if "tools" in kind else [{"content": "Let me see."}]
    plays(policy, *(first if turns == 2 else []), {"content": "reply GOOD"}, times=1)
    plays(policy, *(first if turns == 2 else []), {"content": "reply BAD"})
    good, bad = await run(
        build(dataset=rows("Who owns it?"), rubric=make_rubric()), policy, independent_scoring=independent
    )
    assert (good["reward"], bad["reward"], good["error"], bad["error"]) == (1.0, 0.0, None, None)
    advantage = 0.0 if independent else 0.5
    for output, value in ((good, advantage), (bad, -advantage)):
        assert output["advantage"] == output["metrics"]["judge_advantage"] == value
        assert [step["reward"] for step in output["trajectory"]] == [output["reward"]] * turns
        assert [step["advantage"] for step in output["trajectory"]] == [value] * turns
        assert output["metrics"]["num_turns"] == turns
        assert output["metrics"]["judge_scored"] == 1.0
        assert output["judge_result"]["task_score"] == output["reward"]


@pytest.mark.parametrize("independent", [False, True])
async def test_an_env_group_scores_each_child_with_its_own_rubric(
    make_rubric: Any, policy: Endpoint, independent: bool
) -> None:
    plays(policy, {"content": "reply HALF"}, when="Chat")
    plays(policy, uses('{"key": "total"}'), {"content": "reply GOOD"}, when="Tools")
    chat = vf.SingleTurnEnv(dataset=rows("Chat: who?"), rubric=make_rubric())
    tools = vf.ToolEnv(tools=[look_up], dataset=rows("Tools: who?"), rubric=HarborRubricGroup([make_rubric()]))
    outputs = await run(vf.EnvGroup([chat, tools]), policy, independent_scoring=independent)
    assert sorted(output["reward"] for output in outputs) == [0.75, 0.75, 1.0, 1.0]
    for output in outputs:
        assert output["error"] is None
        assert output["metrics"]["judge_coverage"] == output["metrics"]["judge_scored"] == 1.0
        assert {step["reward"] for step in output["trajectory"]} == {output["reward"]}


@pytest.mark.parametrize("kind", KINDS)
async def test_section_6_an_empty_message_is_no_way_out_of_being_judged(
    make_rubric: Any, policy: Endpoint, kind: str
) -> None:
    """verifiers errs such a rollout, makes it again with `--max-retries`, and trainers drop it."""
    build, turns = KINDS[kind]
    first = [uses('{"key": "total"}')] if "tools" in kind else [{"content": "reply HALF"}]
    plays(policy, *(first if turns == 2 else []), {"content": ""})
    env = build(dataset=rows("Who owns it?"), rubric=make_rubric())
    (output,) = await run(env, policy, rollouts=1, max_retries=2)
    spoke = kind == "multi-turn"
    assert output["error"] is None
    assert output["reward"] == (0.75 if spoke else 0.0)
    assert output["metrics"]["judge_scored"] == 1.0
    assert output["metrics"]["delivery_missing"] == float(not spoke)
    assert len(policy.calls) == turns


async def test_section_6_files_delivered_before_an_empty_message_are_judged(
    make_rubric: Any, policy: Endpoint, tmp_path: Path
) -> None:
    (tmp_path / "memo.md").write_text("reply GOOD")
    plays(policy, {"content": ""})
    data = datasets.Dataset.from_list(
        [{"question": "Write it.", "answer": "", "info": json.dumps({"submission_dir": str(tmp_path)})}]
    )
    (output,) = await run(vf.SingleTurnEnv(dataset=data, rubric=make_rubric()), policy, rollouts=1)
    assert (output["reward"], output["error"]) == (1.0, None)
    assert output["judge_result"]["details"]["delivery"]["files"] == ["output/memo.md"]


async def test_an_endpoint_that_sends_no_choices_is_not_the_policys_failure(
    make_rubric: Any, policy: Endpoint, judge: Endpoint
) -> None:
    body = json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "policy", "choices": None})
    policy.rule(lambda call: True, Scenario("no choices", body=body.encode()))
    env = vf.SingleTurnEnv(dataset=rows("Who owns it?"), rubric=make_rubric())
    (output,) = await run(env, policy, rollouts=1)
    assert output["error"] is not None
    assert output["metrics"]["judge_scored"] == 0.0
    assert judge.calls == []


async def test_broken_json_is_no_way_out_where_the_environment_stops_on_it(make_rubric: Any, policy: Endpoint) -> None:
    plays(policy, {**uses("{no json"), "content": "reply HALF"})
    env = vf.ToolEnv(
        tools=[look_up], stop_errors=[json.JSONDecodeError], dataset=rows("Who owns it?"), rubric=make_rubric()
    )
    (output,) = await run(env, policy, rollouts=1)
    assert (output["error"], output["metrics"]["judge_scored"], output["reward"]) == (None, 1.0, 0.0)


async def test_with_max_retries_an_unscored_rollout_is_made_again_only_where_that_was_asked_for(
    make_rubric: Any, policy: Endpoint, judge: Endpoint
) -> None:
    for on_unscored, calls, scored in (("regenerate", 4, 1.0), ("mark", 2, 0.0)):
        policy.calls.clear()
        word = f"FLAKY-{on_unscored}"
        judge.rule(lambda call, word=word: word in call.text, "500", times=1)
        plays(policy, {"content": f"reply {word}"}, when=word)
        rubric = make_rubric(settings={"on_unscored": on_unscored, "reuse": "off", "concurrency": 1})
        env = vf.SingleTurnEnv(dataset=rows(f"Say {word}."), rubric=rubric)
        outputs = await run(env, policy, max_retries=2)
        assert len(policy.calls) == calls
        assert sorted(output["metrics"]["judge_scored"] for output in outputs) == [scored, 1.0]


async def test_a_resumed_run_judges_what_is_missing_and_keeps_the_rest(
    make_rubric: Any, policy: Endpoint, judge: Endpoint, tmp_path: Path
) -> None:
    plays(policy, {"content": "reply GOOD"}, when="first")
    plays(policy, {"content": "reply HALF"}, when="second")
    path = tmp_path / "results"

    def env() -> Any:
        return vf.SingleTurnEnv(dataset=rows("The first?", "The second?"), rubric=make_rubric())

    options = {"save_results": True, "results_path": path}
    before = await run(env(), policy, **options)
    file = path / "results.jsonl"
    lines = file.read_text("utf-8").splitlines()
    file.write_text("".join(f"{line}\n" for line in lines[:3]), "utf-8")
    judge.calls.clear()
    after = await run(env(), policy, **options)
    assert [output["reward"] for output in after] == [output["reward"] for output in before] == [1.0, 1.0, 0.75, 0.75]
    assert len(judge.calls) == 1
    assert len(file.read_text("utf-8").splitlines()) == 4
