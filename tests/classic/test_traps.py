"""What verifiers does silently to a plugin, each shown not to happen here (verifiers 0.1.14 to 0.3.1)."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import HarborJudgeError, HarborJudgeInfraError, HarborRubric, HarborRubricGroup
from rubric_env.judges import NoCredential
from tests.classic.conftest import RUBRIC, make_state, score, vf
from tests.servers.scenarios import SCENARIOS

datasets = pytest.importorskip("datasets", reason="the classic extra is not installed")

OUTPUT_COLUMNS = {
    *(
        "example_id",
        "prompt",
        "completion",
        "answer",
        "info",
        "task",
        "reward",
        "error",
        "timing",
        "metrics",
        "tool_defs",
    ),
    *("is_completed", "is_truncated", "stop_condition", "token_usage", "error_chain", "long_error_chain", "advantage"),
    *("num_turns", "total_tool_calls"),
}


async def test_metrics_are_finite_floats_whatever_happened(make_rubric: Any) -> None:
    """A NaN in a zero-weight metric makes the reward NaN; None, text or lists become 0.0 with a log line."""
    states = await score(
        make_rubric(), [make_state("GOOD"), make_state("LOST"), make_state("GOOD", error=vf.Error("earlier"))]
    )
    names = [set(state["metrics"]) for state in states]
    assert names[0] == names[1] == names[2]
    for state in states:
        assert all(isinstance(v, int | float) and math.isfinite(v) for v in state["metrics"].values())
        assert math.isfinite(state["reward"])


def test_names_are_distinct_texts_that_overwrite_no_output_column(make_rubric: Any) -> None:
    names = [func.__name__ for func in make_rubric().funcs]
    assert not OUTPUT_COLUMNS & set(names)
    assert Counter(names).most_common(1)[0][1] == 1


def test_only_the_group_funcs_take_plural_parameters(make_rubric: Any) -> None:
    rubric = make_rubric()
    group = {f.__name__ for f in rubric.funcs if rubric._is_group_func(f)}
    assert group == {"judge_advantage", "judge_flat_group", "judge_uneven_evidence"}


async def test_a_rollout_that_had_failed_before_is_not_judged_and_keeps_its_error(make_rubric: Any, judge: Any) -> None:
    earlier = vf.Error("the sandbox died")
    (state,) = await score(make_rubric(), [make_state("GOOD", error=earlier)])
    assert state["error"] is earlier
    assert (state["reward"], state["advantage"], judge.calls) == (0.0, 0.0, [])


async def test_regenerate_sets_the_error_that_verifiers_retries(make_rubric: Any) -> None:
    rubric = make_rubric(settings={"on_unscored": "regenerate"})
    (state,) = await score(rubric, [make_state("LOST")])
    assert isinstance(state["error"], HarborJudgeInfraError)
    assert isinstance(state["error"], vf.InfraError)


@pytest.mark.parametrize(
    ("info", "says"),
    [
        ("{not json", "json.dumps"),
        ({"rubric": [{"id": "R1"}]}, "R1"),
        ({"rubric_path": "/nowhere/rubric.json"}, "/nowhere/rubric.json"),
        ({"instance": "/nowhere"}, "/nowhere"),
        ({"submission_dir": "/nowhere/output"}, "/nowhere/output"),
    ],
)
async def test_broken_data_is_unscored_with_the_reason_and_raises_nothing(
    make_rubric: Any, judge: Any, info: Any, says: str
) -> None:
    (state,) = await score(make_rubric(), [make_state("GOOD", info=info)])
    assert isinstance(state["error"], HarborJudgeError)
    assert says in str(state["error"])
    assert judge.calls == []


async def test_no_rubric_anywhere_is_a_scorer_error_before_any_call(make_rubric: Any, judge: Any) -> None:
    (state,) = await score(make_rubric(rubric=None), [make_state("GOOD")])
    assert "no rubric" in str(state["error"])
    assert state["judge_result"]["exit_code"] == "judge:scorer_error"
    assert judge.calls == []


def test_no_credential_is_refused_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGE_API_KEY", "JUDGE_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "JUDGE_API_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoCredential):
        HarborRubric(rubric=RUBRIC)


async def test_the_saved_column_is_json(make_rubric: Any) -> None:
    """`vf-eval -C` dies of a value that is none."""
    for quality in ("GOOD", "LOST"):
        (state,) = await score(make_rubric(), [make_state(quality)])
        assert json.loads(json.dumps(state["judge_result"], allow_nan=False)) == state["judge_result"]


def test_teardown_runs_twice_in_other_loops_and_reports_once(
    make_rubric: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rubric = make_rubric()
    asyncio.run(score(rubric, [make_state("GOOD"), make_state("LOST")]))
    asyncio.run(rubric.teardown())
    asyncio.run(rubric.teardown())
    asyncio.run(score(rubric, [make_state("HALF")]))
    (said,) = [record.getMessage() for record in caplog.records if "rubric judge" in record.getMessage()]
    assert "1 scored rollouts 1.0000" in said
    assert "unscored 1 (1 auth)" in said


async def test_judge_sends_the_question(make_rubric: Any, judge: Any) -> None:
    """verifiers' own JudgeRubric sends an empty one."""
    judge.prose = "yes"
    state = make_state("about the ledger")
    answer = await make_rubric().judge(state["prompt"], state["completion"], "The ledger team", state)
    assert answer == "yes"
    sent = judge.calls[-1].text
    assert all(part in sent for part in ("Who owns the total?", "The ledger team", "reply about the ledger"))


async def test_a_failing_judge_call_of_a_users_func_is_not_the_policys_failure(make_rubric: Any, judge: Any) -> None:
    judge.script("401", "401", "401")
    state = make_state("other")
    with pytest.raises(HarborJudgeError):
        await make_rubric().judge(state["prompt"], state["completion"], "", state)
    assert isinstance(state["error"], HarborJudgeError)


async def test_content_comes_from_info_first_even_as_json_text(make_rubric: Any, judge: Any, tmp_path: Path) -> None:
    (tmp_path / "memo.md").write_text("The memo says reply GOOD.")
    info = {
        "rubric": json.dumps(RUBRIC),
        "task_prompt": "Write the memo.",
        "judge_instruction": "Judge like an auditor.",
        "reference": "A reference memo.",
        "submission_dir": str(tmp_path),
    }
    (state,) = await score(make_rubric(rubric=None), [make_state("nothing", info=json.dumps(info))])
    assert state["reward"] == 1.0
    sent = judge.calls[0].text
    for part in ("Write the memo.", "Judge like an auditor.", "A reference memo.", "output/memo.md", "reply nothing"):
        assert part in sent
    assert "Who owns the total?" not in sent


async def test_the_user_message_is_the_task_and_the_answer_the_reference_when_nothing_else_is_given(
    make_rubric: Any, judge: Any
) -> None:
    await score(make_rubric(), [make_state("GOOD", answer="4,200 euros")])
    assert "Who owns the total?" in judge.calls[0].text
    assert "4,200 euros" in judge.calls[0].text


async def test_nothing_delivered_is_a_scored_zero_without_a_call(make_rubric: Any, judge: Any) -> None:
    state = make_state("GOOD", info={})
    state["completion"] = [{"role": "assistant", "content": "  "}]
    await score(make_rubric(), [state, make_state("GOOD")])
    assert (state["reward"], state["error"]) == (0.0, None)
    assert state["metrics"]["judge_scored"] == state["metrics"]["delivery_missing"] == 1.0
    assert state["metrics"]["judge_called"] == 0.0
    assert state["advantage"] == pytest.approx(-0.5)
    assert len(judge.calls) == 1


async def test_every_group_func_returns_a_finite_float_a_state_whatever_became_of_it(make_rubric: Any) -> None:
    """A short list or a None kills the eval."""
    rubric = make_rubric()
    for states in ([], [make_state("GOOD", metrics=None), make_state("LOST", error=vf.Error("x")), {"reward": None}]):
        for func in (func for func in rubric.funcs if rubric._is_group_func(func)):
            values = func(states=states)
            assert len(values) == len(states)
            assert all(type(value) is float and math.isfinite(value) for value in values)


async def test_one_rubric_may_serve_two_environments(make_rubric: Any) -> None:
    """A RubricGroup that two environments share collects the monitors of both."""
    rubric = make_rubric()
    data = datasets.Dataset.from_list([{"question": "Who?", "answer": ""}])
    for env in [vf.SingleTurnEnv(dataset=data, rubric=rubric) for _ in range(2)]:
        (state,) = await score(env.rubric, [make_state("GOOD")])
        assert (state["reward"], state["metrics"]["num_turns"]) == (1.0, 1.0)


def test_without_group_funcs_the_environment_asks_trainers_for_nothing_special(make_rubric: Any) -> None:
    data = datasets.Dataset.from_list([{"question": "Who?", "answer": ""}])
    for advantage, wanted in (("mean", True), (None, False)):
        env = vf.SingleTurnEnv(dataset=data, rubric=make_rubric(advantage=advantage))
        assert env.requires_group_rollouts is wanted


async def test_plain_dicts_from_an_earlier_run_are_scored_as_states_are(make_rubric: Any) -> None:
    """A trainer may make rollouts unscored and score their outputs later, with no cleanup."""
    outputs = []
    for quality in ("GOOD", "BAD"):
        state = make_state(quality)
        row = {name: state[name] for name in ("prompt", "completion", "answer", "info", "trajectory", "example_id")}
        outputs.append(json.loads(json.dumps({**row, "reward": 0.0, "metrics": {}, "error": None})))
    await make_rubric().score_group(outputs)
    assert [(output["reward"], output["advantage"]) for output in outputs] == [(1.0, 0.5), (0.0, -0.5)]


async def test_what_a_users_func_asks_for_is_made_only_when_there_is_one(make_rubric: Any) -> None:
    """verifiers collects score objects for every func of every rollout, outside of any `try`."""
    rubric = make_rubric()
    objects = rubric.score_objects(make_state("GOOD"))
    assert {"judge", "judge_model"} <= objects.keys()
    assert not {"judge_client", "verdict_parser"} & objects.keys()


async def test_a_key_that_cannot_be_had_is_no_end_of_the_run(judge: Any) -> None:
    def refuses() -> str:
        raise RuntimeError("the vault is closed")

    def asks(judge_client: Any) -> float:
        return float(judge_client is not None)

    rubric = HarborRubric("judge-model", judge.base_url, refuses, rubric=RUBRIC, settings={"max_tries": 1})
    rubric.add_metric(asks)
    (state,) = await score(rubric, [make_state("GOOD")])
    assert isinstance(state["error"], HarborJudgeError)
    assert "the function raised RuntimeError" in str(state["error"])
    assert state["metrics"]["asks"] == 1.0


@pytest.mark.parametrize("group", [vf.RubricGroup, HarborRubricGroup])
async def test_another_rubrics_nan_takes_its_rollout_out_of_the_baseline_and_no_other(
    make_rubric: Any, group: Any
) -> None:
    """A NaN reward makes the mean NaN, and with it every advantage of the group."""

    def upset(completion: Any) -> float:
        return math.nan if "BAD" in str(completion) else 0.0

    members = [make_rubric(), vf.Rubric(funcs=[upset], weights=[1.0])]
    states = await score(group(members), [make_state("GOOD"), make_state("HALF"), make_state("BAD")])
    assert [state["advantage"] for state in states] == pytest.approx([0.125, -0.125, 0.0])


async def test_nothing_in_verifiers_ends_a_scoring_so_the_rubric_does(make_rubric: Any, judge: Any) -> None:
    judge.rule(lambda call: "reply SLOW" in call.text, "hang")
    rubric = make_rubric(settings={"deadline": 4.0})
    async with asyncio.timeout(60):
        slow, good = await score(rubric, [make_state("SLOW"), make_state("GOOD")])
    assert "deadline" in str(slow["error"])
    assert (good["reward"], good["error"]) == (1.0, None)


async def test_nothing_in_verifiers_bounds_the_calls_of_scorings_so_the_rubric_does(
    make_rubric: Any, judge: Any
) -> None:
    judge.default = SCENARIOS["ok"].after(0.3)
    rubric = make_rubric(settings={"max_in_flight": 3})
    groups = [[make_state(f"number {group}-{member}") for member in range(4)] for group in range(4)]
    await asyncio.gather(*(score(rubric, states) for states in groups))
    assert len(judge.calls) == 16
    assert judge.max_in_flight == 3


async def test_an_error_that_an_environment_gave_as_text_is_kept_and_not_judged(make_rubric: Any, judge: Any) -> None:
    """verifiers itself chokes on it when it saves the rollout; that is not to begin in the rubric."""
    (state,) = await score(make_rubric(), [make_state("GOOD", error="the sandbox died")])
    assert (state["error"], state["reward"], state["advantage"], judge.calls) == ("the sandbox died", 0.0, 0.0, [])
