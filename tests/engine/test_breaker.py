"""SPEC 7, runaway guard, as a simulation: calls that end as the test says, in the order it says."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from itertools import pairwise

import pytest

from rubric_env.engine import Breaker, JudgeAborted
from rubric_env.engine.breaker import Call
from rubric_env.scoring import Fault, FaultKind
from tests.engine.virtual_time import in_virtual_time

TIMEOUT = Fault(FaultKind.TIMEOUT, "no answer in 150 s")
PROBES = (0.02, 0.04, 0.08)


class World:
    """A breaker with rollouts in flight, and calls that stay in flight until they end."""

    def __init__(self, rollouts: int, smallest: int = 3, recovery: float = 60.0) -> None:
        self.breaker = Breaker(smallest, probes=PROBES, recovery=recovery)
        self.stack = ExitStack()
        self.rollouts = range(rollouts)
        for rollout in self.rollouts:
            self.stack.enter_context(self.breaker.rollout(rollout))
        self.running = ExitStack()

    def start(self, rollout: int) -> Call | None:
        return self.running.enter_context(self.breaker.call(rollout))

    def call(self, rollout: int, fault: Fault | None) -> bool:
        """One whole call; False when the breaker does not let it out."""
        with self.breaker.call(rollout) as call:
            if call is not None:
                call.report(fault)
            return call is not None

    async def is_open(self) -> bool:
        with self.breaker.call(0) as call:
            return call is None


async def test_section_7_three_failures_in_a_row_open_it() -> None:
    world = World(rollouts=3)
    assert [world.call(n, TIMEOUT) for n in (0, 1, 2)] == [True] * 3
    assert await world.is_open()


async def test_section_7_two_do_not() -> None:
    world = World(rollouts=2)
    world.call(0, TIMEOUT)
    world.call(1, TIMEOUT)
    assert not await world.is_open()


async def test_section_7_failures_of_one_rollout_among_many_do_not() -> None:
    world = World(rollouts=5)
    for _ in range(30):
        world.call(0, TIMEOUT)
        world.call(1, TIMEOUT)
    assert not await world.is_open()
    world.call(2, TIMEOUT)
    assert await world.is_open()


async def test_section_7_a_rollout_alone_can_open_it() -> None:
    world = World(rollouts=1)
    for _ in range(3):
        world.call(0, TIMEOUT)
    assert await world.is_open()


@pytest.mark.parametrize("kind", sorted(set(FaultKind) - {"timeout", "connection", "server", "auth", "empty"}))
async def test_section_7_other_faults_do_not_count(kind: FaultKind) -> None:
    world = World(rollouts=3)
    for n in range(40):
        assert world.call(n % 3, Fault(kind))


@pytest.mark.parametrize("kind", ["timeout", "connection", "server", "auth", "empty"])
async def test_section_7_endpoint_faults_count(kind: str) -> None:
    world = World(rollouts=3)
    for n in range(3):
        world.call(n, Fault(FaultKind(kind)))
    assert await world.is_open()


@pytest.mark.parametrize(("in_flight", "window"), [(0, 3), (9, 10), (19, 20), (60, 20)])
async def test_section_7_the_window_is_the_calls_in_flight_from_3_to_20(in_flight: int, window: int) -> None:
    world = World(rollouts=64)
    for n in range(in_flight):
        world.start(n)
    failures = 0
    while world.call(failures % 64, TIMEOUT):
        failures += 1
    assert failures == window


@pytest.mark.parametrize(("good", "opens"), [(2, True), (3, False)])
async def test_section_7_nine_in_ten_must_have_failed(good: int, opens: bool) -> None:
    world = World(rollouts=64)
    for n in range(19):
        world.start(n)
    for n in range(20):
        world.call(n, None if n < good else TIMEOUT)
    assert await world.is_open() is opens


async def test_zero_turns_it_off() -> None:
    world = World(rollouts=3, smallest=0)
    assert all(world.call(n % 3, TIMEOUT) for n in range(50))


async def opened(recovery: float = 60.0) -> World:
    world = World(rollouts=3, recovery=recovery)
    for n in range(3):
        world.call(n, TIMEOUT)
    return world


@in_virtual_time
async def test_section_7_open_calls_wait_and_single_probes_go_out() -> None:
    world, sent = await opened(), []

    async def caller(rollout: int) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            await world.breaker.ready(rollout)
            with world.breaker.call(rollout) as call:
                if call is not None:
                    sent.append(clock() - start)
                    await asyncio.sleep(0.01)
                    call.report(TIMEOUT)

    start = asyncio.get_running_loop().time()
    results = await asyncio.gather(*(caller(n) for n in range(3)), return_exceptions=True)
    assert all(isinstance(result, JudgeAborted) for result in results)
    # a probe waits from the end of the one before
    assert len(sent) == 3
    assert [later - earlier for earlier, later in pairwise([0.0, *sent])] == pytest.approx([0.02, 0.05, 0.09])


async def probe(world: World, fault: Fault | None) -> None:
    await world.breaker.ready(0)
    assert world.call(0, fault)


@in_virtual_time
async def test_section_7_a_success_closes_it_and_resets_the_window() -> None:
    world = await opened()
    await probe(world, TIMEOUT)
    await probe(world, None)
    for n in (0, 1):
        assert world.call(n, TIMEOUT)
    assert not await world.is_open()
    assert world.breaker.aborted is None


async def test_a_call_sent_before_it_opened_closes_it_when_it_succeeds() -> None:
    world = World(rollouts=3)
    early = world.start(0)
    for n in range(3):
        world.call(n, TIMEOUT)
    assert early is not None and await world.is_open()
    early.report(None)
    world.running.close()
    assert not await world.is_open()


@pytest.mark.parametrize("kind", ["rate_limit", "refusal", "content_filter"])
async def test_a_probe_that_an_endpoint_refuses_shows_that_it_lives(kind: str) -> None:
    world = await opened()
    await probe(world, Fault(FaultKind(kind)))
    assert not await world.is_open()


@in_virtual_time
async def test_a_probe_that_is_cancelled_leaves_its_turn_to_the_next() -> None:
    world = await opened()
    await world.breaker.ready(0)
    with world.breaker.call(0) as call:
        assert call is not None
    await asyncio.wait_for(probe(world, None), 0.01)
    assert not await world.is_open()


@in_virtual_time
async def test_a_probe_that_its_rollouts_deadline_cuts_shows_nothing() -> None:
    world = await opened()
    await probe(world, Fault(FaultKind.DEADLINE))
    assert world.start(1) is not None, "the next probe goes out at once"
    assert world.start(2) is None, "and it goes out alone"


@in_virtual_time
async def test_section_7_judge_aborted_says_count_last_error_and_cause_in_one_line() -> None:
    world = await opened()
    for _ in range(2):
        await probe(world, TIMEOUT)
    await probe(world, Fault(FaultKind.SERVER, "502 Bad Gateway"))
    with pytest.raises(JudgeAborted) as raised:
        await world.breaker.ready(0)
    line = str(raised.value)
    assert world.breaker.aborted is raised.value
    assert line.count("\n") == 0
    assert "3 of 3 calls failed, then 3 probes" in line
    assert "last error: server: 502 Bad Gateway" in line
    assert "a thinking model chosen as judge" in line


@in_virtual_time
async def test_given_up_it_refuses_at_once_but_probes_again_after_the_recovery_time() -> None:
    world = await opened(recovery=0.05)
    for _ in range(3):
        await probe(world, TIMEOUT)
    with pytest.raises(JudgeAborted):
        await world.breaker.ready(0)
    await asyncio.sleep(0.06)
    await probe(world, TIMEOUT)
    with pytest.raises(JudgeAborted):
        await world.breaker.ready(0)
    await asyncio.sleep(0.06)
    await probe(world, None)
    assert world.breaker.aborted is None
    assert not await world.is_open()


@in_virtual_time
async def test_a_bad_submission_alone_in_flight_shuts_out_nobody() -> None:
    world = World(rollouts=1)
    for _ in range(3):
        world.call(0, TIMEOUT)
    for _ in range(3):
        await probe(world, TIMEOUT)
    with pytest.raises(JudgeAborted):
        await world.breaker.ready(0)
    for newcomer in (1, 2):
        await asyncio.wait_for(world.breaker.ready(newcomer), 0.01)
        assert world.call(newcomer, TIMEOUT)
    with pytest.raises(JudgeAborted):
        await world.breaker.ready(3)  # three have seen it fail: it is the endpoint


@in_virtual_time
async def test_newcomers_wait_for_the_probe_of_the_first_of_them() -> None:
    world = World(rollouts=1)
    for _ in range(3):
        world.call(0, TIMEOUT)
    for _ in range(3):
        await probe(world, TIMEOUT)
    await world.breaker.ready(1)
    with world.breaker.call(1) as call:
        waiting = asyncio.create_task(world.breaker.ready(2))
        await asyncio.sleep(0.01)
        assert call is not None and not waiting.done()
        call.report(None)
    await asyncio.wait_for(waiting, 0.001)
    assert world.breaker.aborted is None


def test_each_loop_has_its_own_breaker() -> None:
    breaker = Breaker(3)

    async def fail() -> None:
        for rollout in range(3):
            with breaker.rollout(rollout), breaker.call(rollout) as call:
                assert call is not None
                call.report(TIMEOUT)

    asyncio.run(fail())
    asyncio.run(fail())
