"""When an endpoint counts as failing for everybody, and what may then go out (SPEC 7): values, without clock and I/O.

Whoever keeps them (`engine.breaker` in a process, `engine.shared` in Redis) decides with what stands here.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from rubric_env.scoring.faults import ENDPOINT_FAULTS, Fault, FaultKind, prevailing

LARGEST_WINDOW = 20
FAILED_SHARE = 0.9
ROLLOUTS = 3
"""So many rollouts, or all in flight when they are fewer, must have seen failures: one submission opens no breaker."""
PROBES, RECOVERY = (1.0, 2.0, 4.0), 60.0

CAUSES = {
    FaultKind.TIMEOUT: "a thinking model chosen as judge, or an endpoint that hangs (JUDGE_MODEL, JUDGE_PER_TIMEOUT)",
    FaultKind.EMPTY: "a thinking model chosen as judge that never comes to an answer (JUDGE_MODEL, JUDGE_MAX_TOKENS)",
    FaultKind.CONNECTION: "a dead endpoint or a wrong URL (JUDGE_BASE_URL)",
    FaultKind.SERVER: "an endpoint that is down or overloaded, or a wrong path (JUDGE_BASE_URL, JUDGE_BACKEND)",
    FaultKind.AUTH: "a wrong or expired key (JUDGE_API_KEY)",
}


@dataclass(eq=False, slots=True)
class Call:
    """One call that may go out. What its own rollout ended (cancelled, out of time) is neither success nor failure."""

    sent: float
    """Orders calls by when they went out: a few time-outs, which all come late and together, must not look like the
    endpoint's latest state."""
    rollout: Hashable
    probe: bool
    reported: bool = False
    fault: Fault | None = None

    def report(self, fault: Fault | None) -> None:
        """How the call ended; None: with an answer. `deadline` says nothing of the endpoint, not even that it lives."""
        if fault is None or fault.kind is not FaultKind.DEADLINE:
            self.reported, self.fault = True, fault

    @property
    def failed(self) -> bool:
        """The endpoint's own failure."""
        return self.fault is not None and self.fault.kind in ENDPOINT_FAULTS

    @property
    def succeeded(self) -> bool:
        return self.reported and self.fault is None

    @property
    def counts(self) -> Ended | None:
        """What is kept of it, once it has ended; None: it says nothing of the endpoint."""
        if not (self.failed or self.succeeded):
            return None
        return Ended(self.sent, self.rollout, self.fault.kind if self.fault is not None else None)


@dataclass(frozen=True, slots=True)
class Ended:
    """A finished call that counts; `kind` None: it succeeded."""

    sent: float
    rollout: Hashable
    kind: FaultKind | None


@dataclass(frozen=True, slots=True)
class Rules:
    """`smallest` window, seconds before each probe, and seconds until one more after the endpoint was given up."""

    smallest: int
    probes: tuple[float, ...] = PROBES
    recovery: float = RECOVERY

    @property
    def largest(self) -> int:
        return max(LARGEST_WINDOW, self.smallest)

    def outage(self, window: Sequence[Ended], in_flight: int, rollouts: int, now: float) -> Outage | None:
        """The outage that the finished calls show, the last to go out last; None: they show none."""
        size = max(self.smallest, min(in_flight, LARGEST_WINDOW))
        last = window[-size:]
        failed = [call for call in last if call.kind is not None]
        witnesses = frozenset(call.rollout for call in failed)
        if not self.smallest or len(last) < size or len(failed) < FAILED_SHARE * size:
            return None
        if len(witnesses) < min(ROLLOUTS, rollouts):
            return None
        kinds = tuple(call.kind for call in failed if call.kind is not None)
        return Outage(size, kinds, witnesses, now + self.probes[0])


@dataclass(frozen=True, slots=True)
class Outage:
    """An endpoint that failed for everybody: `kinds` of `calls` calls failed, seen by the rollouts `witnesses`.

    The next probe may go out at `due`, unless one is out until `probe_until`. `given_up` is the line that says so.
    """

    calls: int
    kinds: tuple[FaultKind, ...]
    witnesses: frozenset[Hashable]
    due: float
    probes_failed: int = 0
    probe_until: float = 0.0
    given_up: str = ""

    def probing(self, now: float) -> bool:
        return now < self.probe_until

    def lets_out(self, rollout: Hashable, now: float) -> bool:
        """Whether `rollout` may send a probe. Once given up, one that saw no failure may, as long as only few did."""
        stranger = bool(self.given_up) and len(self.witnesses) < ROLLOUTS and rollout not in self.witnesses
        return not self.probing(now) and (now >= self.due or stranger)

    def with_probe(self, until: float) -> Outage:
        return replace(self, probe_until=until)

    def after(self, call: Call, now: float, rules: Rules) -> Outage | None:
        """What is left of it when `call` has ended; None: the endpoint lives."""
        if call.succeeded or (call.probe and call.reported and not call.failed):
            return None
        if not call.probe:
            return self
        if call.fault is None or not call.failed:
            return replace(self, probe_until=0.0)
        failed = self.probes_failed + 1
        last = failed >= len(rules.probes)
        return replace(
            self,
            witnesses=self.witnesses | {call.rollout},
            due=now + (rules.recovery if last else rules.probes[failed]),
            probes_failed=failed,
            probe_until=0.0,
            given_up=self._line(failed, call.fault) if last else "",
        )

    def _line(self, probes: int, last: Fault) -> str:
        kind = prevailing([*self.kinds, last.kind])
        cause = CAUSES[kind] if kind is not None else "unknown"
        return (
            f"judge endpoint given up: {len(self.kinds)} of {self.calls} calls failed, then {probes} probes; "
            f"last error: {last}; likely cause: {cause}"
        )
