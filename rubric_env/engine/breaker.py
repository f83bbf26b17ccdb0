"""The runaway guard: an endpoint that fails for everybody is left alone, probed, then given up (SPEC 7)."""

from __future__ import annotations

import asyncio
import math
from bisect import insort
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress

from rubric_env._loops import PerLoop
from rubric_env.engine.outage import PROBES, RECOVERY, Call, Ended, Outage, Rules


class JudgeAborted(Exception):
    """The endpoint was given up. One line: how many calls failed, the last error, the likely cause."""


class Breaker:
    """Watches the endpoint's own failures over the last n finished calls, n = calls in flight, from `smallest` to 20.

    Open, it lets single probes out, `probes` seconds apart; a success closes it. When all probes failed it gives up:
    calls are refused at once. So that a training run outlives an outage, one more probe may go out after `recovery`
    seconds; so that one bad submission, alone in flight, shuts out nobody, a rollout that saw no failure may send one
    at once until three have seen some. `smallest` 0 turns it off. `aborted` is the error while it is given up.
    """

    def __init__(self, smallest: int, *, probes: Sequence[float] = PROBES, recovery: float = RECOVERY) -> None:
        self.aborted: JudgeAborted | None = None
        self.rules = Rules(smallest, tuple(probes), recovery)
        self._guards = PerLoop(self._guard)

    @contextmanager
    def rollout(self, rollout: Hashable) -> Iterator[None]:
        """Counts `rollout` as in flight for the time of the block."""
        guard = self._guards.here()
        guard.enter(rollout)
        try:
            yield
        finally:
            guard.leave(rollout)

    async def ready(self, rollout: Hashable) -> None:
        """Waits while calls have to wait. Raises JudgeAborted once the endpoint was given up."""
        await self._guards.here().ready(rollout)

    @contextmanager
    def call(self, rollout: Hashable) -> Iterator[Call | None]:
        """Yields the call to make and report to, or None when it has to wait until `ready` after all."""
        guard = self._guards.here()
        call = guard.admit(rollout)
        try:
            yield call
        finally:
            if call is not None:
                guard.finish(call)

    def _guard(self) -> Guard:
        return Guard(self)


class Guard:
    """A breaker's state in one loop."""

    def __init__(self, breaker: Breaker) -> None:
        self.rollouts: set[Hashable] = set()
        self.in_flight = 0
        self.outage: Outage | None = None
        self._breaker = breaker
        self._rules = breaker.rules
        self._window: list[Ended] = []
        self._error: JudgeAborted | None = None
        self._sent = 0.0
        self._offset = 0.0
        self._changed = asyncio.Event()

    def enter(self, rollout: Hashable) -> None:
        self.rollouts.add(rollout)

    def leave(self, rollout: Hashable) -> None:
        self.rollouts.discard(rollout)

    async def ready(self, rollout: Hashable) -> None:
        while (outage := self.outage) is not None:
            now = self._now()
            if outage.lets_out(self._name(rollout), now):
                return
            if self._error is not None and not outage.probing(now):
                raise self._error
            await self._change(outage.probe_until if outage.probing(now) else outage.due)

    def admit(self, rollout: Hashable) -> Call | None:
        probe = self.outage is not None
        if probe and not self._take_probe(rollout):
            return None
        self.in_flight += 1
        self._sent = max(self._now(), math.nextafter(self._sent, math.inf))
        return Call(self._sent, self._name(rollout), probe)

    def finish(self, call: Call) -> None:
        self._book(call, self.in_flight)
        self.in_flight -= 1

    def _now(self) -> float:
        return asyncio.get_running_loop().time() + self._offset

    def _name(self, rollout: Hashable) -> Hashable:
        return rollout

    def _take_probe(self, rollout: Hashable) -> bool:
        if self.outage is None or not self.outage.lets_out(self._name(rollout), self._now()):
            return False
        self.outage = self.outage.with_probe(math.inf)
        return True

    def _book(self, call: Call, in_flight: int) -> None:
        """What a finished call says of the endpoint; `in_flight` counts it still."""
        if self.outage is not None:
            self._set(self.outage.after(call, self._now(), self._rules))
        elif ended := call.counts:
            insort(self._window, ended, key=lambda known: known.sent)
            del self._window[: -self._rules.largest]
            if call.failed:
                self._set(self._rules.outage(self._window, in_flight, len(self.rollouts), self._now()))

    def _set(self, outage: Outage | None) -> None:
        if outage == self.outage:
            return
        if outage is None:
            self._window.clear()
        self.outage = outage
        line = outage.given_up if outage is not None else ""
        if line != str(self._error or ""):
            self._error = self._breaker.aborted = JudgeAborted(line) if line else None
        self._changed.set()
        self._changed = asyncio.Event()

    async def _change(self, due: float) -> None:
        """Waits until the state changes, at most until `due`."""
        changed = self._changed
        with suppress(TimeoutError):
            async with asyncio.timeout_at(None if due == math.inf else due - self._offset):
                await changed.wait()
