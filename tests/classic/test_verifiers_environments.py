"""SPEC 9 in every kind of environment that verifiers has, over the wire: reward, metrics, advantages, step values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import HarborRubricGroup
from tests.classic.conftest import vf
from tests.classic.plugged.every_kind import KINDS, look_up
from tests.classic.vf_eval import plays, says, uses
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario

datasets = pytest.importorskip("datasets", reason="the classic extra is not installed")
verifiers_types = pytest.importorskip("verifiers.types", reason="the classic extra is not installed")

TURNS = {"single-turn": 1, "multi-turn": 2, "tools": 2, "stateful-tools": 2}


def first_turn(kind: str, text: str) -> list[dict[str, Any]]:
    """What the policy does before its last turn; none where there is but one. `text` is what it says or delivers."""
    tool = {"tools": uses("look_up", {"key": "total"}), "stateful-tools": uses("deliver", {"text": text})}
    return [tool.get(kind, says(text))] if TURNS[kind] == 2 else []


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


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("kind", TURNS)
async def test_each_environment_gets_the_same_values(
    make_rubric: Any, policy: Endpoint, kind: str, independent: bool
) -> None:
    turns = TURNS[kind]
    plays(policy, *first_turn(kind, "Let me see."), says("reply GOOD"), times=1)
    plays(policy, *first_turn(kind, "Let me see."), says("reply BAD"))
    env = KINDS[kind](dataset=rows("Who owns it?"), rubric=make_rubric())
    good, bad = await run(env, policy, independent_scoring=independent)
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
    plays(policy, uses("look_up", {"key": "total"}), {"content": "reply GOOD"}, when="Tools")
    chat = vf.SingleTurnEnv(dataset=rows("Chat: who?"), rubric=make_rubric())
    tools = vf.ToolEnv(tools=[look_up], dataset=rows("Tools: who?"), rubric=HarborRubricGroup([make_rubric()]))
    outputs = await run(vf.EnvGroup([chat, tools]), policy, independent_scoring=independent)
    assert sorted(output["reward"] for output in outputs) == [0.75, 0.75, 1.0, 1.0]
    for output in outputs:
        assert output["error"] is None
        assert output["metrics"]["judge_coverage"] == output["metrics"]["judge_scored"] == 1.0
        assert {step["reward"] for step in output["trajectory"]} == {output["reward"]}


@pytest.mark.parametrize("kind", TURNS)
async def test_section_6_an_empty_message_is_no_way_out_of_being_judged(
    make_rubric: Any, policy: Endpoint, kind: str
) -> None:
    """verifiers errs such a rollout, makes it again with `--max-retries`, and trainers drop it."""
    plays(policy, *first_turn(kind, "reply HALF"), says(""))
    env = KINDS[kind](dataset=rows("Who owns it?"), rubric=make_rubric())
    (output,) = await run(env, policy, rollouts=1, max_retries=2)
    delivered = kind in ("multi-turn", "stateful-tools")
    assert output["error"] is None
    assert output["reward"] == (0.75 if delivered else 0.0)
    assert output["metrics"]["judge_scored"] == 1.0
    assert output["metrics"]["delivery_missing"] == float(not delivered)
    assert len(policy.calls) == TURNS[kind]


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
    plays(policy, {**uses("look_up", "{no json"), "content": "reply HALF"})
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
