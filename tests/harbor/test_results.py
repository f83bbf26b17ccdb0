from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rubric_env.harbor import result_json, write_result
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import FaultKind, Outcome, OutcomeContext, not_delivered, settle, unscored
from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Judgement, RowVerdict, Usage
from rubric_env.settings import JudgeSettings

SPEC = RubricSpec.parse(
    [
        {"id": "a", "description": "Names the total.", "weight": 3, "tag": "numbers"},
        {
            "id": "g",
            "description": "Table is right.",
            "weight": 2,
            "type": "gradient",
            "levels": {"0": "no", "0.5": "half", "1": "yes"},
            "depends_on": "a",
            "tag": "numbers",
        },
        {"id": "n", "description": "Invents a cause.", "weight": -1, "tag": "tone"},
    ]
)
DELIVERY = {"files": ["output/memo.md"], "missing": False, "from_chat": False, "stray": ["memo.md"]}
VERDICTS = {
    "a": RowVerdict(True, reason="It says 12.", evidence="output/memo.md ¶1", spelled="hit:true", recovered_by="whole"),
    "g": RowVerdict(True, level=0.5, level_raw=0.4, reason="Half.", spelled="level:0.4", recovered_by="fence", tries=2),
    "n": RowVerdict(False, reason="None.", spelled="hit:false", recovered_by="whole"),
}


def settings(**values: Any) -> JudgeSettings:
    return JudgeSettings.load(values, environ={})


def judged(verdicts: dict[str, RowVerdict], config: JudgeSettings | None = None) -> Outcome:
    faults = {row: Fault(FaultKind.TIMEOUT, "150 s") for row in SPEC.ids if row not in verdicts}
    tries = {row: verdicts[row].tries if row in verdicts else 6 for row in SPEC.ids}
    judgement = Judgement(verdicts, faults, Usage(calls=3, cost_usd=0.01), 2.5, tries)
    return settle(SPEC, judgement, config or settings(), OutcomeContext(delivery=DELIVERY))


def test_section_10_result_of_a_judged_rollout() -> None:
    outcome = judged(VERDICTS)
    result = result_json(outcome, settings())
    assert list(result) == [
        "task_score",
        "status",
        "exit_code",
        "exit_reason",
        "metric_id",
        "extra_fields",
        "details",
    ]
    assert result["task_score"] == pytest.approx(0.8)
    assert (result["status"], result["exit_code"], result["metric_id"]) == ("success", None, "rubric_llm_judge")
    assert result["extra_fields"] == dict(outcome.fields)
    details = result["details"]
    assert details["delivery"] == DELIVERY
    assert details["results"] == [
        {"id": "a", "hit": True, "reason": "It says 12.", "evidence": "output/memo.md ¶1"},
        {"id": "g", "hit": True, "level": 0.5, "reason": "Half.", "evidence": ""},
        {"id": "n", "hit": False, "reason": "None.", "evidence": ""},
    ]
    assert details["criteria"][1] == {
        "id": "g",
        "tag": "numbers",
        "gate": "open",
        "contribution": 1.0,
        "level_raw": 0.4,
        "spelled": "level:0.4",
        "recovered_by": "fence",
        "fault": "",
        "tries": 2,
    }
    assert details["score"]["tags"] == {
        "numbers": {"earned": 4.0, "possible": 5.0},
        "tone": {"earned": 0.0, "possible": 0.0},
    }


def test_section_3_the_contributions_in_the_result_add_up_to_earned() -> None:
    details = result_json(judged(VERDICTS), settings())["details"]
    assert math.fsum(row["contribution"] for row in details["criteria"]) == details["score"]["earned"] == 4.0


def test_section_10_an_unjudged_row_has_a_fault_and_no_result() -> None:
    outcome = judged({"a": VERDICTS["a"], "g": VERDICTS["g"]}, settings(max_uncertainty=0.5))
    details = result_json(outcome, settings())["details"]
    assert outcome.scored
    assert [row["id"] for row in details["results"]] == ["a", "g"]
    lost = details["criteria"][2]
    assert (lost["id"], lost["fault"], lost["tries"]) == ("n", "timeout: 150 s", 6)


def test_section_6_nothing_delivered_is_a_zero_that_counts(tmp_path: Path) -> None:
    delivery = {"files": [], "missing": True, "from_chat": False, "stray": []}
    outcome = not_delivered(SPEC, settings(), OutcomeContext(delivery=delivery))
    write_result(outcome, settings(), tmp_path)
    result = read(tmp_path / "result.json")
    assert (result["task_score"], result["status"], result["exit_code"]) == (0.0, "success", None)
    assert result["details"]["delivery"] == delivery
    assert {row["hit"] for row in result["details"]["results"]} == {False}
    assert all(row["reason"] == result["exit_reason"] != "" for row in result["details"]["results"])
    assert read(tmp_path / "reward.json") == {"reward": 0.0}


def test_section_10_reward_files_are_what_harbor_accepts(tmp_path: Path) -> None:
    path = write_result(judged(VERDICTS), settings(), tmp_path / "logs" / "verifier")
    assert path == tmp_path / "logs/verifier/result.json"
    assert read(path.parent / "reward.json") == {"reward": pytest.approx(0.8)}
    assert float((path.parent / "reward.txt").read_text("ascii")) == pytest.approx(0.8)
    assert sorted(file.name for file in path.parent.iterdir()) == ["result.json", "reward.json", "reward.txt"]


def test_unscored_leaves_no_reward_and_no_old_one(tmp_path: Path) -> None:
    write_result(judged(VERDICTS), settings(), tmp_path)
    write_result(judged({}), settings(), tmp_path)
    result = read(tmp_path / "result.json")
    assert (result["task_score"], result["status"], result["exit_code"]) == (None, "error", "judge:timeout")
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize("on_unscored", ["mark", "zero", "last"])
def test_unscored_before_any_call_has_no_rows(tmp_path: Path, on_unscored: str) -> None:
    outcome = unscored(FaultKind.NO_CREDENTIAL, "set JUDGE_API_KEY", rows=3)
    write_result(outcome, settings(on_unscored=on_unscored), tmp_path)
    result = read(tmp_path / "result.json")
    assert result["exit_code"] == "judge:no_credential"
    assert result["details"] == {"delivery": {}, "score": {}, "results": [], "criteria": []}
    assert (tmp_path / "reward.json").exists() == (on_unscored == "zero")


@pytest.mark.parametrize(
    ("values", "reward"),
    [
        ({"on_unscored": "mark"}, None),
        ({"on_unscored": "regenerate"}, None),
        ({"on_unscored": "zero"}, 0.0),
        ({"on_unscored": "last"}, 0.6),
        ({"on_unscored": "last", "reward_mode": "binary", "pass_threshold": 0.5}, 0.0),
    ],
)
@pytest.mark.filterwarnings("ignore:binary rewards")
def test_section_13_on_unscored(tmp_path: Path, values: dict[str, Any], reward: float | None) -> None:
    config = settings(**values)
    outcome = judged({"a": VERDICTS["a"]}, config)
    assert not outcome.scored
    write_result(outcome, config, tmp_path)
    result = read(tmp_path / "result.json")
    assert (result["task_score"], result["status"]) == (reward, "error")
    assert (tmp_path / "reward.json").exists() == (tmp_path / "reward.txt").exists() == (reward is not None)


def test_last_needs_a_verdict_to_stand_on() -> None:
    config = settings(on_unscored="last")
    assert result_json(judged({}, config), config)["task_score"] is None


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    write_result(judged(VERDICTS), settings(), tmp_path)
    (tmp_path / "result.json").unlink()
    (tmp_path / "result.json").mkdir()
    with pytest.raises(OSError):
        write_result(judged(VERDICTS), settings(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def read(path: Path) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(path.read_text("utf-8"), parse_constant=refuse)
