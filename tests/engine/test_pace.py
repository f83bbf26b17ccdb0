"""SPEC 7, fleet: limits are learned from headers and refusals. In virtual time, against simulated endpoints."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from rubric_env.engine.pace import AHEAD, Limits, LocalThrottle, PaceState, Permit, Tally, adjust, gcra
from rubric_env.judges.protocol import CallFault, RateHints
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from tests.engine.simulated import (
    Bucket,
    Clock,
    Crowd,
    Endpoint,
    FixedWindow,
    Simulation,
    SlidingWindow,
    Sporadic,
    answered,
    limited,
    now_or_never,
)

QUOTA = 2000


def simulate(endpoint: Endpoint, blocks: int = 200, limits: Limits | None = None, **options: bool) -> Simulation:
    clock = Clock()
    return Simulation(LocalThrottle(limits or Limits(), clock=clock, **options), clock, endpoint, blocks=blocks)


# Learning from refusals


@pytest.mark.parametrize("window", [FixedWindow, SlidingWindow])
def test_section_7_a_quota_of_20k_a_minute_without_headers_is_found_and_used(
    window: type[FixedWindow] | type[SlidingWindow],
) -> None:
    fleet = simulate(window(20_000), blocks=2_000).run(140)
    fleet.run(120)
    assert fleet.a_minute(120) >= 0.95 * 20_000
    assert fleet.share_refused(120) <= 0.03
    assert fleet.share_refused() <= 0.06


ENDPOINTS: dict[str, Callable[[], Endpoint]] = {
    "fixed minutes": lambda: FixedWindow(QUOTA),
    "any minute": lambda: SlidingWindow(QUOTA),
    "any second": lambda: SlidingWindow(QUOTA // 60, seconds=1.0),
    "bucket of a second": lambda: Bucket(QUOTA, capacity=QUOTA / 60),
    "bucket of a minute": lambda: Bucket(QUOTA, capacity=QUOTA),
}


@pytest.mark.parametrize("counts", ENDPOINTS)
@pytest.mark.parametrize("slow", [False, True], ids=["at once", "slow start"])
def test_section_7_however_the_endpoint_counts_its_quota_is_found_and_used(counts: str, slow: bool) -> None:
    crowd = simulate(ENDPOINTS[counts](), slow=slow).run(240)
    crowd.run(240)
    assert crowd.a_minute(240) >= 0.95 * QUOTA
    assert crowd.share_refused(240) <= 0.05


def test_calls_of_minutes_are_paced_as_well_as_calls_of_seconds() -> None:
    clock = Clock()
    crowd = Simulation(LocalThrottle(clock=clock), clock, SlidingWindow(QUOTA), blocks=2 * QUOTA, seconds=100.0)
    crowd.run(300)
    crowd.run(240)
    assert crowd.a_minute(240) >= 0.95 * QUOTA
    assert crowd.share_refused(240) <= 0.04


def test_a_quota_of_ten_a_minute_is_not_stormed() -> None:
    crowd = simulate(SlidingWindow(10), blocks=64).run(120)
    crowd.run(300)
    assert crowd.a_minute(300) >= 9
    assert crowd.share_refused(300) <= 0.2


def test_section_7_refusals_that_have_nothing_to_do_with_the_rate_do_not_slow_it() -> None:
    crowd = simulate(Sporadic(0.1, SlidingWindow(10**9))).run(300)
    assert crowd.throttle.state("q").rate is None


def test_a_few_slow_blocks_with_sporadic_refusals_are_not_paced() -> None:
    crowd = simulate(Sporadic(0.1, SlidingWindow(10**9)), blocks=3).run(1200)
    assert crowd.throttle.state("q").rate is None


@pytest.mark.parametrize("window", [FixedWindow, SlidingWindow])
def test_sporadic_refusals_on_top_of_a_quota_do_not_wear_the_rate_down(
    window: type[FixedWindow] | type[SlidingWindow],
) -> None:
    crowd = simulate(Sporadic(0.1, window(QUOTA // 4)), blocks=50).run(900)
    crowd.run(900)
    assert crowd.a_minute(900) >= 0.9 * QUOTA / 4


def test_a_quota_that_is_raised_is_found() -> None:
    endpoint = SlidingWindow(QUOTA // 4)
    crowd = simulate(endpoint).run(240)
    endpoint.size = 3 * QUOTA // 4
    crowd.run(480)
    assert crowd.a_minute(60) >= 2.5 * QUOTA / 4


def test_a_quota_that_is_cut_is_found() -> None:
    endpoint = SlidingWindow(QUOTA)
    crowd = simulate(endpoint).run(240)
    endpoint.size = QUOTA // 4
    crowd.run(240)
    crowd.run(120)
    assert crowd.a_minute(120) >= 0.9 * QUOTA / 4
    assert crowd.share_refused(120) <= 0.1


def test_a_limit_of_calls_in_flight_is_found_and_used() -> None:
    clock = Clock()
    crowd = Simulation(
        LocalThrottle(clock=clock),
        clock,
        Crowd(20),
        blocks=100,
        refusal=lambda now: limited(crowded=True),
    )
    crowd.run(60)
    crowd.run(240)
    assert crowd.throttle.state("q").rate is None, "a crowd says nothing about calls a minute"
    assert crowd.share_refused(240) <= 0.05
    assert crowd.a_minute(240) >= 0.85 * 20 * 60 / 2.1


# What is decided, step by step


def overrun(now: float = 1.0, **fields: float) -> Tally:
    return Tally(sent=100, answered=10, refused=90, limited=90, **fields)  # type: ignore[arg-type]


def test_section_7_a_lone_refusal_concerns_its_block_alone() -> None:
    state = PaceState.begin(Limits(), 0.0)
    after = adjust(state, Tally(sent=20, answered=19, refused=1, limited=1, named_until=60.0), 1.0)
    assert (after.pace, after.paused) == (None, 0.0)


def test_an_overrun_pauses_for_the_longest_wait_that_was_named_but_no_longer_than_a_minute() -> None:
    state = PaceState.begin(Limits(), 0.0)
    assert adjust(state, overrun(named_until=21.0), 1.0).paused == 21.0
    assert adjust(state, overrun(named_until=3600.0), 1.0).paused == 61.0


def test_calls_that_were_sent_before_a_decrease_do_not_count_again() -> None:
    state = adjust(PaceState.begin(Limits(), 0.0), overrun(), 1.0)
    assert state.rate is not None
    late = Tally()
    for _ in range(100):
        late.note(limited(), sent_at=0.9, others=0, state=state, now=1.5)
    assert (late.refused, late.limited) == (100, 0)
    assert adjust(state, late, 2.0).rate == state.rate


def test_while_everything_is_refused_single_calls_probe_and_then_the_rate_goes_again() -> None:
    state = adjust(PaceState.begin(Limits(), 0.0), Tally(sent=6000, answered=6000), 1.0)
    state = adjust(state, Tally(sent=6000, refused=6000, limited=6000), 2.0)
    assert state.held
    assert state.pace == 4.0
    for second in (3.0, 4.0, 5.0):
        state = adjust(state, Tally(sent=4, refused=4, limited=4), second)
    assert state.held
    for second in (6.0, 7.0, 8.0):
        state = adjust(state, Tally(sent=4), second)
    assert not state.held
    assert state.pace == pytest.approx(0.97 * 6000 / 60)


def test_the_rate_grows_hardly_below_the_last_limit_and_faster_beyond() -> None:
    state = replace(PaceState.begin(Limits(), 0.0), rate=97.0, limit=100.0)
    rates = []
    for second in range(1, 181):
        state = adjust(state, Tally(sent=int(state.rate or 0)), float(second))
        rates.append(state.rate or 0)
    assert rates[29] < 98
    assert rates[59] == pytest.approx(100.0)
    assert rates[179] > 150


def test_a_rate_that_nobody_uses_does_not_grow() -> None:
    state = replace(PaceState.begin(Limits(), 0.0), rate=97.0, limit=100.0)
    for second in range(1, 600):
        state = adjust(state, Tally(sent=2), float(second))
    assert state.rate == pytest.approx(97.0)


def test_a_slow_start_doubles_while_it_is_used_and_cools_down_while_it_is_not() -> None:
    state = PaceState.begin(Limits(), 0.0, slow=True)
    first = state.pace or 0.0
    for second in range(1, 31):
        state = adjust(state, Tally(sent=int(state.pace or 0)), float(second))
    assert state.pace == pytest.approx(4 * first)
    assert adjust(state, Tally(), 600.0).pace == first


# What is known


def test_section_7_limits_in_headers_are_a_ceiling() -> None:
    clock = Clock()
    throttle = LocalThrottle(clock=clock)
    permit = throttle.take("q", 10)
    assert permit is not None
    throttle.settle(permit, answered(hints=RateHints(requests_per_minute=600, tokens_per_minute=60_000)))
    clock.now += 1
    assert throttle.state("q").pace == pytest.approx(0.98 * 10)
    assert throttle.state("q").tokens == pytest.approx(0.98 * 1000)


def test_configured_limits_hold_from_the_first_call_and_against_larger_ones_in_headers() -> None:
    crowd = simulate(FixedWindow(QUOTA), limits=Limits(requests_per_minute=QUOTA)).run(180)
    assert crowd.share_refused() == 0
    assert crowd.a_minute(120) >= 0.97 * QUOTA
    state = adjust(PaceState.begin(Limits(600), 0.0), Tally(requests_per_minute=6000), 1.0)
    assert state.pace == pytest.approx(9.8)


def test_headers_that_say_nothing_is_left_pause_until_the_reset() -> None:
    clock = Clock(0.0)
    throttle = LocalThrottle(clock=clock)
    for left in (1, 0):
        permit = throttle.take("q", 0)
        assert permit is not None
        throttle.settle(permit, answered(hints=RateHints(requests_left=left, requests_reset=7.0)))
    clock.now = 1.0
    assert throttle.take("q", 0) is None
    clock.now = 7.0
    assert throttle.take("q", 0) is not None


def test_tokens_a_minute_hold_back_as_calls_a_minute_do() -> None:
    clock = Clock(0.0)
    throttle = LocalThrottle(Limits(tokens_per_minute=60_000 / 0.98), clock=clock)
    spent = 0
    while clock.now < 60:
        permit = now_or_never(throttle.reserve("q", 1_500))
        clock.now += permit.wait
        if permit.granted:
            spent += 1_500
            throttle.settle(permit, answered())
    assert spent == pytest.approx(60_000, rel=0.05)


def test_a_call_of_more_tokens_than_ever_flow_at_once_goes_after_waiting() -> None:
    clock = Clock(0.0)
    throttle = LocalThrottle(Limits(tokens_per_minute=60_000 / 0.98), clock=clock)
    assert throttle.take("q", 100_000) is not None
    start = clock.now
    assert throttle.take("q", 100_000) is None
    while not (permit := now_or_never(throttle.reserve("q", 100_000))).granted:
        clock.now += permit.wait
    assert clock.now + permit.wait - start == pytest.approx(100.0)


def test_an_estimate_of_tokens_is_corrected_by_what_was_used() -> None:
    clock = Clock(0.0)
    throttle = LocalThrottle(Limits(tokens_per_minute=60_000 / 0.98), clock=clock)
    permit = throttle.take("q", 10_000)
    assert permit is not None
    clock.now = 1.0
    assert throttle.take("q", 10) is None
    throttle.settle(permit, replace(answered(), usage=Usage(calls=1, input_tokens=500)))
    assert throttle.take("q", 10) is not None


def test_a_permit_that_is_refunded_is_there_for_another_call() -> None:
    clock = Clock(0.0)
    throttle = LocalThrottle(Limits(requests_per_minute=6, tokens_per_minute=600), clock=clock)
    permit = throttle.take("q", 100)
    assert permit is not None
    assert throttle.take("q", 100) is None
    throttle.refund(permit)
    assert throttle.take("q", 100) is not None


def test_a_permit_is_not_promised_far_ahead_because_rates_change() -> None:
    clock = Clock(0.0)
    throttle = LocalThrottle(Limits(requests_per_minute=6), clock=clock)
    assert throttle.take("q", 0) is not None
    permit = now_or_never(throttle.reserve("q", 0))
    assert not permit.granted
    clock.now = 9.5
    permit = now_or_never(throttle.reserve("q", 0))
    assert permit.granted
    assert 0 < permit.wait <= AHEAD


def test_quotas_do_not_know_of_each_other() -> None:
    throttle = LocalThrottle(Limits(requests_per_minute=6), clock=Clock(0.0))
    assert throttle.take("a", 0) is not None
    assert throttle.take("a", 0) is None
    assert throttle.take("b", 0) is not None


def test_other_faults_are_no_refusals() -> None:
    tally, state = Tally(), PaceState.begin(Limits(), 0.0)
    for kind in FaultKind:
        tally.note(CallFault(Fault(kind)), sent_at=1.0, others=0, state=state, now=1.0)
    assert (tally.refused, tally.limited) == (1, 1)


def test_the_spacing_lets_a_short_burst_out_and_then_keeps_the_rate() -> None:
    due, starts = 0.0, []
    for _ in range(100):
        start, due = gcra(due, 50.0, 1, 10.0)
        due = max(due, 50.1)
        starts.append(start - 50.0)
    assert starts[:3] == [0.0, 0.0, pytest.approx(0.05)]
    assert starts[-1] == pytest.approx(9.75)


def test_a_state_survives_json() -> None:
    state = adjust(PaceState.begin(Limits(600, None), 0.0, slow=True), overrun(requests_per_minute=500.0, room=7), 1.0)
    assert PaceState.from_json(json.loads(json.dumps(state.to_json()))) == state


def test_threads_share_a_throttle() -> None:
    throttle = LocalThrottle(Limits(requests_per_minute=60_000))

    def work() -> None:
        for _ in range(500):
            permit = throttle.take("q", 1)
            if permit is not None:
                throttle.settle(permit, answered())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    permits: list[Permit] = [permit for _ in range(5) if (permit := throttle.take("q", 1)) is not None]
    for permit in permits:
        throttle.refund(permit)
    assert throttle._books["q"].in_flight == 0
