"""SPEC 7: what a judge suffers makes rows unjudged or a rollout unscored, never 0."""

from __future__ import annotations

import pytest

from rubric_env.engine import Backoff, JudgeEngine
from rubric_env.judges import Prompt, Reply
from rubric_env.settings import JudgeSettings
from tests.engine.conftest import Judging, case, detail, faults, rows
from tests.servers.scenarios import SCENARIOS


@pytest.mark.parametrize(
    ("scenario", "kind", "code"),
    [
        ("503", "server", "judge:api_error"),
        ("500", "server", "judge:api_error"),
        ("502_html", "server", "judge:api_error"),
        ("drop", "connection", "judge:api_error"),
        ("empty", "empty", "judge:api_error"),
        ("refusal", "refusal", "judge:api_error"),
        ("content_filter", "content_filter", "judge:api_error"),
        ("context_length", "context_length", "judge:api_error"),
        ("bad_request", "bad_request", "judge:api_error"),
        ("hang", "timeout", "judge:timeout"),
        ("prose", "unparseable", "judge:parse_error"),
        ("wrong_ids", "unparseable", "judge:parse_error"),
        ("contradiction", "unparseable", "judge:parse_error"),
        ("length", "truncated", "judge:parse_error"),
    ],
)
async def test_section_7_a_judge_that_fails_for_ever_is_unscored_never_zero(
    judging: Judging, scenario: str, kind: str, code: str
) -> None:
    judging.endpoint.default = SCENARIOS[scenario]
    outcome = await judging(rows(2), max_tries=2, per_timeout=0.3 if scenario == "hang" else 60.0)
    assert set(faults(outcome).values()) == {kind}
    assert (outcome.reward, outcome.scored, str(outcome.exit_code)) == (None, False, code)
    assert outcome.fields["judge_error_kind"] == kind
    assert detail(outcome, "R02")


@pytest.mark.parametrize(
    "scenario",
    [
        "429",
        "429_bare",
        "429_in_200",
        "429_in_words",
        "error_in_content",
        "503",
        "500",
        "502_html",
        "html",
        "drop",
        "reset",
        "half",
        "too_short",
        "garbage",
        "not_json",
        "no_choices",
        "empty",
        "null_content",
        "prose",
        "wrong_ids",
        "contradiction",
        "refusal",
        "thought_only",
        "length",
        "missing_row",
    ],
)
async def test_section_7_one_failure_is_asked_again_and_leaves_no_trace_in_the_score(
    judging: Judging, scenario: str
) -> None:
    judging.endpoint.script(scenario)
    judging.endpoint.truth = {"R02": False}
    outcome = await judging(rows(4))
    assert (outcome.reward, outcome.fields["judge_coverage"]) == (0.75, 1.0)
    assert outcome.exit_reason == ""
    assert len(judging.endpoint.calls) >= 2


class RaisingJudge:
    model = identity = "raising"

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply:
        raise ValueError("a bug of the judge")

    async def aclose(self) -> None: ...


async def test_a_judge_that_raises_all_the_same_is_internal(caplog: pytest.LogCaptureFixture) -> None:
    settings = JudgeSettings(max_tries=1)
    outcome = await JudgeEngine(settings, RaisingJudge(), backoff=Backoff(unit=0.01)).judge(case(rows(4)))
    assert set(faults(outcome).values()) == {"internal"}
    assert str(outcome.exit_code) == "judge:crash"
    assert "ValueError: a bug of the judge" in outcome.exit_reason
    assert "a bug of the judge" in caplog.text


async def test_fenced_answers_need_no_second_call(judging: Judging) -> None:
    judging.endpoint.script("fenced")
    assert (await judging(rows(4))).reward == 1.0
    assert len(judging.endpoint.calls) == 1


async def test_an_answer_that_left_one_row_out_for_ever_costs_that_row(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: call.ids[-1] == "R04" and len(call.ids) > 1, "missing_row")
    judging.endpoint.rule(lambda call: call.ids == ("R04",), "prose")
    outcome = await judging(rows(4), max_tries=2, max_uncertainty=None)
    assert faults(outcome) == {"R04": "unparseable"}
    assert outcome.reward == 0.75


async def test_large_answers_are_read_off_the_event_loop(judging: Judging) -> None:
    filler = " ".join(["a long reason"] * 3000)
    content = f'{{"verdicts": [{{"id": "R01", "reason": "{filler}", "evidence": "", "hit": true}}]}}'
    judging.endpoint.script(SCENARIOS["ok"].__class__("large", content=content))
    assert (await judging(rows(1))).reward == 1.0
