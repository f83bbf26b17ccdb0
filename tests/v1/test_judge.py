"""SPEC 9 in verifiers.v1: a plugged judge, its sources and metrics, and traces that it cannot score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_env.scoring import FaultKind, unscored
from rubric_env.v1 import HarborJudgeConfig
from tests.servers.endpoint import Endpoint
from tests.v1.conftest import ROWS, Run, make_instance

FIELDS = unscored(FaultKind.INTERNAL, "").metrics().keys()


@pytest.fixture
def ask(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run somebody else's taskset whose one row has these fields; returns its trace."""

    def go(judge: Any = (), agent: Any = (), **row: Any) -> Any:
        monkeypatch.setenv("QUESTION", json.dumps(row))
        [episode] = run(judge=judge, agent=agent, taskset={"id": "questions"})
        return episode.traces[0]

    return go


def test_the_reward_is_the_score_and_every_field_of_section_7_is_a_metric(ask: Any, endpoint: Endpoint) -> None:
    endpoint.truth = {"R2": False}
    trace = ask(rubric=ROWS)
    assert trace.ok and trace.reward == 0.75
    assert trace.metrics.keys() >= FIELDS
    assert trace.metrics["judge_scored"] == trace.metrics["judge_coverage"] == trace.metrics["delivery_from_chat"] == 1
    assert trace.info["judge_result"]["details"]["results"][0]["hit"] is True
    [usage] = trace.extra_usage
    assert usage.prompt_tokens == trace.metrics["judge_input_tokens"] > 0
    endpoint.settle()


def test_blocks_are_asked_side_by_side(ask: Any, endpoint: Endpoint) -> None:
    rows = [{"id": f"R{n}", "description": f"Row {n}.", "weight": 1} for n in range(5)]
    trace = ask(judge={"settings": {"batch": 2}}, rubric=rows)
    assert trace.reward == 1
    assert sorted(len(call.ids) for call in endpoint.calls) == [1, 2, 2]


@pytest.mark.parametrize(
    ("row", "judge", "shown"),
    [
        ({"info": {"rubric": ROWS}}, {}, "names the total"),
        ({"info": json.dumps({"rubric": ROWS})}, {}, "names the total"),
        ({"rubric": json.dumps(ROWS)}, {"rubric": [{"id": "X", "description": "Never."}]}, "names the total"),
        ({}, {"rubric": ROWS}, "names the total"),
        ({"rubric": ROWS, "task_prompt": "The whole task."}, {}, "The whole task."),
        ({"rubric": ROWS}, {}, "Who owns the total?"),
        ({"rubric": ROWS, "judge_instruction": "Be kind."}, {}, "Be kind."),
        ({"rubric": ROWS, "answer": "It is 5."}, {}, "It is 5."),
        ({"rubric": ROWS, "reference": "It is 6.", "answer": "5"}, {}, "It is 6."),
        ({"rubric": ROWS}, {"reference": "It is 7."}, "It is 7."),
    ],
)
def test_section_9_where_content_comes_from(
    ask: Any, endpoint: Endpoint, row: dict[str, Any], judge: dict[str, Any], shown: str
) -> None:
    assert ask(judge=judge, **row).ok
    assert shown in endpoint.calls[0].text


def test_an_instance_serves_as_source(ask: Any, endpoint: Endpoint, tmp_path: Path) -> None:
    root = make_instance(tmp_path / "one", **{"tests/task_prompt.md": "The instance's task."})
    trace = ask(instance=str(root))
    assert trace.reward == 1
    assert "The instance's task." in endpoint.calls[0].text and "Be exact." in endpoint.calls[0].text


def test_files_come_from_the_submission_directory(ask: Any, endpoint: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "work" / "output").mkdir(parents=True)
    (tmp_path / "work" / "output" / "memo.md").write_text("The owner is the clinic.")
    assert ask(rubric=ROWS, submission_dir=str(tmp_path / "work")).ok
    assert "The owner is the clinic." in endpoint.calls[0].text


def test_what_the_prompt_says_is_not_the_policys_reply(ask: Any, endpoint: Endpoint, policy: Endpoint) -> None:
    policy.prose = ""
    trace = ask(rubric=ROWS)
    assert trace.ok and trace.reward == 0.0
    assert trace.metrics["delivery_missing"] == trace.metrics["judge_scored"] == 1
    assert endpoint.calls == []


@pytest.mark.parametrize(
    ("scenario", "kind"), [("401", "auth"), ("500", "server"), ("429", "rate_limit"), ("prose", "unparseable")]
)
def test_an_unscored_trace_fails_with_one_line(ask: Any, endpoint: Endpoint, scenario: str, kind: str) -> None:
    endpoint.rule(lambda call: True, scenario)
    trace = ask(judge={"settings": {"deadline": 4.0}}, rubric=ROWS)
    assert not trace.ok
    [error] = trace.errors
    assert error.type == "HarborJudgeError" and "\n" not in error.message and kind in error.message
    assert trace.metrics["judge_scored"] == 0 and trace.metrics["judge_fault_count"] == 2
    assert trace.info["judge_result"]["task_score"] is None


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({}, "no rubric"),
        ({"rubric": []}, "at least one row"),
        ({"instance": "/nowhere"}, "no such directory"),
        ({"info": "[1]"}, "info must be an object"),
        ({"rubric": ROWS, "submission_dir": "/nowhere"}, "/nowhere"),
    ],
)
def test_a_row_that_cannot_be_judged_costs_no_call(
    ask: Any, endpoint: Endpoint, row: dict[str, Any], says: str
) -> None:
    trace = ask(**row)
    assert not trace.ok and says in trace.errors[0].message
    assert endpoint.calls == []


def test_our_deadline_comes_before_the_scoring_time_out(ask: Any, endpoint: Endpoint) -> None:
    """verifiers 0.4 lets a trace whose scoring timed out count, with a reward of 0."""
    endpoint.rule(lambda call: True, "hang")
    trace = ask(agent={"timeout": {"scoring": 6}}, rubric=ROWS)
    assert not trace.ok
    assert trace.errors[0].type == "HarborJudgeError"
    assert "the scoring time-out of 6 s" in trace.errors[0].message
    assert trace.stop_condition != "scoring_timeout"


@pytest.mark.parametrize(("on_unscored", "reward"), [("zero", 0.0), ("last", 0.75)])
def test_section_13_on_unscored_may_ask_for_a_number(
    ask: Any, endpoint: Endpoint, on_unscored: str, reward: float
) -> None:
    endpoint.rule(lambda call: "R2" in call.ids, "500")
    trace = ask(judge={"settings": {"batch": 1, "on_unscored": on_unscored}}, rubric=ROWS)
    assert trace.ok and trace.reward == reward
    assert trace.metrics["judge_scored"] == 0


def test_a_name_prefixes_reward_and_metrics(ask: Any) -> None:
    trace = ask(judge={"name": "strict", "weight": 0.5}, rubric=ROWS)
    assert trace.rewards.keys() == {"strict"} and trace.reward == 0.5
    assert trace.metrics["strict_judge_scored"] == 1 and "strict_judge_result" in trace.info


# --- configuration -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "no judge credential"),
        ({"base_url": "http://127.0.0.1:1/v1"}, "without a key"),
        ({"api_key_var": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
        ({"settings": {"batch": 0}}, "batch (argument) = 0"),
        ({"settings": {"nonsense": 1}}, "nonsense"),
        ({"settings": {"api_key": "k"}}, "credential"),
        ({"endpoints": [{"base_url": "http://127.0.0.1:1/v1", "api_key": "sk-secret"}]}, "api_key_var"),
        ({"rubric": [{"id": "R1"}]}, "no text"),
        ({"prompt": "/nowhere/instruction.md"}, "cannot be read"),
        ({"headers": {"X": "1"}}, "headers: not for this judge"),
        ({"sampling": {"temperature": 0.5}}, "sampling: not for this judge"),
    ],
)
def test_what_cannot_be_used_is_told_when_the_configuration_is_read(
    given: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JUDGE_API_KEY", "OPENAI_API_KEY", "JUDGE_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    if {"settings", "rubric", "prompt", "headers", "sampling"} & given.keys():
        monkeypatch.setenv("JUDGE_API_KEY", "key")
    with pytest.raises(ValueError) as caught:
        HarborJudgeConfig(**given)
    assert says in str(caught.value)
    assert "sk-secret" not in str(caught.value)


def test_a_configuration_survives_its_way_to_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "key")
    config = HarborJudgeConfig(settings={"batch": 2, "max_uncertainty": "off"}, rubric=ROWS)
    again = HarborJudgeConfig.model_validate_json(config.model_dump_json())
    assert again == config
    assert HarborJudgeConfig.model_validate(config.model_dump()) == config
