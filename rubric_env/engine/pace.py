"""The throttle: what a quota allows, kept for one process; and what a shared one has to do as well (SPEC 7, fleet)."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rubric_env.engine._pace import BURST, TICK, UNLIMITED, Limits, PaceState, Tally, Tick, adjust, gcra
from rubric_env.judges.protocol import CallFault, Reply

__all__ = [
    "AHEAD",
    "BURST",
    "POLL",
    "TICK",
    "UNLIMITED",
    "Limits",
    "LocalThrottle",
    "PaceState",
    "Permit",
    "Tally",
    "Throttle",
    "Tick",
    "adjust",
    "gcra",
]

AHEAD = 1.0
"""A permit is given at most so many seconds before it starts, because the rate may have changed by then."""
POLL = 0.5
"""Who got no permit asks again after so many seconds at most, and half of that at least: not all at once."""


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave for one call of `quota`, to be used after `wait` seconds and then settled, or else refunded.

    Not `granted`: nothing was taken, and there is nothing to give back; ask again after `wait`.
    """

    quota: str
    tokens: int
    wait: float = 0.0
    granted: bool = True
    at: float = 0.0
    """When the call may start, in the throttle's time."""
    key: str = ""
    """The throttle's own."""


class Throttle(Protocol):
    """What the limiter asks before each call. Safe in several loops and threads at once."""

    @property
    def fallback(self) -> bool:
        """A shared throttle that does without what it shares, at the moment."""
        ...

    def take(self, quota: str, tokens: int) -> Permit | None:
        """A permit for now, or None: ask `reserve`. Never blocks."""
        ...

    async def reserve(self, quota: str, tokens: int) -> Permit:
        """A permit to be used after its `wait`, or one that is not granted. The caller sleeps, not the throttle."""
        ...

    def settle(self, permit: Permit, answer: Reply | CallFault) -> None:
        """The call is over. Never blocks: what has to be sent goes out in the background."""
        ...

    def refund(self, permit: Permit) -> None:
        """The permit will not be used. Never blocks."""
        ...


def _loop_time() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


class LocalThrottle:
    """The throttle of one process. `clock` in seconds: the running loop's, which all loops of a process share."""

    fallback = False

    def __init__(
        self, limits: Limits = UNLIMITED, *, slow: bool = False, clock: Callable[[], float] = _loop_time
    ) -> None:
        self._limits = limits
        self._slow = slow
        self._clock = clock
        self._books: dict[str, _Book] = {}
        self._lock = threading.Lock()

    def take(self, quota: str, tokens: int) -> Permit | None:
        with self._lock:
            now, book = self._open(quota)
            return book.permit(quota, tokens, now, latest=now)

    async def reserve(self, quota: str, tokens: int) -> Permit:
        with self._lock:
            now, book = self._open(quota)
            permit = book.permit(quota, tokens, now, latest=now + AHEAD)
            return permit or Permit(quota, tokens, random.uniform(POLL / 2, POLL), granted=False)

    def settle(self, permit: Permit, answer: Reply | CallFault) -> None:
        with self._lock:
            now, book = self._open(permit.quota)
            book.settle(permit, answer, now)

    def refund(self, permit: Permit) -> None:
        with self._lock:
            self._open(permit.quota)[1].refund(permit)

    def state(self, quota: str) -> PaceState:
        """What goes for the quota now."""
        with self._lock:
            return self._open(quota)[1].state

    def resume(self, quota: str, state: PaceState) -> None:
        """Go on from what another throttle, with the same clock, knew of the quota."""
        with self._lock:
            self._books.setdefault(quota, _Book(state)).go_on(state)

    def _open(self, quota: str) -> tuple[float, _Book]:
        now = self._clock()
        book = self._books.get(quota)
        if book is None or now < book.state.at:  # a clock that went back is another loop's, which has its own
            book = self._books[quota] = _Book(PaceState.begin(self._limits, now, slow=self._slow))
        elif now - book.state.at >= TICK:
            book.turn(now)
        return now, book


class _Book:
    """One quota: what goes, what happened, and what is owed."""

    def __init__(self, state: PaceState) -> None:
        self.in_flight = 0
        self._calls_due = self._tokens_due = 0.0
        self.go_on(state)

    def go_on(self, state: PaceState) -> None:
        """From here on `state` goes."""
        self.state, self._tally = state, Tally()
        self._pace, self._tokens = state.pace, state.tokens
        self._window = math.inf if state.window is None else int(state.window)

    def turn(self, now: float) -> None:
        self.go_on(adjust(self.state, self._tally, now))

    def permit(self, quota: str, tokens: int, now: float, *, latest: float) -> Permit | None:
        """A permit that starts at `latest`, or none."""
        if self.in_flight >= self._window:
            return None
        earliest = max(now, self.state.paused)
        start, calls_due = gcra(self._calls_due, earliest, 1, self._pace)
        tokens_start, tokens_due = gcra(self._tokens_due, earliest, tokens, self._tokens)
        start = max(start, tokens_start)
        if start > latest:
            return None
        self._calls_due, self._tokens_due = calls_due, tokens_due
        self.in_flight += 1
        self._tally.sent += 1
        return Permit(quota, tokens, start - now, at=start)

    def settle(self, permit: Permit, answer: Reply | CallFault, now: float) -> None:
        self.in_flight -= 1
        self._tally.note(answer, permit.at, self.in_flight, self.state, now)
        if used := answer.usage.input_tokens:
            self._give_back(permit.tokens - used)

    def refund(self, permit: Permit) -> None:
        self.in_flight -= 1
        self._tally.sent -= 1
        if self._pace is not None:
            self._calls_due -= 1 / self._pace
        self._give_back(permit.tokens)

    def _give_back(self, tokens: int) -> None:
        if self._tokens is not None:
            self._tokens_due -= tokens / self._tokens
