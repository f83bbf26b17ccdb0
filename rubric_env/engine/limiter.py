"""Who calls next: so many calls at a time in a loop, as a quota allows, fair between rollouts (SPEC 7)."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from rubric_env._loops import PerLoop
from rubric_env.engine.pace import UNLIMITED, Limits, LocalThrottle, Permit, Throttle
from rubric_env.judges.protocol import CallFault, Reply

GLANCE = 1.0
"""Seconds between looks whether to go on waiting."""


class Elsewhere(Exception):
    """Its turn had not come, and it is no longer this quota that a call should wait for."""


@dataclass(eq=False, slots=True)
class Seat:
    """One rollout's place in the queue. `deadline` is in loop time; the rest belongs to the limiter."""

    deadline: float
    in_flight: int = 0
    lines: set[_Line] = field(default_factory=set)
    """Where it waits."""


@dataclass(eq=False, slots=True)
class Turn:
    """A place and a permit for one call. `answer` is what came of it; None: no call was made."""

    permit: Permit
    answer: Reply | CallFault | None = None


class Limiter:
    """At most `size` calls at a time, and of each quota what `throttle` gives permits for.

    Of those that may go, the rollout with the fewest calls in flight goes first; among equals the nearest deadline (to
    the second), then who came first. Who waits holds neither a place nor a permit: permits are the quota's, and
    go to who is most urgent when they fall due. A quota that has to wait holds up no other.
    """

    def __init__(self, size: int, throttle: Throttle | None = None) -> None:
        self.size = size
        self.throttle: Throttle = throttle or LocalThrottle()
        self._queues = PerLoop(lambda: _Queue(size, self.throttle))

    @asynccontextmanager
    async def slot(
        self, seat: Seat, quota: str = "", tokens: int = 0, stays: Callable[[], bool] | None = None
    ) -> AsyncIterator[Turn]:
        """Holds a place and a permit for a call of that many tokens for the time of the block.

        Raises Elsewhere once `stays`, which is asked now and then while the call waits, says no.
        """
        queue = self._queues.here()
        turn = Turn(await queue.acquire(seat, quota, tokens, stays))
        try:
            yield turn
        finally:
            queue.release(seat, turn)


@lru_cache
def process_limiter(size: int, limits: Limits = UNLIMITED) -> Limiter:
    """The limiter that all engines of this process with that `max_in_flight` and those limits share."""
    return Limiter(size, process_throttle(limits))


@lru_cache
def process_throttle(limits: Limits) -> LocalThrottle:
    """What this process knows of its quotas, whatever the size of a limiter."""
    return LocalThrottle(limits)


@dataclass(eq=False, slots=True)
class _Waiter:
    number: int
    tokens: int
    permit: asyncio.Future[Permit]


class _Line:
    """Who waits for calls of one quota, the most urgent first."""

    def __init__(self, quota: str) -> None:
        self.quota = quota
        self.permit: Permit | None = None
        """Fallen due, but all places were taken."""
        self.asking: asyncio.Task[None] | None = None
        self._waiting: dict[Seat, deque[_Waiter]] = {}
        self._heap: list[tuple[int, int, int, Seat]] = []

    def join(self, seat: Seat, waiter: _Waiter) -> None:
        self._waiting.setdefault(seat, deque()).append(waiter)
        seat.lines.add(self)
        self.rank(seat)

    def leave(self, seat: Seat, waiter: _Waiter) -> None:
        """A waiter that is not there any more may leave again."""
        waiters = self._waiting.get(seat)
        if waiters is None or waiter not in waiters:
            return
        waiters.remove(waiter)
        if waiters:
            self.rank(seat)
        else:
            del self._waiting[seat]
            seat.lines.discard(self)

    def rank(self, seat: Seat) -> None:
        """Enter the seat as urgent as it is now. What it was before stays in the heap, and is passed over."""
        heapq.heappush(self._heap, self._urgency(seat))
        if len(self._heap) > 64 + 4 * len(self._waiting):
            self._heap = [self._urgency(waiting) for waiting in self._waiting]
            heapq.heapify(self._heap)

    def first(self) -> tuple[int, int, int, Seat] | None:
        """The most urgent seat, as it compares with those of other lines; None: nobody waits."""
        while self._heap:
            entry = self._heap[0]
            if entry[-1] in self._waiting and entry == self._urgency(entry[-1]):
                return entry
            heapq.heappop(self._heap)
        return None

    def head(self, seat: Seat) -> _Waiter:
        return self._waiting[seat][0]

    def _urgency(self, seat: Seat) -> tuple[int, int, int, Seat]:
        return seat.in_flight, int(seat.deadline), self._waiting[seat][0].number, seat


class _Queue:
    """The places of one loop."""

    def __init__(self, size: int, throttle: Throttle) -> None:
        self._free = size
        self._throttle = throttle
        self._arrivals = 0
        self._lines: dict[str, _Line] = {}

    async def acquire(self, seat: Seat, quota: str, tokens: int, stays: Callable[[], bool] | None) -> Permit:
        if self._free and not self._lines and (permit := self._throttle.take(quota, tokens)) is not None:
            self._occupy(seat)
            return permit
        self._arrivals += 1
        waiter = _Waiter(self._arrivals, tokens, asyncio.get_running_loop().create_future())
        line = self._lines.setdefault(quota, _Line(quota))
        line.join(seat, waiter)
        self._dispatch()
        try:
            while stays is not None and not waiter.permit.done():
                await asyncio.wait([waiter.permit], timeout=GLANCE)
                if not (waiter.permit.done() or stays()):
                    raise Elsewhere
            return await waiter.permit
        except (asyncio.CancelledError, Elsewhere):
            waiter.permit.cancel()
            if waiter.permit.cancelled():
                line.leave(seat, waiter)
                self._tidy(line)
            else:  # its turn came in the same moment
                self.release(seat, Turn(waiter.permit.result()))
            raise

    def release(self, seat: Seat, turn: Turn) -> None:
        self._free += 1
        self._count(seat, -1)
        if turn.answer is None:
            self._throttle.refund(turn.permit)
        else:
            self._throttle.settle(turn.permit, turn.answer)
        self._dispatch()

    def _dispatch(self) -> None:
        """Let calls out while there are places and permits."""
        blocked: set[_Line] = set()
        while self._free:
            heads = [(first, line) for line in self._lines.values() if line not in blocked and (first := line.first())]
            if not heads:
                return
            (*_, seat), line = min(heads, key=lambda head: head[0][:3])
            waiter = line.head(seat)
            if waiter.permit.cancelled():
                line.leave(seat, waiter)
                continue
            permit = line.permit or self._throttle.take(line.quota, waiter.tokens)
            if permit is None:
                blocked.add(line)
                if line.asking is None:
                    line.asking = asyncio.get_running_loop().create_task(self._ask(line))
                continue
            line.permit = None
            line.leave(seat, waiter)
            self._occupy(seat)
            waiter.permit.set_result(permit)
            self._tidy(line)

    async def _ask(self, line: _Line) -> None:
        """Bring a permit that has fallen due."""
        try:
            while (first := line.first()) is not None and line.permit is None:
                permit = await self._throttle.reserve(line.quota, line.head(first[-1]).tokens)
                try:
                    await asyncio.sleep(permit.wait)
                except asyncio.CancelledError:
                    if permit.granted:
                        self._throttle.refund(permit)
                    raise
                if permit.granted:
                    line.permit = permit
        finally:
            line.asking = None
        self._dispatch()

    def _tidy(self, line: _Line) -> None:
        """Forget a line in which nobody waits; its permit goes back."""
        if line.first() is not None or self._lines.get(line.quota) is not line:
            return
        if line.asking is not None:
            line.asking.cancel()
        if line.permit is not None:
            self._throttle.refund(line.permit)
        del self._lines[line.quota]

    def _occupy(self, seat: Seat) -> None:
        self._free -= 1
        self._count(seat, 1)

    def _count(self, seat: Seat, calls: int) -> None:
        seat.in_flight += calls
        for line in seat.lines:
            line.rank(seat)
