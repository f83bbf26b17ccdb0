"""SPEC 7, running the blocks: every rule by name, over real HTTP."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rubric_env.engine import Backoff, Breaker, CallEvent, JudgeAborted, JudgeEngine
from rubric_env.judges import Prompt, Reply
from rubric_env.scoring import FaultKind, Outcome
from rubric_env.settings import JudgeSettings
from tests.engine.conftest import Judging, case, rows, until
from tests.servers.scenarios import SCENARIOS, error

GRADED = {"type": "gradient", "levels": {"0": "none", "0.5": "some", "1": "all"}}


def faults(outcome: Outcome) -> dict[str, str]:
    assert outcome.judgement is not None
    return {row: str(fault.kind) for row, fault in outcome.judgement.faults.items()}


def detail(outcome: Outcome, row: str) -> str:
    assert outcome.judgement is not None
    return outcome.judgement.faults[row].detail


# Blocks


async def test_section_7_blocks_of_batch_rows_concurrency_at_a_time(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.05)
    judging.endpoint.truth = {"R03": False}
    outcome = await judging(rows(10), batch=4, concurrency=2)
    assert sorted(judging.asked()) == [
        ("R01", "R02", "R03", "R04"),
        ("R05", "R06", "R07", "R08"),
        ("R09", "R10"),
    ]
    assert judging.endpoint.max_in_flight == 2
    assert (outcome.reward, outcome.fields["judge_coverage"], outcome.fields["judge_calls"]) == (0.9, 1.0, 3)


async def test_section_7_max_in_flight_holds_for_all_rollouts_together(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.03)
    engine = judging.engine(concurrency=4, batch=1, max_in_flight=3)
    outcomes = await asyncio.gather(*(engine.judge(case(rows(4))) for _ in range(4)))
    assert [outcome.reward for outcome in outcomes] == [1.0] * 4
    assert judging.endpoint.max_in_flight == 3


async def test_section_7_usage_is_summed_over_all_tries_failed_ones_too(judging: Judging) -> None:
    judging.endpoint.script("missing_row", "503")
    outcome = await judging(rows(2))
    assert outcome.judgement is not None
    first, second, third = judging.events
    assert outcome.fields["judge_calls"] == 3
    assert outcome.fields["judge_input_tokens"] == first.usage.input_tokens + third.usage.input_tokens > 0
    assert second.usage.calls == 1
    assert outcome.judgement.tries == {"R01": 1, "R02": 3}
    assert outcome.judgement.verdicts["R02"].tries == 3


# Retries


async def test_section_7_a_retry_asks_only_for_the_rows_still_unjudged(judging: Judging) -> None:
    judging.endpoint.script("missing_row")
    outcome = await judging(rows(4))
    assert judging.asked() == [("R01", "R02", "R03", "R04"), ("R04",)]
    assert outcome.reward == 1.0
    assert outcome.fields["judge_degraded"] is False


async def test_section_7_a_rate_limit_is_not_a_try(judging: Judging) -> None:
    judging.endpoint.script(*["429_bare"] * 5, "503")
    outcome = await judging(rows(1), max_tries=2)
    assert (outcome.reward, len(judging.endpoint.calls)) == (1.0, 7)


async def test_section_7_retry_after_wins(judging: Judging) -> None:
    judging.endpoint.script("429")  # retry-after: 0.2
    await judging(rows(1))
    first, second = judging.endpoint.calls
    assert 0.2 <= second.at - first.at < 1.0


async def test_section_7_a_wait_beyond_the_deadline_fails_at_once(judging: Judging) -> None:
    judging.endpoint.default = error("429 long", 429, "Rate limit reached", headers={"retry-after": "60"})
    outcome = await asyncio.wait_for(judging(rows(4), deadline=20), 5)
    assert set(faults(outcome).values()) == {"rate_limit"}
    assert len(judging.endpoint.calls) == 1
    assert str(outcome.exit_code) == "judge:api_error"


async def test_section_7_nobody_holds_a_slot_while_asleep(judging: Judging) -> None:
    judging.endpoint.script("429")
    await judging(rows(2), batch=1, concurrency=1, max_in_flight=1)
    assert judging.asked() == [("R01",), ("R02",), ("R01",)]


@pytest.mark.parametrize(("n", "cap"), [(1, 2.0), (2, 6.0), (3, 18.0), (4, 20.0), (400, 20.0)])
def test_section_7_rate_limits_back_off_uniformly_up_to_the_cap(n: int, cap: float) -> None:
    waits = [Backoff(20.0).after_rate_limit(n) for _ in range(2000)]
    assert 1.0 <= min(waits) < 1.0 + 0.1 * cap
    assert 0.9 * cap < max(waits) <= cap


def test_section_7_the_rest_retries_after_one_second() -> None:
    assert Backoff().after_failure() == 1.0
    assert Backoff(longest=0.5).after_rate_limit(3) == 0.5


@pytest.mark.parametrize("fault", ["401", "403", "unknown_model", "quota"])
async def test_section_7_key_model_and_quota_stop_at_once(judging: Judging, fault: str) -> None:
    judging.endpoint.default = SCENARIOS[fault]
    outcome = await judging(rows(20), concurrency=1)
    kind = {"401": "auth", "403": "auth"}.get(fault, fault)
    assert faults(outcome) == dict.fromkeys([f"R{n:02}" for n in range(1, 21)], kind)
    assert len({event.ids for event in judging.events}) == 1
    assert (outcome.reward, str(outcome.exit_code)) == (None, "judge:api_error")


async def test_section_7_a_quota_for_a_window_is_a_rate_limit(judging: Judging) -> None:
    judging.endpoint.script(error("window", 429, "Quota exceeded for requests per minute. Try again in 0.1s."))
    assert (await judging(rows(1))).reward == 1.0


async def test_section_7_max_tries_then_resplit_row_by_row_each_with_its_own(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["503"]
    outcome = await judging(rows(3), max_tries=2)
    block, single = judging.asked()[:2], sorted(judging.asked()[2:])
    assert block == [("R01", "R02", "R03")] * 2
    assert single == [("R01",), ("R01",), ("R02",), ("R02",), ("R03",), ("R03",)]
    assert set(faults(outcome).values()) == {"server"}


async def test_section_7_a_row_that_breaks_its_block_costs_only_itself(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: "R03" in call.ids, "503")
    outcome = await judging(rows(4), max_tries=2)
    assert faults(outcome) == {"R03": "server"}
    assert outcome.fields["judge_coverage"] == 0.75
    assert outcome.scored is False  # R03 carries a quarter of the weight


async def test_section_7_resplit_off(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["503"]
    await judging(rows(3), max_tries=2, resplit=False)
    assert judging.asked() == [("R01", "R02", "R03")] * 2


# Time


async def test_section_7_a_call_is_bounded_in_wall_time_even_when_bytes_trickle(judging: Judging) -> None:
    judging.endpoint.script("trickle")
    outcome = await judging(rows(1), per_timeout=0.3)
    assert outcome.reward == 1.0
    assert judging.events[0].fault is not None
    assert judging.events[0].fault.kind == "timeout"
    assert judging.events[0].end - judging.events[0].start == pytest.approx(0.3, abs=0.15)


async def test_section_7_the_block_budget_is_two_full_calls(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["hang"]
    outcome = await judging(rows(1), per_timeout=0.3)
    assert len(judging.events) == 2
    assert faults(outcome) == {"R01": "timeout"}
    assert str(outcome.exit_code) == "judge:timeout"


async def test_section_7_the_block_budget_does_not_count_back_off_or_queueing(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.15)
    judging.endpoint.script("429", "429", "429")
    outcome = await judging(rows(6), batch=1, concurrency=6, max_in_flight=1, per_timeout=0.4)
    assert outcome.reward == 1.0


async def test_section_7_what_was_judged_before_the_deadline_counts_the_rest_is_deadline(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: "R05" in call.ids, "hang")
    outcome = await judging(rows(8), deadline=0.6, max_uncertainty=None, systemic_fraction=0.9)
    assert faults(outcome) == dict.fromkeys(["R05", "R06", "R07", "R08"], "deadline")
    assert "JUDGE_DEADLINE of 0.6 s" in detail(outcome, "R05")
    assert (outcome.reward, outcome.fields["judge_coverage"]) == (0.5, 0.5)
    assert outcome.fields["judge_seconds"] == pytest.approx(0.6, abs=0.2)
    judging.endpoint.settle()


async def test_a_deadline_names_what_the_last_try_suffered(judging: Judging) -> None:
    judging.endpoint.script("503")
    judging.endpoint.default = SCENARIOS["hang"]
    outcome = await judging(rows(1), deadline=0.6)
    assert "last try: server" in detail(outcome, "R01")


async def test_section_7_the_deadline_holds_while_the_evidence_is_read(judging: Judging, tmp_path: Path) -> None:
    outcome = await judging(rows(1), deadline=0)
    assert faults(outcome) == {"R01": "deadline"}
    assert judging.endpoint.calls == []


async def test_section_7_start_jitter_delays_the_first_wave(judging: Judging) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    delays = []
    for _ in range(6):
        judging.events.clear()
        start = loop.time()
        await judging(rows(1), start_jitter=0.2)
        delays.append(judging.events[0].start - start)
    assert max(delays) > 0.05
    assert max(delays) - min(delays) > 0.02


# Every row ends in exactly one of verdicts and faults


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
    outcome = await judging(rows(2), max_tries=2, per_timeout=0.3 if scenario == "hang" else 5.0)
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


# Rules on verdicts, over the wire


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
    outcome = await judging(rows(1, **GRADED), deadline=0.5)
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


# Delivery


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


# Breaker


async def test_section_7_a_dead_endpoint_is_given_up_and_the_rest_is_breaker_open(judging: Judging) -> None:
    engine = judging.engine(breaker=Breaker(3, probes=(0.02, 0.04, 0.08)))
    await engine.judge(case(rows(1)))  # what the endpoint can do is known
    judging.endpoint.default = SCENARIOS["503"]
    outcomes = await asyncio.gather(*(engine.judge(case(rows(32), name=f"r{n}")) for n in range(8)))
    kinds = Counter(kind for outcome in outcomes for kind in faults(outcome).values())
    assert kinds["breaker_open"] > 0.8 * kinds.total() == 0.8 * 8 * 32
    assert len(judging.endpoint.calls) < 80
    assert isinstance(engine.aborted, JudgeAborted)
    assert "judge endpoint given up" in outcomes[-1].exit_reason
    before = len(judging.endpoint.calls)
    assert set(faults(await engine.judge(case(rows(4)))).values()) == {"breaker_open"}
    assert len(judging.endpoint.calls) == before


async def test_section_7_an_endpoint_that_comes_back_costs_nothing(judging: Judging) -> None:
    engine = judging.engine(breaker=Breaker(3, probes=(0.1, 0.2, 0.4)))
    await engine.judge(case(rows(1)))  # what the endpoint can do is known
    judging.endpoint.default = SCENARIOS["503"]
    judged = asyncio.gather(*(engine.judge(case(rows(8))) for _ in range(4)))
    await asyncio.sleep(0.2)
    judging.endpoint.default = SCENARIOS["ok"]
    outcomes = await judged
    assert [outcome.reward for outcome in outcomes] == [1.0] * 4
    assert engine.aborted is None


async def test_section_7_a_poisoned_submission_opens_no_breaker_for_the_others(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: "POISON" in call.text, "503")
    engine = judging.engine(breaker=Breaker(3, probes=(0.02, 0.04, 0.08)), max_tries=3)
    judging.endpoint.default = SCENARIOS["ok"].after(0.02)
    good = [engine.judge(case(rows(16))) for _ in range(5)]
    poisoned = engine.judge(case(rows(16), "POISON"))
    *outcomes, bad = await asyncio.gather(*good, poisoned)
    assert [outcome.reward for outcome in outcomes] == [1.0] * 5
    assert bad.scored is False
    assert (await engine.judge(case(rows(16)))).reward == 1.0


# Cancelling and the observer


async def test_a_cancelled_rollout_leaves_no_task_and_no_socket(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["hang"]
    engine = judging.engine(concurrency=4)
    before = asyncio.all_tasks()
    task = asyncio.create_task(engine.judge(case(rows(32))))
    await until(lambda: judging.endpoint.in_flight == 4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    assert [event.fault and event.fault.kind for event in judging.events] == [FaultKind.CANCELLED] * 4
    await asyncio.to_thread(judging.endpoint.settle)
    judging.endpoint.default = SCENARIOS["ok"]
    assert (await engine.judge(case(rows(4)))).reward == 1.0


async def test_an_observer_sees_every_call(judging: Judging) -> None:
    judging.endpoint.script("503")
    await judging.engine().judge(case(rows(2), name="rollout 7"))
    failed, answered = judging.events
    assert (failed.name, failed.ids) == ("rollout 7", ("R01", "R02"))
    assert failed.fault is not None and failed.fault.kind == "server"
    assert answered.fault is None
    assert answered.usage.input_tokens > 0
    assert failed.queued <= failed.start < failed.end <= answered.queued


async def test_an_observer_that_raises_harms_nobody(judging: Judging, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: CallEvent) -> None:
        raise RuntimeError("observer is broken")

    engine = judging.engine()
    engine.on_call = broken
    assert (await engine.judge(case(rows(1)))).reward == 1.0
    assert "observer is broken" in caplog.text


def test_one_engine_serves_several_loops(judging_sync: Any) -> None:
    engine = judging_sync.engine()
    for _ in range(2):
        assert asyncio.run(_judge_and_close(engine)).reward == 1.0


async def _judge_and_close(engine: Any) -> Outcome:
    outcome: Outcome = await engine.judge(case(rows(4)))
    await engine.aclose()
    return outcome


@pytest.fixture
def judging_sync(endpoint: Any) -> Judging:
    return Judging(endpoint)
