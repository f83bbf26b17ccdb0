"""SPEC 7, runaway guard: one breaker for all processes, on a real redis-server."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import rubric_env.engine.shared._link as link
import rubric_env.engine.shared.breaker as shared_breaker
from rubric_env.engine import JudgeAborted
from rubric_env.engine.outage import Call
from rubric_env.engine.shared import SharedBreaker
from rubric_env.engine.shared._link import Links
from rubric_env.engine.shared._scripts import keys
from rubric_env.scoring.faults import Fault, FaultKind
from tests.engine.redis_fleet import PROBES, Job, fleet, run
from tests.servers.redis import RedisServer

SERVER = Fault(FaultKind.SERVER, "503 overloaded")
RECOVERY = 2.0


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


class Process:
    """A breaker as one process has it, and that process's rollouts."""

    def __init__(self, redis: RedisServer, rollouts: int, scope: str = "endpoint") -> None:
        self.links = Links(redis.url)
        self.breaker = SharedBreaker(self.links, scope, 3, probes=(0.1, 0.2, 0.3), recovery=RECOVERY)
        self.rollouts = [f"rollout {n}" for n in range(rollouts)]
        self._stack = ExitStack()
        for rollout in self.rollouts:
            self._stack.enter_context(self.breaker.rollout(rollout))

    async def call(
        self, fault: Fault | None = None, *, rollout: int = 0, seconds: float = 0.0, end: asyncio.Event | None = None
    ) -> None:
        """One whole call, as soon as the breaker lets it out."""
        name = self.rollouts[rollout]
        async with asyncio.timeout(60):
            while True:
                await self.breaker.ready(name)
                with self.breaker.call(name) as call:
                    if call is not None:
                        await (end.wait() if end else asyncio.sleep(seconds))
                        call.report(fault)
                        break

    async def waits(self) -> bool:
        """Calls have to wait, once it has heard of it."""
        return await self._within(30.0, waits=True)

    async def goes_on(self) -> bool:
        return await self._within(30.0, waits=False)

    async def never_waits(self) -> bool:
        """Calls have not to wait, although it has had time to hear of it."""
        return not await self._within(0.3, waits=True)

    async def _within(self, seconds: float, *, waits: bool) -> bool:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if (self.breaker._guards.here().outage is not None) is waits:
                return True
            await asyncio.sleep(0.02)
        return False

    async def leave(self) -> None:
        self._stack.close()
        await self.breaker.aclose()
        await self.links.aclose()


@pytest.fixture
async def pair(redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Process, Process]]:
    monkeypatch.setattr(link, "RETRY", 0.1)
    monkeypatch.setattr(link, "TIMEOUT", 30.0)
    monkeypatch.setattr(shared_breaker, "PROBE", 1.2)
    monkeypatch.setattr(shared_breaker, "FRESH", 0.02)
    monkeypatch.setattr(shared_breaker, "HELLO", 0.02)
    here, there = Process(redis, 2), Process(redis, 2)
    yield here, there
    await here.leave()
    await there.leave()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks are left"


async def opened(here: Process, there: Process) -> None:
    for process, rollout in ((here, 0), (there, 0), (here, 1)):
        await process.call(SERVER, rollout=rollout)
    assert await there.waits()


async def given_up(here: Process, there: Process) -> None:
    await opened(here, there)
    for process in (here, there, here):
        await process.call(SERVER)


async def test_section_7_failures_of_several_processes_open_it_for_all(pair: tuple[Process, Process]) -> None:
    here, there = pair
    await here.call(SERVER, rollout=0)
    await there.call(SERVER, rollout=0)
    assert await here.never_waits()
    await here.call(SERVER, rollout=1)
    assert await here.waits() and await there.waits()


async def test_section_7_three_rollouts_must_have_failed_unless_fewer_are_in_flight_everywhere(
    pair: tuple[Process, Process],
) -> None:
    here, there = pair
    await there.call(None)
    for _ in range(25):
        await here.call(SERVER, rollout=0)
        await here.call(SERVER, rollout=1)
    assert await here.never_waits()
    await there.call(SERVER)
    assert await here.waits()


async def test_section_7_the_window_is_the_calls_in_flight_everywhere(pair: tuple[Process, Process]) -> None:
    here, there = pair
    running = [asyncio.create_task(there.call(None, end=asyncio.Event())) for _ in range(5)]
    await asyncio.sleep(0.5)
    await there.call(SERVER)
    for n in range(4):
        await here.call(SERVER, rollout=n % 2)
    assert await here.never_waits()
    await here.call(SERVER)
    assert await here.waits()
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_section_7_a_success_anywhere_closes_it_everywhere(pair: tuple[Process, Process]) -> None:
    here, there = pair
    await opened(here, there)
    await there.call(None)
    assert await here.goes_on() and await there.goes_on()
    await here.call(SERVER, rollout=0)
    await here.call(SERVER, rollout=1)
    assert await here.never_waits(), "the window was reset"


async def test_a_call_sent_before_it_opened_closes_it_when_it_succeeds(pair: tuple[Process, Process]) -> None:
    here, there = pair
    end = asyncio.Event()
    early = asyncio.create_task(there.call(None, rollout=1, end=end))
    await asyncio.sleep(0.05)
    probe_later = 0.1
    for process, rollout in ((here, 0), (there, 0), (here, 1)):
        await process.call(SERVER, rollout=rollout)
    hanging = asyncio.create_task(here.call(SERVER, end=asyncio.Event()))
    await asyncio.sleep(probe_later + 0.1)
    assert await there.waits(), "a probe is out"
    end.set()
    await early
    assert await here.goes_on() and await there.goes_on()
    hanging.cancel()
    await asyncio.gather(hanging, return_exceptions=True)


async def test_section_7_single_probes_then_it_is_given_up_for_all_in_the_same_words(
    pair: tuple[Process, Process],
) -> None:
    here, there = pair
    await given_up(here, there)
    for process in pair:
        with pytest.raises(JudgeAborted, match=r"3 of 3 calls failed, then 3 probes; last error: server: 503"):
            await process.breaker.ready(process.rollouts[1])
    assert str(here.breaker.aborted) == str(there.breaker.aborted)


async def test_given_up_one_probe_goes_out_after_the_recovery_time(pair: tuple[Process, Process]) -> None:
    here, there = pair
    await given_up(here, there)
    await asyncio.sleep(RECOVERY + 0.1)
    await there.call(None)
    assert await here.goes_on()
    assert here.breaker.aborted is None and there.breaker.aborted is None


async def test_only_one_of_many_that_wait_sends_the_probe(pair: tuple[Process, Process]) -> None:
    out = most = sent = 0

    async def caller(process: Process, rollout: str) -> None:
        nonlocal out, most, sent
        with pytest.raises(JudgeAborted):
            while True:
                await process.breaker.ready(rollout)
                with process.breaker.call(rollout) as call:
                    if call is not None:
                        out, sent = out + 1, sent + 1
                        most = max(most, out)
                        await asyncio.sleep(0.05)
                        out -= 1
                        call.report(SERVER)

    await opened(*pair)
    await asyncio.gather(*(caller(process, rollout) for process in pair for rollout in process.rollouts * 20))
    assert (most, sent) == (1, 3)


async def test_a_probe_is_alone_however_long_it_takes(pair: tuple[Process, Process]) -> None:
    here, there = pair
    await opened(here, there)
    probe = asyncio.create_task(here.call(None, seconds=3 * shared_breaker.PROBE))
    await asyncio.sleep(0.3)
    while not probe.done():
        assert await there.waits() or probe.done()
        await asyncio.sleep(0.05)
    assert await there.goes_on()


async def test_a_probe_that_is_cancelled_leaves_its_turn_to_the_next(
    pair: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_breaker, "PROBE", 50.0)
    here, there = pair
    await opened(here, there)
    probe = asyncio.create_task(here.call(None, seconds=60.0))
    await asyncio.sleep(0.3)
    probe.cancel()
    start = time.monotonic()
    await there.call(None)
    assert time.monotonic() - start < 30
    assert await here.goes_on()


async def test_who_claims_a_probe_and_is_cancelled_in_the_queue_holds_up_nobody(pair: tuple[Process, Process]) -> None:
    here, there = pair
    await opened(here, there)
    await here.breaker.ready(here.rollouts[0])  # and no call
    await there.call(None)
    assert await here.goes_on()


async def test_another_endpoint_is_another_breaker(redis: RedisServer, pair: tuple[Process, Process]) -> None:
    await opened(*pair)
    other = Process(redis, 1, scope="another endpoint")
    assert await other.never_waits()
    await other.leave()


async def test_without_redis_each_process_has_its_own_breaker(
    redis: RedisServer, pair: tuple[Process, Process]
) -> None:
    here, there = pair
    await here.call(None)
    await there.call(None)
    redis.kill()
    for n in range(3):
        await here.call(SERVER, rollout=n % 2)
    assert await here.waits() and await there.never_waits()
    redis.start()
    async with asyncio.timeout(60):
        while here.links.down or there.links.down:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert await here.goes_on()
    await opened(here, there)


async def test_without_redis_an_outage_goes_on(redis: RedisServer, pair: tuple[Process, Process]) -> None:
    here, there = pair
    await given_up(here, there)
    redis.kill()
    with pytest.raises(JudgeAborted):
        await here.breaker.ready(here.rollouts[0])
    assert here.breaker.aborted is not None


async def test_a_process_that_is_not_there_any_more_does_not_count(redis: RedisServer) -> None:
    """Its rollouts are no longer in flight, so that one rollout alone can open it."""
    gone, left = Process(redis, 2), Process(redis, 1)
    await gone.call(None)
    await gone.leave()
    for _ in range(3):
        await left.call(SERVER)
    assert await left.waits()
    await left.leave()


async def test_keys_expire(redis: RedisServer, pair: tuple[Process, Process]) -> None:
    hanging = asyncio.create_task(pair[0].call(seconds=60.0))
    await opened(*pair)
    names = await pair[0].links.here().ask("KEYS", "*")
    assert len(names) == 4
    for name in names:
        assert name.startswith("rubric-env:") and "endpoint" not in name
        assert await pair[0].links.here().ask("TTL", name) > 0
    hanging.cancel()


def test_a_loop_that_ends_in_the_middle_of_calls_leaves_no_task(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def judge(breaker: SharedBreaker, name: str) -> None:
        with breaker.rollout(name):
            await breaker.ready(name)
            with breaker.call(name):
                await asyncio.Event().wait()

    async def main() -> list[asyncio.Task[None]]:
        breaker = SharedBreaker(Links(redis.url), "endpoint", 3)
        tasks = [asyncio.create_task(judge(breaker, f"rollout {n}")) for n in range(20)]
        await asyncio.sleep(0.2)
        return tasks

    assert all(task.cancelled() for task in asyncio.run(main()))
    gc.collect()
    assert "was destroyed but it is pending" not in caplog.text


def test_off_is_off(redis: RedisServer) -> None:
    async def fail() -> None:
        links = Links(redis.url)
        breaker = SharedBreaker(links, "endpoint", 0)
        for n in range(50):
            with breaker.rollout(n % 3), breaker.call(n % 3) as call:
                assert isinstance(call, Call)
                call.report(SERVER)
        await breaker.aclose()
        await links.aclose()

    asyncio.run(fail())


def test_section_7_a_dead_endpoint_is_given_up_by_four_processes_within_20_calls_and_three_probes(
    redis: RedisServer,
) -> None:
    told = run(*[Job(redis.url, seconds=5.0, tasks=8, fails=FaultKind.CONNECTION)] * 4)
    assert {process.aborted for process in told} == {told[0].aborted}
    assert "then 3 probes" in told[0].aborted
    starts = sorted(start for process in told for start in process.starts)
    *before, first, second, third = starts
    assert second - first >= PROBES[1] and third - second >= PROBES[2]
    assert len(before) <= 20 + 4 * 8, "20 calls, and those that were out by then"
    assert {end for process in told for end in process.ends[-8:]} == {"breaker_open"}


def test_section_7_one_success_lets_four_processes_go_on_and_nothing_is_lost(
    redis: RedisServer, tmp_path: Path
) -> None:
    healed = tmp_path / "healed"
    job = Job(redis.url, seconds=6.0, fails=FaultKind.SERVER, heals=str(healed), probes=(2.0, 2.0, 2.0))
    with fleet() as members:
        members.start(job, job, replace(job, skew=3600.0), replace(job, skew=-30.0))
        redis.wait_for("EXISTS", keys("breaker", "endpoint", "outage")[0])
        time.sleep(0.2)
        opened = time.time()
        healed.touch()
        told = members.results()
    assert {process.aborted for process in told} == {""}
    assert all("breaker_open" not in process.ends and process.ends.count("ok") > 20 for process in told)
    assert min(start for process in told for start in process.starts if start > opened) - opened > 0.2


def test_section_7_a_probe_whose_process_was_killed_does_not_block_the_next_for_ever(redis: RedisServer) -> None:
    with fleet() as members:
        (prober,) = members.start(Job(redis.url, seconds=60.0, tasks=3, answered=3, fails=FaultKind.SERVER))
        redis.wait_for("EXISTS", keys("breaker", "endpoint", "outage")[0])
        time.sleep(1.5)
        members.start(Job(redis.url, seconds=1.5))
        time.sleep(1.5)
        prober.kill()
        prober.join()
        killed = time.time()
        (told,) = members.results()
    assert told.ends.count("ok") == len(told.ends) > 3
    assert 0 < told.starts[0] - killed < 30
