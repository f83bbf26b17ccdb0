"""The runaway guard: an endpoint that fails for everybody is left alone, probed, then given up (SPEC 7)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum

from rubric_env._loops import PerLoop
from rubric_env.scoring.faults import ENDPOINT_FAULTS, Fault, FaultKind, prevailing

LARGEST_WINDOW = 20
FAILED_SHARE = 0.9
ROLLOUTS = 3
"""So many rollouts, or all in flight when they are fewer, must have seen failures: one submission opens no breaker."""

CAUSES = {
    FaultKind.TIMEOUT: "a thinking model chosen as judge, or an endpoint that hangs (JUDGE_MODEL, JUDGE_PER_TIMEOUT)",
    FaultKind.EMPTY: "a thinking model chosen as judge that never comes to an answer (JUDGE_MODEL, JUDGE_MAX_TOKENS)",
    FaultKind.CONNECTION: "a dead endpoint or a wrong URL (JUDGE_BASE_URL)",
    FaultKind.SERVER: "an endpoint that is down or overloaded (JUDGE_BASE_URL)",
    FaultKind.AUTH: "a wrong or expired key (JUDGE_API_KEY)",
}


class JudgeAborted(Exception):
    """The endpoint was given up. One line: how many calls failed, the last error, the likely cause."""


class Call:
    """One call that may go out. What never reports (cancelled, out of time) is neither success nor failure."""

    __slots__ = ("fault", "probe", "reported", "rollout")

    def __init__(self, rollout: object, probe: bool) -> None:
        self.rollout = rollout
        self.probe = probe
        self.reported = False
        self.fault: Fault | None = None

    def report(self, fault: Fault | None) -> None:
        """How the call ended; None: with an answer."""
        self.reported, self.fault = True, fault

    @property
    def failed(self) -> bool:
        """The endpoint's own failure."""
        return self.fault is not None and self.fault.kind in ENDPOINT_FAULTS

    @property
    def succeeded(self) -> bool:
        return self.reported and self.fault is None


class Breaker:
    """Watches the endpoint's own failures over the last n finished calls, n = calls in flight, from `smallest` to 20.

    Open, it lets single probes out, `probes` seconds apart; a success closes it. When all probes failed it gives up:
    calls are refused at once. So that a training run outlives an outage, one more probe may go out after `recovery`
    seconds; so that one bad submission, alone in flight, shuts out nobody, a rollout that saw no failure may send one
    at once until three have seen some. `smallest` 0 turns it off. `aborted` is the error while it is given up.
    """

    def __init__(self, smallest: int, *, probes: Sequence[float] = (1.0, 2.0, 4.0), recovery: float = 60.0) -> None:
        self.aborted: JudgeAborted | None = None
        self.smallest = smallest
        self.probes = tuple(probes)
        self.recovery = recovery
        self._guards = PerLoop(lambda: _Guard(self))

    @contextmanager
    def rollout(self, rollout: object) -> Iterator[None]:
        """Counts `rollout` as in flight for the time of the block."""
        guard = self._guards.here()
        guard.rollouts.add(rollout)
        try:
            yield
        finally:
            guard.rollouts.discard(rollout)

    async def ready(self, rollout: object) -> None:
        """Waits while calls have to wait. Raises JudgeAborted once the endpoint was given up."""
        await self._guards.here().ready(rollout)

    @contextmanager
    def call(self, rollout: object) -> Iterator[Call | None]:
        """Yields the call to make and report to, or None when it has to wait until `ready` after all."""
        guard = self._guards.here()
        call = guard.admit(rollout)
        try:
            yield call
        finally:
            if call is not None:
                guard.finish(call)


class _Phase(Enum):
    CLOSED = "closed"
    OPEN = "open"
    ABORTED = "aborted"


class _Guard:
    """A breaker's state in one loop."""

    def __init__(self, breaker: Breaker) -> None:
        self.rollouts: set[object] = set()
        self._breaker = breaker
        self._phase = _Phase.CLOSED
        self._in_flight = 0
        self._window: deque[Call] = deque(maxlen=max(LARGEST_WINDOW, breaker.smallest))
        self._opened_on: list[Call] = []
        self._witnesses: set[object] = set()
        self._error: JudgeAborted | None = None
        self._probes_failed = 0
        self._probing = False
        self._due = 0.0
        self._changed = asyncio.Event()

    async def ready(self, rollout: object) -> None:
        while self._phase is not _Phase.CLOSED:
            if self._error is not None and self._phase is _Phase.ABORTED:
                if not self._may_try_again(rollout):
                    raise self._error
                self._phase, self._due = _Phase.OPEN, 0.0
            if self._probe_due():
                return
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if self._probing else self._due):
                    await changed.wait()

    def admit(self, rollout: object) -> Call | None:
        probe = self._phase is not _Phase.CLOSED
        if probe and not self._probe_due():
            return None
        self._probing = self._probing or probe
        self._in_flight += 1
        return Call(rollout, probe)

    def finish(self, call: Call) -> None:
        in_flight = self._in_flight
        self._in_flight -= 1
        if call.probe:
            self._probing = False
        if self._phase is _Phase.CLOSED:
            if call.failed or call.succeeded:
                self._window.append(call)
            if call.failed:
                self._opened_on = self._evidence(in_flight)
                if self._opened_on:
                    self._open()
        elif call.succeeded or (call.probe and call.reported and not call.failed):
            self._close()
        elif call.probe:
            self._probed(call)

    def _probe_due(self) -> bool:
        return self._phase is _Phase.OPEN and not self._probing and _now() >= self._due

    def _may_try_again(self, rollout: object) -> bool:
        return _now() >= self._due or (len(self._witnesses) < ROLLOUTS and rollout not in self._witnesses)

    def _evidence(self, in_flight: int) -> list[Call]:
        """The finished calls that open the breaker; none as long as it stays closed."""
        smallest = self._breaker.smallest
        size = max(smallest, min(in_flight, LARGEST_WINDOW))
        last = list(self._window)[-size:]
        failed = [call for call in last if call.failed]
        seen_by = {call.rollout for call in failed}
        enough = len(last) == size and len(failed) >= FAILED_SHARE * size
        return last if smallest and enough and len(seen_by) >= min(ROLLOUTS, len(self.rollouts)) else []

    def _open(self) -> None:
        self._phase = _Phase.OPEN
        self._probes_failed = 0
        self._witnesses = {call.rollout for call in self._opened_on if call.failed}
        self._wait(self._breaker.probes[0])

    def _probed(self, call: Call) -> None:
        if not call.failed:
            self._wake()
            return
        self._probes_failed += 1
        self._witnesses.add(call.rollout)
        if self._probes_failed < len(self._breaker.probes):
            self._wait(self._breaker.probes[self._probes_failed])
            return
        self._phase = _Phase.ABORTED
        self._error = self._breaker.aborted = self._verdict(call)
        self._wait(self._breaker.recovery)

    def _close(self) -> None:
        self._phase = _Phase.CLOSED
        self._window.clear()
        self._error = self._breaker.aborted = None
        self._wake()

    def _wait(self, seconds: float) -> None:
        self._due = _now() + seconds
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _verdict(self, last: Call) -> JudgeAborted:
        faults = [call.fault for call in (*self._opened_on, last) if call.fault is not None and call.failed]
        kind = prevailing(fault.kind for fault in faults)
        cause = CAUSES[kind] if kind is not None else "unknown"
        return JudgeAborted(
            f"judge endpoint given up: {len(faults) - 1} of {len(self._opened_on)} calls failed, then "
            f"{self._probes_failed} probes; last error: {last.fault}; likely cause: {cause}"
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
