"""Endpoints with limits, and a crowd of blocks that asks them, in virtual time: the real throttle, no event loop."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from rubric_env.engine.pace import LocalThrottle, Permit
from rubric_env.judges.protocol import CallFault, RateHints, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage


class Clock:
    """Seconds of virtual time."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Endpoint(Protocol):
    def accepts(self, now: float, in_flight: int) -> bool: ...


@dataclass
class FixedWindow:
    """So many calls a minute, counted from minute to minute, as most gateways do."""

    a_minute: int
    _minute: float = -1
    _count: int = 0

    def accepts(self, now: float, in_flight: int) -> bool:
        if now // 60 != self._minute:
            self._minute, self._count = now // 60, 0
        self._count += self._count < self.a_minute + 1
        return self._count <= self.a_minute


@dataclass
class SlidingWindow:
    """So many calls in any `seconds`; refused ones do not count."""

    size: int
    seconds: float = 60.0
    _past: deque[float] = field(default_factory=deque)

    def accepts(self, now: float, in_flight: int) -> bool:
        while self._past and self._past[0] <= now - self.seconds:
            self._past.popleft()
        if len(self._past) < self.size:
            self._past.append(now)
            return True
        return False


@dataclass
class Bucket:
    """Refills by `a_minute`, holds `capacity`."""

    a_minute: float
    capacity: float
    _level: float | None = None
    _at: float = 0.0

    def accepts(self, now: float, in_flight: int) -> bool:
        level = self.capacity if self._level is None else self._level
        level = min(self.capacity, level + (now - self._at) * self.a_minute / 60)
        self._at, accepted = now, level >= 1
        self._level = level - accepted
        return accepted


@dataclass
class Crowd:
    """So many calls at a time."""

    most: int

    def accepts(self, now: float, in_flight: int) -> bool:
        return in_flight < self.most


@dataclass
class Sporadic:
    """Refuses a share of all calls, whatever their rate, and else what `behind` refuses."""

    share: float
    behind: Endpoint
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def accepts(self, now: float, in_flight: int) -> bool:
        return self.random.random() >= self.share and self.behind.accepts(now, in_flight)


@dataclass(frozen=True)
class Tried:
    at: float
    accepted: bool


class Simulation:
    """`blocks` that are asked again and again, as the queue would: a permit at a time, a back-off after a refusal."""

    def __init__(
        self,
        throttle: LocalThrottle,
        clock: Clock,
        endpoint: Endpoint,
        *,
        blocks: int,
        seconds: float = 2.0,
        refusal: Callable[[float], CallFault] | None = None,
        seed: int = 1,
    ) -> None:
        self.tried: list[Tried] = []
        self.throttle, self.clock, self.endpoint = throttle, clock, endpoint
        self._seconds = seconds
        self._refusal = refusal or (lambda now: limited())
        self._random = random.Random(seed)
        random.seed(seed)  # the throttle's own
        self._ready = blocks
        self._in_flight = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._asking = False

    def run(self, until: float) -> Simulation:
        """Up to that many seconds from the clock's time."""
        end = self.clock.now + until
        self._ask()
        while self._events and self._events[0][0] <= end:
            self.clock.now, _, event = heapq.heappop(self._events)
            event()
        self.clock.now = end
        return self

    def share_refused(self, since: float = 0.0) -> float:
        """Of the calls sent in the last `since` seconds (0: ever), those that were refused."""
        tried = self._since(since)
        return sum(not call.accepted for call in tried) / len(tried)

    def a_minute(self, since: float) -> float:
        """Calls that got through, a minute, in the last `since` seconds."""
        return 60 * sum(call.accepted for call in self._since(since)) / since

    def _since(self, seconds: float) -> list[Tried]:
        return [call for call in self.tried if not seconds or call.at > self.clock.now - seconds]

    def _at(self, seconds: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.clock.now + seconds, next(self._number), event))

    def _ask(self) -> None:
        while self._ready and not self._asking:
            permit = self.throttle.take("q", 0)
            if permit is None:
                permit = now_or_never(self.throttle.reserve("q", 0))
                self._asking = True
                self._at(permit.wait, partial(self._due, permit))
            else:
                self._send(permit)

    def _due(self, permit: Permit) -> None:
        self._asking = False
        if permit.granted:
            self._send(permit)
        self._ask()

    def _send(self, permit: Permit, refused: int = 0) -> None:
        self._ready -= 1
        accepted = self.endpoint.accepts(self.clock.now, self._in_flight)
        self.tried.append(Tried(self.clock.now, accepted))
        self._in_flight += accepted
        if accepted:
            self._at(self._seconds * self._random.lognormvariate(0, 0.3), lambda: self._end(permit, True))
        else:
            self._at(self._random.uniform(0.05, 0.3), lambda: self._end(permit, False))

    def _end(self, permit: Permit, accepted: bool) -> None:
        self._in_flight -= accepted
        self.throttle.settle(permit, answered() if accepted else self._refusal(self.clock.now))
        self._at(0 if accepted else self._random.uniform(1, 6), self._again)

    def _again(self) -> None:
        self._ready += 1
        self._ask()


def answered(**fields: object) -> Reply:
    return Reply("{}", Usage(), 1.0, **fields)  # type: ignore[arg-type]


def limited(retry_after: float | None = None, **hints: object) -> CallFault:
    told = RateHints(**hints) if hints else None  # type: ignore[arg-type]
    return CallFault(Fault(FaultKind.RATE_LIMIT), retry_after=retry_after, hints=told)


def now_or_never(coroutine: object) -> Permit:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)  # type: ignore[attr-defined]
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("it waited")
