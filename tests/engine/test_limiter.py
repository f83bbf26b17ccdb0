"""SPEC 7, fleet: a cap on calls, fair between rollouts, nearest deadline first."""

from __future__ import annotations

import asyncio
import time

import pytest

from rubric_env.engine import Limiter
from rubric_env.engine.limiter import Seat, process_limiter


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
    await asyncio.wait_for(kept, 1)
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
