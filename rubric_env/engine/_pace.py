"""What a quota allows, learned from answers: values, without clock and I/O (SPEC 7, fleet).

Times are seconds of the throttle's clock, rates are a second. A throttle counts what happens in a `Tally`; once a
second at most, `adjust` makes of it what goes from now on. Between adjustments calls are spaced by `gcra`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from rubric_env.judges.protocol import CallFault, Reply
from rubric_env.scoring.faults import FaultKind

TICK = 1.0
"""Seconds between adjustments, at least."""
MINUTE = 60.0
"""What endpoints count in, and the longest pause."""
BURST = 0.25
"""After idling, so many seconds' worth of calls may go out at once."""
MARGIN = 0.98
"""Of a limit that is known: covers BURST, and clocks that differ."""

# The numbers below were chosen by simulation (tests/engine/test_pace.py, benchmarks/fleet.py).
MOST = 0.5
"""The share of refused calls over the last seconds that is an overrun."""
CHANCE = 0.1
"""The share of calls that an endpoint may refuse whatever their rate; clearly more over a minute is an overrun."""
BRAKE = 0.02
"""The share of refused calls, above what there was at a lower rate, that ends the search beyond the last limit."""
NOISE_OVER = 500
"""Calls over which the share of refusals at a lower rate is averaged."""
BACK_TO = 0.97
"""Of what got through, after an overrun."""
SLOWEST = 1 / MINUTE
"""Calls a second, whatever is refused."""
SOONEST = 10.0
"""Seconds of use after which a rate may be back at the last limit."""
NEARLY_ALL = 0.8
"""The share of calls refused in the last second above which only single calls go on: a twentieth of the rate, within
PROBES calls a second."""
PROBES = (0.1, 4.0)
FIRST_RAMP = 5.0
DOUBLING = 15.0
"""A slow start begins with FIRST_RAMP calls a second, and doubles in so many seconds of use."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What is known of a quota. Tokens are those of the questions."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


UNLIMITED = Limits()


class Tick(NamedTuple):
    """What happened in the `seconds` before `at`. The other fields are those of `Tally`."""

    at: float
    seconds: float
    sent: int
    refused: int
    limited: int


@dataclass(slots=True)
class Tally:
    """What happened to a quota's calls since the last adjustment, as plain numbers."""

    sent: int = 0
    """Permits that were given and not refunded."""
    answered: int = 0
    refused: int = 0
    """Calls refused by a limit of a minute."""
    limited: int = 0
    """Those of them that were sent after the last decrease."""
    room: int | None = None
    """The fewest other calls in flight when one was refused as one too many, if it was sent after the last cut."""
    named_until: float = 0.0
    """End of the longest wait that a refusal named; 0 = none."""
    reset_until: float = 0.0
    """When an endpoint that has nothing left will have more; 0 = it has."""
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def note(self, answer: Reply | CallFault, sent_at: float, others: int, state: PaceState, now: float) -> None:
        """Add what `answer` to a call sent at `sent_at` says about the quota; `others` are still in flight."""
        if (hints := answer.hints) is not None:
            self.requests_per_minute = hints.requests_per_minute or self.requests_per_minute
            self.tokens_per_minute = hints.tokens_per_minute or self.tokens_per_minute
            for left, reset in (
                (hints.requests_left, hints.requests_reset),
                (hints.tokens_left, hints.tokens_reset),
            ):
                if left is not None and left <= 0 and reset:
                    self.reset_until = max(self.reset_until, now + reset)
        if isinstance(answer, Reply):
            self.answered += 1
        elif answer.fault.kind is FaultKind.RATE_LIMIT:
            if hints is not None and hints.crowded:
                if sent_at >= state.cut:
                    self.room = others if self.room is None else min(self.room, others)
                return
            self.refused += 1
            self.limited += sent_at >= state.decreased
            if answer.retry_after is not None:
                self.named_until = max(self.named_until, now + answer.retry_after)


@dataclass(frozen=True, slots=True)
class PaceState:
    """What goes for a quota. JSON-able by `to_json` and `from_json`.

    To give permits a throttle needs `pace`, `tokens`, `paused` and `window`; to tally, `decreased` and `cut`.
    """

    at: float
    """Time of the last adjustment."""
    configured: Limits = UNLIMITED
    named: Limits = UNLIMITED
    """As the endpoint's headers say."""
    rate: float | None = None
    """Calls a second, learned from refusals; None = there were none."""
    limit: float | None = None
    """The rate that got through when calls were last refused for their number."""
    ramp: float | None = None
    """Calls a second that a slow start has come to; None = no slow start."""
    held: bool = False
    """Everything was refused: single calls probe; once they get through, `rate` goes again."""
    calm: float = 0.0
    """Seconds in use since the last decrease."""
    patience: float = MINUTE
    """Seconds of calm after which the rate is back at `limit`."""
    noise: float = 0.0
    """The share of calls refused while the rate is below `limit`: refusals that no lower rate would avoid."""
    decreased: float = 0.0
    """Time of the last decrease: how calls fared that were sent before says nothing about the rate now."""
    paused: float = 0.0
    """No call before that time."""
    window: float | None = None
    """Calls in flight; None = any number."""
    cut: float = 0.0
    """Time of the last cut of the window."""
    history: tuple[Tick, ...] = ()
    """The last minute."""

    @classmethod
    def begin(cls, limits: Limits, now: float, *, slow: bool = False) -> PaceState:
        """Unlimited but for `limits`. A slow start is for many processes that start at once."""
        return cls(at=now, configured=limits, ramp=FIRST_RAMP if slow else None, decreased=now, cut=now)

    @property
    def pace(self) -> float | None:
        """Calls a second that may go out now; None = any number."""
        rate = self.rate
        if rate is not None and self.held:
            rate = min(rate, max(PROBES[0], min(PROBES[1], rate / 20)))
        known = (limits.requests_per_minute for limits in (self.configured, self.named))
        return _least(rate, self.ramp, *map(_a_second, known))

    @property
    def tokens(self) -> float | None:
        """Tokens a second that may go out; None = any number."""
        return _least(*(_a_second(limits.tokens_per_minute) for limits in (self.configured, self.named)))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PaceState:
        limits = {name: Limits(**data[name]) for name in ("configured", "named")}
        return cls(**{**data, **limits, "history": tuple(Tick(*tick) for tick in data["history"])})


def gcra(due: float, now: float, cost: float, rate: float | None) -> tuple[float, float]:
    """When a call of that cost may start, and `due` once it has (generic cell rate algorithm, ITU-T I.371).

    `due` is when all that went out is paid off. A cost of more than BURST seconds' worth waits until everything
    before it is paid off, and goes.
    """
    if rate is None:
        return now, due
    seconds = cost / rate
    return max(now, due + seconds - max(BURST, seconds)), max(now, due) + seconds


def adjust(state: PaceState, tally: Tally, now: float) -> PaceState:
    """What goes from `now` on; `tally` is what happened since `state.at`.

    A lone refusal changes nothing: its block backs off. An overrun (of the last seconds' calls most are refused, or of
    a minute's clearly more than a tenth) sets the rate to what got through, less a margin, and pauses for the longest
    wait that was named; of the calls that were sent before, none counts again. From there the rate grows with the
    fourth power of the time in use: hardly below the last limit, ever faster beyond it, until a few more calls are
    refused than before.
    """
    tick = Tick(now, now - state.at, tally.sent, tally.refused, tally.limited)
    state = replace(
        state,
        at=now,
        named=Limits(
            tally.requests_per_minute or state.named.requests_per_minute,
            tally.tokens_per_minute or state.named.tokens_per_minute,
        ),
        paused=max(state.paused, min(tally.reset_until, now + MINUTE)),
        history=(*(past for past in state.history if past.at > now - MINUTE), tick),
        **_window(state, tally, now),
        **_ramp(state, tick),
    )
    fresh = [past for past in state.history if past.at > state.decreased]
    if state.held:
        return _let_go(state, fresh, now)
    if (got_through := _overrun(state, fresh)) is not None:
        return _back_off(state, got_through, tally.named_until, now)
    return _grow(state, tick)


def _overrun(state: PaceState, fresh: list[Tick]) -> float | None:
    """The calls a second that got through, when more are refused than chance explains; else None.

    A minute's quota that is used up lets nothing through, but what it let through in a minute is its size; one that
    refills lets through, while it refuses, just what it refills.
    """
    last = _last(fresh, seconds=3.0, sent=16)
    if _sum(last, "limited") >= max(8, MOST * _sum(last, "sent")):
        return max(_a_minute(state.history), _got_through(fresh[-1:]))
    beyond = state.rate is not None and state.limit is not None and state.rate > state.limit
    usual, enough = (state.noise, state.noise + BRAKE) if beyond else (CHANCE, 1.5 * CHANCE)
    sent = _sum(fresh, "sent")
    if sent >= 50 and _sum(fresh, "limited") > enough * sent + 3 * math.sqrt(usual * sent):
        return max(_a_minute(state.history), _got_through(last))
    return None


def _back_off(state: PaceState, got_through: float, named_until: float, now: float) -> PaceState:
    last = state.history[-1]
    state = replace(state, decreased=now, paused=max(state.paused, min(named_until, now + MINUTE)))
    if state.rate is not None and got_through >= state.rate:
        # No more was asked than gets through in the long run: the quota is used up for now.
        return replace(state, held=True)
    limit = max(got_through, SLOWEST)
    return replace(
        state,
        rate=BACK_TO * limit,
        limit=limit,
        held=last.refused >= NEARLY_ALL * last.sent,
        calm=0.0,
        # Who has seen less than a minute does not know yet what a minute's limit is, and soon looks again.
        patience=max(SOONEST, min(MINUTE, sum(tick.seconds for tick in state.history))),
    )


def _let_go(state: PaceState, fresh: list[Tick], now: float) -> PaceState:
    """The end of a hold, once probes get through. Those of the last tick may still be refused."""
    *before, last = fresh
    probes = _last(before, seconds=2.0, sent=3)
    sent = _sum(probes, "sent")
    if sent < 3 or _sum(probes, "limited") + last.limited > MOST * sent:
        return state
    return replace(state, held=False, decreased=now)


def _grow(state: PaceState, tick: Tick) -> PaceState:
    if state.rate is None or state.limit is None:
        return state
    noise, calm = state.noise, state.calm
    if state.rate <= state.limit:
        noise = min(CHANCE, noise + (tick.limited - noise * tick.sent) / max(tick.sent, NOISE_OVER))
    if _used(state, tick):
        calm += tick.seconds
    rate = state.limit * (BACK_TO + (1 - BACK_TO) * (calm / state.patience) ** 4)
    return replace(state, rate=rate, calm=calm, noise=noise)


def _ramp(state: PaceState, tick: Tick) -> dict[str, Any]:
    """A slow start goes on while it is used, and goes back while it is not: an idle quota is a cold one."""
    if state.ramp is None or state.held:
        return {}
    if _used(state, tick):
        return {"ramp": state.ramp * 2 ** (tick.seconds / DOUBLING)}
    return {"ramp": max(FIRST_RAMP, state.ramp * 2 ** (-tick.seconds / DOUBLING))}


def _window(state: PaceState, tally: Tally, now: float) -> dict[str, Any]:
    """Refused as one too many: as many as there was room for. Else one more for every window of answers."""
    if tally.room is not None:
        room = tally.room if state.window is None else min(tally.room, 0.9 * state.window)
        return {"window": max(1.0, room), "cut": now}
    if state.window is not None:
        return {"window": state.window + tally.answered / state.window}
    return {}


def _used(state: PaceState, tick: Tick) -> bool:
    """Whether so many calls went out that the pace may have held some back."""
    return state.pace is not None and tick.sent >= 0.5 * state.pace * tick.seconds


def _last(ticks: list[Tick], *, seconds: float, sent: int) -> list[Tick]:
    """The shortest end of `ticks` that is so long and has so many calls."""
    end: list[Tick] = []
    for tick in reversed(ticks):
        if seconds <= 0 and sent <= 0:
            break
        end.append(tick)
        seconds, sent = seconds - tick.seconds, sent - tick.sent
    return end


def _got_through(ticks: list[Tick]) -> float:
    """Calls a second."""
    return (_sum(ticks, "sent") - _sum(ticks, "refused")) / sum(tick.seconds for tick in ticks)


def _a_minute(history: Iterable[Tick]) -> float:
    """Calls a second that got through in the last minute."""
    return sum(tick.sent - tick.refused for tick in history) / MINUTE


def _sum(ticks: Iterable[Tick], name: str) -> int:
    return sum(getattr(tick, name) for tick in ticks)


def _a_second(limit: float | None) -> float | None:
    return None if limit is None else MARGIN * limit / MINUTE


def _least(*rates: float | None) -> float | None:
    return min((rate for rate in rates if rate is not None), default=None)
