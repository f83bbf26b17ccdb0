"""`HarborRubric(log=…)`: figures of every scored group, for curves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import Family, HarborRubric, build_environment
from tests.classic.conftest import make_state, score, verdicts, vf
from tests.servers.scenarios import Scenario

ROWS = [
    {"id": "R1", "description": "The total is named.", "weight": 3, "tag": "figures", "criterion_type": "fact"},
    {"id": "R2", "description": "The owner is named.", "weight": 1, "tag": "people", "criterion_type": "fact"},
    {"id": "R3", "description": "It guesses.", "weight": -1, "tag": "conduct", "criterion_necessity": "optional"},
]

logged: list[tuple[dict[str, float], int]] = []


def keep(figures: dict[str, float], step: int) -> None:
    logged.append((figures, step))


@pytest.fixture(autouse=True)
def _empty() -> None:
    logged.clear()


async def test_a_group_is_logged_once_with_finite_floats_under_rising_steps(make_rubric: Any) -> None:
    rubric = make_rubric(log=keep)
    await score(rubric, [make_state("GOOD"), make_state("HALF"), make_state("LOST")])
    await score(vf.RubricGroup([rubric]), [make_state("BAD")])
    (first, one), (second, two) = logged
    assert one < two
    assert all(type(value) is float and math.isfinite(value) for value in (*first.values(), *second.values()))
    assert first["rubric/rollouts"] == 3.0
    assert first["rubric/reward"] == 0.875
    assert first["rubric/judge_scored"] == first["rubric/judge_coverage"] == pytest.approx(2 / 3)
    assert first["rubric/fault/auth"] == 2.0
    assert second["rubric/reward"] == 0.0


async def test_every_field_is_there_even_where_nothing_was_judged(make_rubric: Any) -> None:
    await score(make_rubric(log=keep), [make_state("LOST"), make_state("GOOD", error=vf.Error("earlier"))])
    ((figures, _),) = logged
    assert (figures["rubric/rollouts"], figures["rubric/judge_scored"]) == (1.0, 0.0)
    assert {"rubric/judge_cost_usd", "rubric/judge_calls", "rubric/judge_score_lo"} <= figures.keys()
    assert "rubric/reward" not in figures


async def test_the_score_is_told_by_tag_type_and_necessity(make_rubric: Any, judge: Any) -> None:
    judge.rule(lambda call: "ALL" in call.text, Scenario("all", content=verdicts({"R1": True, "R2": True, "R3": True})))
    judge.rule(lambda call: "ONE" in call.text, Scenario("1", content=verdicts({"R1": True, "R2": False, "R3": False})))
    await score(make_rubric(rubric=ROWS, log=keep, name="strict"), [make_state("ALL"), make_state("ONE")])
    ((figures, _),) = logged
    told = {name: value for name, value in figures.items() if name.count("/") == 2}
    # Nothing can be earned where all rows are violations.
    assert told == {"strict/tag/figures": 1.0, "strict/tag/people": 0.5, "strict/type/fact": 0.875}


async def test_a_log_that_raises_costs_one_line_and_no_reward(
    make_rubric: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def full(figures: dict[str, float], step: int) -> None:
        raise OSError("disk full")

    rubric = make_rubric(log=full)
    for _ in range(2):
        (state,) = await score(rubric, [make_state("GOOD")])
        assert (state["reward"], state["error"]) == (1.0, None)
    assert [record.levelname for record in caplog.records if "log raised" in record.message] == ["ERROR"]


async def test_json_arguments_name_the_function_and_the_environment_the_figures(
    judge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = tmp_path / "a" / "tests"
    tests.mkdir(parents=True)
    (tests.parent / "instruction.md").write_text("Say who.")
    (tests / "judge_instruction.md").write_text("Judge.")
    (tests / "rubric.json").write_text('[{"description": "Names reply", "weight": 1}]')
    env = build_environment(
        Family("harbor-x", tmp_path), judge={"settings": {"backend": "local"}, "log": f"{__name__}:keep"}
    )
    await score(env.rubric, [make_state("GOOD", info=env.get_dataset()[0]["info"])])
    ((figures, _),) = logged
    assert figures["harbor-x/judge_scored"] == 1.0


@pytest.mark.parametrize("wrong", ["wandb", "no_such_module:log", f"{__name__}:nothing", f"{__name__}:ROWS", 3])
def test_a_log_that_cannot_be_called_is_refused_before_any_rollout(wrong: Any) -> None:
    with pytest.raises(ValueError, match="log = "):
        HarborRubric(settings={"backend": "local"}, log=wrong)
