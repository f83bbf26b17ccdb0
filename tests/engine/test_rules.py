"""SPEC 3, 4, 5 and 6 over the wire: rows that are asked again, and what is decided without asking."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rubric_env.settings import SettingsError
from rubric_env.submission import read_submission
from tests.engine.conftest import Judging, case, detail, faults, rows
from tests.servers.scenarios import SCENARIOS

GRADED = {"type": "gradient", "levels": {"0": "none", "0.5": "some", "1": "all"}}


async def test_section_5_words_of_quality_on_a_hurdle_are_asked_again(judging: Judging) -> None:
    judging.endpoint.script("quality_words")
    rubric = [*rows(2), {"id": "H", "description": "no file delivered", "hurdle": True, "weight": 0}]
    judging.endpoint.truth = {"H": False}
    outcome = await judging(rubric)
    assert judging.asked() == [("R01", "R02", "H"), ("H",)]
    assert outcome.reward == 1.0


@pytest.mark.parametrize("scenario", ["no_level", "wrong_scale"])
async def test_section_3_a_graded_row_without_a_usable_level_is_asked_again(judging: Judging, scenario: str) -> None:
    judging.endpoint.truth = {"R01": 0.5}
    judging.endpoint.script(scenario)
    outcome = await judging(rows(1, **GRADED))
    assert (outcome.reward, outcome.fields["judge_level_fallback"], len(judging.endpoint.calls)) == (0.5, 0, 2)


async def test_section_3_after_the_last_try_hit_stands_for_the_level(judging: Judging) -> None:
    judging.endpoint.truth = {"R01": 0.5, "R02": 0.0}
    judging.endpoint.default = SCENARIOS["no_level"]
    outcome = await judging(rows(2, **GRADED), max_tries=2)
    assert (outcome.reward, outcome.fields["judge_level_fallback"]) == (0.5, 2)
    assert outcome.fields["judge_coverage"] == 1.0


async def test_section_3_what_stands_counts_at_the_deadline_too(judging: Judging) -> None:
    judging.endpoint.script("no_level")
    judging.endpoint.default = SCENARIOS["hang"]
    outcome = await judging(rows(1, **GRADED), deadline=4.0)
    assert (outcome.reward, outcome.fields["judge_level_fallback"]) == (1.0, 1)


async def test_section_3_a_level_on_another_scale_is_never_a_verdict(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["wrong_scale"]
    outcome = await judging(rows(1, **GRADED), max_tries=2)
    assert faults(outcome) == {"R01": "unparseable"}
    assert "75" in detail(outcome, "R01")


async def test_section_4_null_is_asked_again_where_nothing_failed_on_our_side(judging: Judging) -> None:
    judging.endpoint.script("null_hits")
    assert (await judging(rows(2))).reward == 1.0
    assert len(judging.endpoint.calls) == 2


async def test_section_4_null_counts_as_cannot_assess_where_our_budget_cut_the_evidence(judging: Judging) -> None:
    judging.endpoint.truth = {"R02": None}
    reply = "\n\n".join(f"Paragraph {n} about the profit of the year and what became of it." for n in range(2000))
    outcome = await judging(rows(12), reply, evidence_tokens=1000)
    assert faults(outcome) == {"R02": "cannot_assess"}
    assert len(judging.endpoint.calls) == 3
    assert outcome.scored
    assert outcome.fields["judge_evidence_cut"] == 1


async def test_section_4_a_row_that_the_judge_gave_up_on_keeps_no_level_of_an_earlier_try(judging: Judging) -> None:
    judging.endpoint.script("no_level", "null_hits")
    reply = "\n\n".join(f"Paragraph {n} about the profit of the year and what became of it." for n in range(2000))
    outcome = await judging(rows(1, **GRADED), reply, evidence_tokens=1000)
    assert faults(outcome) == {"R01": "cannot_assess"}
    assert outcome.fields["judge_level_fallback"] == 0


async def test_section_8_a_policy_that_pads_its_evidence_shows_in_a_metric(judging: Judging, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("The profit rose.")
    (tmp_path / "padding.txt").write_text("nothing but padding\n\n" * 20_000)
    (tmp_path / "sheet.7z").write_bytes(b"7z\xbc\xaf\x27\x1c" + bytes(60))
    engine = judging.engine(evidence_tokens=2000)
    outcome = await engine.judge(replace(case(rows(1)), submission=read_submission(tmp_path)))
    assert outcome.metrics()["judge_evidence_cut"] == 2.0


async def test_section_6_nothing_delivered_is_decided_before_anything_else(judging: Judging) -> None:
    outcome = await judging(rows(4), "", deadline=0)
    assert (outcome.reward, outcome.scored, outcome.exit_code) == (0.0, True, None)
    assert outcome.fields["delivery_missing"] is True
    assert judging.endpoint.calls == []


async def test_section_6_a_reply_alone_is_judged(judging: Judging) -> None:
    outcome = await judging(rows(1))
    assert outcome.fields["delivery_from_chat"] is True
    assert outcome.reward == 1.0


async def test_fields_are_on_every_outcome_and_metrics_are_finite(judging: Judging) -> None:
    judged = await judging(rows(1))
    missing = await judging(rows(1), "")
    judging.endpoint.default = SCENARIOS["prose"]
    failed = await judging(rows(1), max_tries=1)
    assert judged.metrics().keys() == missing.metrics().keys() == failed.metrics().keys()
    for outcome in (judged, missing, failed):
        assert all(math.isfinite(value) for value in outcome.metrics().values())


async def test_section_4_without_an_instruction_the_built_in_one_is_used_with_a_warning(judging: Judging) -> None:
    engine = judging.engine()
    with_default = await engine.judge(case(rows(1), instruction=""))
    assert "built-in" in with_default.fields["judge_warnings"]
    assert "# Instruction\nJudge what was delivered" in judging.endpoint.calls[0].text


async def test_section_3_a_rubric_with_nothing_to_score_is_a_scorer_error_before_any_call(judging: Judging) -> None:
    outcome = await judging(
        [{"id": "N", "description": "Cites nothing", "weight": -1}, *rows(1, hurdle=True, weight=0)]
    )
    assert (outcome.reward, str(outcome.exit_code)) == (None, "judge:scorer_error")
    assert outcome.fields["judge_unjudged"] == 2
    assert judging.endpoint.calls == []


@pytest.mark.parametrize("own", ["", " \n"])
async def test_section_13_the_instruction_file_serves_cases_without_their_own(
    judging: Judging, tmp_path: Path, own: str
) -> None:
    (tmp_path / "instruction.md").write_text("Judge like an auditor.", "utf-8")
    engine = judging.engine(instruction_file=str(tmp_path / "instruction.md"))
    outcome = await engine.judge(case(rows(1), instruction=own))
    assert "# Instruction\nJudge like an auditor." in judging.endpoint.calls[0].text
    assert "judge_warnings" not in outcome.fields
    await engine.judge(case(rows(1), instruction="Judge like a poet."))
    assert "auditor" not in judging.endpoint.calls[1].text


async def test_an_instruction_file_that_cannot_be_read_is_refused_before_anything_is_paid(judging: Judging) -> None:
    with pytest.raises(SettingsError, match=r"no-such-file\.md"):
        judging.engine(instruction_file="no-such-file.md")


@pytest.mark.parametrize("setting", [{"skip": True}, {"aux_files": "a.md"}])
async def test_a_setting_that_this_version_has_not_is_refused_rather_than_ignored(
    judging: Judging, setting: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError, match=next(iter(setting))):
        judging.engine(**setting)
