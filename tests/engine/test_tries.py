"""SPEC 7, running the blocks: retries, budgets and the deadline, every rule by name, over real HTTP."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rubric_env.engine import Backoff
from tests.engine.conftest import Judging, case, detail, faults, rows
from tests.servers.scenarios import SCENARIOS, error


async def test_section_7_blocks_of_batch_rows_concurrency_at_a_time(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.5)
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
    judging.endpoint.default = SCENARIOS["ok"].after(0.2)
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
    assert 0.2 <= second.at - first.at < 30


async def test_an_endpoint_that_names_no_wait_at_all_for_ever_is_not_hammered(judging: Judging) -> None:
    judging.endpoint.default = error("429 now", 429, "Rate limit reached", headers={"retry-after": "0"})
    await judging(rows(1), deadline=0.5)
    assert len(judging.endpoint.calls) < 60  # waits soon reach 1 s, which these tests shorten to 10 ms


def test_a_named_wait_has_a_floor_that_grows_to_one_second() -> None:
    assert [Backoff().after_rate_limit(n, 0.0) for n in (1, 2, 3, 4, 400)] == pytest.approx([0.05, 0.15, 0.45, 1, 1])
    assert Backoff().after_rate_limit(4, 7.0) == 7.0


async def test_section_7_a_wait_beyond_the_deadline_fails_at_once(judging: Judging) -> None:
    judging.endpoint.default = error("429 long", 429, "Rate limit reached", headers={"retry-after": "60"})
    outcome = await asyncio.wait_for(judging(rows(4), deadline=50), 30)
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
    assert len({event.question.ids for event in judging.events}) == 1
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


async def test_section_7_a_call_is_bounded_in_wall_time_even_when_bytes_trickle(judging: Judging) -> None:
    judging.endpoint.script("trickle")
    outcome = await judging(rows(1), per_timeout=2.0)
    assert outcome.reward == 1.0
    assert judging.events[0].fault is not None
    assert judging.events[0].fault.kind == "timeout"
    assert 1.9 < judging.events[0].end - judging.events[0].start < 12  # all the bytes take longer


async def test_section_7_the_block_budget_is_two_full_calls(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["hang"]
    outcome = await judging(rows(1), per_timeout=1.5)
    assert len(judging.events) == 2
    assert faults(outcome) == {"R01": "timeout"}
    assert str(outcome.exit_code) == "judge:timeout"


async def test_section_7_the_block_budget_does_not_count_back_off_or_queueing(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.4)
    judging.endpoint.script("429", "429", "429")
    outcome = await judging(rows(10), batch=1, concurrency=10, max_in_flight=1, per_timeout=1.8)
    assert outcome.reward == 1.0


async def test_section_7_what_was_judged_before_the_deadline_counts_the_rest_is_deadline(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: "R05" in call.ids, "hang")
    outcome = await judging(rows(8), deadline=3.0, max_uncertainty=None, systemic_fraction=0.9)
    assert faults(outcome) == dict.fromkeys(["R05", "R06", "R07", "R08"], "deadline")
    assert "JUDGE_DEADLINE of 3 s" in detail(outcome, "R05")
    assert (outcome.reward, outcome.fields["judge_coverage"]) == (0.5, 0.5)
    assert 2.9 < outcome.fields["judge_seconds"] < 30
    judging.endpoint.settle()


async def test_a_deadline_names_what_the_last_try_suffered(judging: Judging) -> None:
    judging.endpoint.script("503")
    judging.endpoint.default = SCENARIOS["hang"]
    outcome = await judging(rows(1), deadline=4.0)
    assert "last try: server" in detail(outcome, "R01")


async def test_section_7_the_deadline_holds_while_the_evidence_is_read(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, released = judging.engine(deadline=0.05), threading.Event()
    made = engine._material
    monkeypatch.setattr(engine, "_material", lambda *given: released.wait(60) and made(*given))
    outcome = await engine.judge(case(rows(1)))
    assert not released.is_set()
    released.set()
    assert faults(outcome) == {"R01": "deadline"}
    assert outcome.fields["judge_seconds"] < 30
    assert judging.endpoint.calls == []


async def test_section_7_start_jitter_delays_the_first_wave(judging: Judging) -> None:
    clock = asyncio.get_running_loop().time

    async def delays(**settings: Any) -> list[float]:
        engine, start, before = judging.engine(**settings), clock(), len(judging.events)
        await asyncio.gather(*(engine.judge(case(rows(1))) for _ in range(20)))
        return [event.start - start for event in judging.events[before:]]

    # At worst the first of them waits for a quarter of a second, and none for two with a chance of 2^-20.
    assert min(await delays()) < 2.0 < max(await delays(start_jitter=4.0))
