"""Who calls next: at most so many calls at a time in a loop, fair between rollouts (SPEC 7)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from rubric_env._loops import PerLoop


@dataclass(eq=False, slots=True)
class Seat:
    """One rollout's place in the queue. `deadline` is in loop time; the rest belongs to the limiter."""

    deadline: float
    in_flight: int = 0
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)


class Limiter:
    """At most `size` calls at a time. Of those that wait, the rollout with the fewest calls in flight goes first;
    among equals the nearest deadline (to the second), then who came first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._queues = PerLoop(lambda: _Queue(size))

    @asynccontextmanager
    async def slot(self, seat: Seat) -> AsyncIterator[None]:
        """Holds one of the places for the time of the block."""
        queue = self._queues.here()
        await queue.acquire(seat)
        try:
            yield
        finally:
            queue.release(seat)


@lru_cache
def process_limiter(size: int) -> Limiter:
    """The limiter that all engines of this process with that `max_in_flight` share."""
    return Limiter(size)


class _Queue:
    def __init__(self, size: int) -> None:
        self._free = size
        self._arrivals = 0
        self._seats: set[Seat] = set()

    async def acquire(self, seat: Seat) -> None:
        if self._free and not self._seats:
            self._free -= 1
            seat.in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        seat.waiting.append((self._arrivals, turn))
        self._seats.add(seat)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(seat)  # the slot came in the same moment
            raise

    def release(self, seat: Seat) -> None:
        self._free += 1
        seat.in_flight -= 1
        while self._free and self._seats:
            self._admit(min(self._seats, key=_urgency))

    def _admit(self, seat: Seat) -> None:
        _, turn = seat.waiting.popleft()
        if not seat.waiting:
            self._seats.discard(seat)
        if not turn.cancelled():
            turn.set_result(None)
            self._free -= 1
            seat.in_flight += 1


def _urgency(seat: Seat) -> tuple[int, int, int]:
    return seat.in_flight, int(seat.deadline), seat.waiting[0][0]
