"""SPEC 7, fleet: a cap on calls, and what a quota allows; fair between rollouts, nearest deadline first."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rubric_env.engine import Breaker, CallEvent, Limiter
from rubric_env.engine.calls import Calls
from rubric_env.engine.events import Question
from rubric_env.engine.limiter import Elsewhere, Seat, process_limiter
from rubric_env.engine.pace import Limits, LocalThrottle, Permit
from rubric_env.judges.protocol import CallFault, RateHints, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from tests.engine.virtual_time import in_virtual_time


class Door:
    """Calls that come while the only place is taken; `order` is how they then got in."""

    def __init__(self) -> None:
        self.limiter = Limiter(1)
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def come(self, name: str, seat: Seat, seconds: float = 0.0) -> None:
        async with self.limiter.slot(seat):
            self.order.append(name)
            await asyncio.sleep(seconds)

    async def queue(self, *arrivals: tuple[str, Seat]) -> list[str]:
        async with self.limiter.slot(Seat(0.0)):
            self.tasks = [asyncio.create_task(self.come(name, seat)) for name, seat in arrivals]
            await asyncio.sleep(0)
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return self.order


async def test_section_7_no_more_calls_at_a_time_than_max_in_flight() -> None:
    limiter, now, most = Limiter(3), 0, 0

    async def call() -> None:
        nonlocal now, most
        async with limiter.slot(Seat(100.0)):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1

    await asyncio.gather(*(call() for _ in range(20)))
    assert (now, most) == (0, 3)


async def test_section_7_nearest_deadline_first() -> None:
    order = await Door().queue(("late", Seat(900.0)), ("early", Seat(100.0)), ("middle", Seat(500.0)))
    assert order == ["early", "middle", "late"]


async def test_deadlines_of_the_same_second_go_in_order_of_arrival() -> None:
    assert await Door().queue(("a", Seat(100.9)), ("b", Seat(100.1)), ("c", Seat(100.5))) == ["a", "b", "c"]


async def test_section_7_fair_a_rollout_of_many_blocks_does_not_shut_out_one_of_few() -> None:
    limiter = Limiter(2)
    big, small = Seat(100.0), Seat(900.0)
    order: list[Seat] = []

    async def call(seat: Seat) -> None:
        async with limiter.slot(seat):
            order.append(seat)
            await asyncio.sleep(0.001)

    await asyncio.gather(*(call(big) for _ in range(10)), call(small))
    assert order.index(small) == 2


async def test_a_cancelled_call_gives_its_place_in_the_queue_up() -> None:
    door = Door()
    first, second = Seat(100.0), Seat(200.0)
    async with door.limiter.slot(Seat(0.0)):
        gone = asyncio.create_task(door.come("gone", first))
        kept = asyncio.create_task(door.come("kept", second))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
    await kept
    assert door.order == ["kept"]
    assert first.in_flight == second.in_flight == 0


async def test_a_call_cancelled_in_the_moment_of_its_turn_passes_the_turn_on() -> None:
    door = Door()
    async with door.limiter.slot(Seat(0.0)):
        gone = asyncio.create_task(door.come("gone", Seat(100.0)))
        kept = asyncio.create_task(door.come("kept", Seat(200.0)))
        await asyncio.sleep(0)
    gone.cancel()  # its turn has come, but it has not run yet
    await asyncio.wait_for(kept, 60)
    assert door.order == ["kept"]


def test_each_loop_has_its_own_places() -> None:
    limiter = Limiter(1)

    async def hold_and_leave() -> None:
        await asyncio.wait_for(limiter.slot(Seat(1.0)).__aenter__(), 1)

    asyncio.run(hold_and_leave())
    asyncio.run(hold_and_leave())


def test_engines_of_one_process_share_one_limiter() -> None:
    assert process_limiter(64) is process_limiter(64)
    assert process_limiter(8) is not process_limiter(64)


@pytest.mark.parametrize("waiters", [1000])
async def test_a_long_queue_stays_cheap(waiters: int) -> None:
    limiter = Limiter(64)

    async def call(seat: Seat) -> None:
        async with limiter.slot(seat):
            await asyncio.sleep(0)

    start = time.process_time()
    await asyncio.gather(*(call(Seat(float(n))) for n in range(waiters)))
    assert (time.process_time() - start) / waiters < 0.005


# Quotas, in virtual time


def paced(size: int = 64, requests: float | None = 60, tokens: float | None = None) -> Limiter:
    """A limiter of so many calls at a time; by default every quota has a call a second."""
    loop = asyncio.get_running_loop()
    limits = Limits(requests and requests / 0.98, tokens and tokens / 0.98)
    return Limiter(size, LocalThrottle(limits, clock=loop.time))


class Log:
    """Calls through a limiter: who went out, and when."""

    def __init__(self, limiter: Limiter) -> None:
        self.limiter = limiter
        self.out: list[tuple[str, float]] = []
        self.now = asyncio.get_running_loop().time

    async def call(self, name: str, seat: Seat, quota: str = "q", tokens: int = 0, seconds: float = 0.0) -> None:
        async with self.limiter.slot(seat, quota, tokens) as turn:
            self.out.append((name, round(self.now(), 3)))
            await asyncio.sleep(seconds)
            turn.answer = Reply("{}", Usage(), seconds)

    def start(self, *args: Any, **options: Any) -> asyncio.Task[None]:
        return asyncio.create_task(self.call(*args, **options))

    def times(self, name: str) -> list[float]:
        return [when for who, when in self.out if who == name]

    def order(self) -> list[str]:
        return [who for who, _ in self.out]


@in_virtual_time
async def test_section_7_calls_wait_for_their_quota() -> None:
    log = Log(paced())
    await asyncio.gather(*(log.call("a", Seat(900.0)) for _ in range(4)))
    assert log.times("a") == pytest.approx([0, 1, 2, 3])


@in_virtual_time
async def test_a_quota_that_waits_holds_up_no_other() -> None:
    log = Log(paced(size=2))
    slow = [log.start("slow", Seat(100.0)) for _ in range(5)]
    await asyncio.sleep(0)
    for _ in range(3):
        await log.call("other", Seat(900.0), quota="another")
        await asyncio.sleep(1)
    assert log.times("other") == [0, 1, 2]
    await asyncio.gather(*slow)


@in_virtual_time
async def test_section_7_nobody_holds_a_place_while_the_quota_waits() -> None:
    log = Log(paced(size=1))
    await log.call("first", Seat(100.0))
    waits = log.start("waits", Seat(100.0))
    await asyncio.sleep(0.1)
    await log.call("passes", Seat(900.0), quota="another", seconds=0.5)
    await waits
    assert log.out == [("first", 0.0), ("passes", 0.1), ("waits", 1.0)]


@in_virtual_time
async def test_section_7_a_permit_goes_to_who_is_most_urgent_when_it_falls_due() -> None:
    log = Log(paced())
    await log.call("first", Seat(100.0))
    tasks = [log.start("patient", Seat(900.0))]
    await asyncio.sleep(0.5)  # the permit that falls due at 1.0 was asked for by now
    tasks.append(log.start("urgent", Seat(100.0)))
    await asyncio.gather(*tasks)
    assert log.order() == ["first", "urgent", "patient"]


@in_virtual_time
async def test_section_7_a_rollout_with_calls_in_flight_lets_others_have_the_permit() -> None:
    log = Log(paced())
    big, small = Seat(100.0), Seat(900.0)
    tasks = [log.start("big", big, seconds=60.0) for _ in range(4)]
    tasks += [log.start("small", small, seconds=60.0) for _ in range(2)]
    await asyncio.gather(*tasks)
    assert log.order() == ["big", "small", "big", "small", "big", "big"]


@in_virtual_time
async def test_a_permit_that_fell_due_while_all_places_were_taken_is_used_when_one_is_free() -> None:
    log = Log(paced(size=1))
    await log.call("first", Seat(100.0))
    waits = log.start("waits", Seat(100.0))
    await asyncio.sleep(0.1)
    await log.call("long", Seat(900.0), quota="another", seconds=10.0)
    await waits
    assert log.times("waits") == [10.1]


@in_virtual_time
async def test_a_waiter_that_is_cancelled_leaves_its_permit_to_others() -> None:
    log = Log(paced())
    await log.call("first", Seat(100.0))
    gone = log.start("gone", Seat(100.0))
    await asyncio.sleep(0.5)
    gone.cancel()
    await asyncio.sleep(0.6)
    await log.call("next", Seat(100.0))
    assert log.out[-1] == ("next", 1.1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@in_virtual_time
async def test_a_waiter_that_is_cancelled_in_the_moment_of_its_turn_leaves_permit_and_place() -> None:
    log = Log(paced(size=1))
    await log.call("first", Seat(100.0))
    gone = log.start("gone", Seat(100.0))
    asyncio.get_running_loop().call_at(1.0, gone.cancel)
    await asyncio.sleep(1.0)
    await asyncio.sleep(0)
    assert gone.cancelled() or gone.cancelling()
    await asyncio.wait([gone])
    await log.call("next", Seat(100.0))
    assert log.out[-1] == ("next", 1.0)


@in_virtual_time
async def test_a_turn_that_makes_no_call_costs_the_quota_nothing() -> None:
    log = Log(paced())
    async with log.limiter.slot(Seat(100.0), "q"):
        pass
    await log.call("next", Seat(100.0))
    assert log.times("next") == [0.0]


@in_virtual_time
async def test_a_wait_beyond_the_deadline_is_cut_by_the_deadline_and_costs_others_nothing() -> None:
    log = Log(paced(requests=1))
    await log.call("first", Seat(100.0))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await log.call("late", Seat(30.0))
    assert log.now() == 30
    await log.call("next", Seat(900.0))
    assert log.times("next") == pytest.approx([60.0])


@in_virtual_time
async def test_section_7_tokens_a_minute_count_as_calls_a_minute_do() -> None:
    log = Log(paced(requests=None, tokens=6_000))
    await asyncio.gather(*(log.call("a", Seat(900.0), tokens=200) for _ in range(3)))
    assert log.times("a") == pytest.approx([0, 2, 4])


@in_virtual_time
async def test_a_window_of_calls_in_flight_lets_one_in_as_soon_as_one_ends() -> None:
    log = Log(paced(requests=None))
    throttle = log.limiter.throttle
    permits = [throttle.take("q", 0) for _ in range(3)]
    assert all(permits)
    crowded = CallFault(Fault(FaultKind.RATE_LIMIT), hints=RateHints(crowded=True))
    await asyncio.sleep(0.1)
    for permit in permits:
        assert permit is not None
        throttle.settle(permit, crowded)
    await asyncio.sleep(2)
    await asyncio.gather(*(log.call("a", Seat(900.0), seconds=0.2) for _ in range(3)))
    assert log.times("a") == pytest.approx([2.1, 2.3, 2.5])


def test_loops_of_several_threads_share_a_quota() -> None:
    throttle = LocalThrottle(Limits(requests_per_minute=6000))
    limiter = Limiter(8, throttle)
    out: list[float] = []

    async def work() -> None:
        async def call() -> None:
            async with limiter.slot(Seat(1e9), "q") as turn:
                out.append(time.monotonic())
                turn.answer = Reply("{}", Usage(), 0.0)

        await asyncio.gather(*(call() for _ in range(40)))

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(out) == 120
    assert max(out) - min(out) >= 0.9 * (120 / 98 - 0.25)


# Calls


def calls_of(limiter: Limiter) -> tuple[Calls, list[CallEvent]]:
    calls, events = Calls(limiter, Breaker(0)), []
    calls.on_call = events.append
    return calls, events


@in_virtual_time
async def test_section_7_the_quota_learns_from_every_answer() -> None:
    told: list[tuple[Permit, Reply | CallFault]] = []

    class Told(LocalThrottle):
        def settle(self, permit: Permit, answer: Reply | CallFault) -> None:
            told.append((permit, answer))
            super().settle(permit, answer)

    calls, _ = calls_of(Limiter(2, Told(clock=asyncio.get_running_loop().time)))
    answers: list[Reply | CallFault] = [
        Reply("{}", Usage(calls=1, input_tokens=7), 0.0, hints=RateHints(requests_per_minute=60)),
        CallFault(Fault(FaultKind.RATE_LIMIT), retry_after=3.0),
    ]
    for answer in answers:
        await calls.make(answering(answer), Seat(900.0), Question(quota="q", tokens=5))
    assert [answer for _, answer in told] == answers
    assert {(permit.quota, permit.tokens) for permit, _ in told} == {("q", 5)}


@in_virtual_time
async def test_a_cancelled_call_is_settled_too() -> None:
    throttle = LocalThrottle(clock=asyncio.get_running_loop().time)
    calls, _ = calls_of(Limiter(1, throttle))

    async def for_ever() -> Reply:
        await asyncio.sleep(1e6)
        raise AssertionError

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await calls.make(for_ever, Seat(900.0), Question(quota="q"))
    assert throttle._books["q"].in_flight == 0


@in_virtual_time
async def test_an_event_shows_the_wait_for_the_quota_as_waiting() -> None:
    calls, events = calls_of(paced())
    reply = Reply("{}", Usage(calls=1), 0.0)
    await asyncio.gather(
        *(calls.make(answering(reply), Seat(900.0), Question(quota="q")) for _ in range(3)),
    )
    assert [(event.queued, event.start) for event in events] == [(0, 0), (0, pytest.approx(1)), (0, pytest.approx(2))]


def answering(answer: Reply | CallFault) -> Callable[[], Awaitable[Reply | CallFault]]:
    async def ask() -> Reply | CallFault:
        return answer

    return ask


@in_virtual_time
async def test_who_is_to_wait_elsewhere_leaves_its_line_and_nothing_behind() -> None:
    limiter, stays = paced(1), [True]
    async with limiter.slot(Seat(1e9), "a"):
        pass
    async with limiter.slot(Seat(1e9), "b"):
        waiting = asyncio.create_task(limiter.slot(Seat(1e9), "a", stays=lambda: stays[0]).__aenter__())
        await asyncio.sleep(30)
        assert not waiting.done(), "its quota has a permit, but the place is taken"
        stays[0] = False
        await asyncio.sleep(2)
        assert isinstance(waiting.exception(), Elsewhere)
    async with limiter.slot(Seat(1e9), "a", stays=lambda: False):
        pass  # who need not wait is not asked
