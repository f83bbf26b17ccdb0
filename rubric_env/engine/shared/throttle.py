"""Limits that processes and machines share: what `engine.pace` decides, kept in Redis."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rubric_env.engine.pace import AHEAD, BURST, POLL, TICK, Limits, LocalThrottle, PaceState, Permit, Tally, adjust
from rubric_env.engine.shared._link import Link, LinkDown, Links
from rubric_env.engine.shared._scripts import EXPIRE, keys, script
from rubric_env.judges.protocol import CallFault, Reply

RESERVE, SETTLE, ADJUST = script("reserve"), script("settle"), script("adjust")
OVERTIME = 30.0
"""Seconds after its longest time until a call that nobody reported is no longer in flight."""
REFRESH = 5.0
"""Seconds after which a process asks anew what goes for a quota, so that it can go on alone."""
CROWD = 0.05
"""Seconds between the questions of all processes together whether there is room for one more call."""

_COUNTS = frozenset({"sent", "answered", "refused", "limited", "room"})
_ANY = PaceState(at=0.0, decreased=-math.inf, cut=-math.inf)
"""Everything in an answer is noted; Redis knows whether its call was sent after the last decrease or cut."""


@dataclass(slots=True)
class _Known:
    """What this process heard of a quota, and when."""

    state: PaceState
    processes: int
    heard: float


class RedisThrottle:
    """A throttle whose state is in Redis. Its time is Redis's. One object serves all loops of a process.

    A call that nobody reports, because its process was killed, counts as in flight for `longest_call` seconds and a
    little more. While Redis is out of reach each process goes on with its share of what was known last; the first that
    finds a Redis without memory tells it.
    """

    def __init__(self, links: Links, limits: Limits, longest_call: float, *, slow: bool = True) -> None:
        self._links = links
        self._limits = limits
        self._slow = slow
        self._lasts = longest_call + OVERTIME
        self._process = secrets.token_hex(6)
        self._numbers = itertools.count()
        self._offset = time.time() - time.monotonic()
        self._known: dict[str, _Known] = {}
        self._alone = LocalThrottle(limits, slow=slow, clock=self._now)
        self._left_alone: set[str] = set()

    @property
    def fallback(self) -> bool:
        """Redis is out of reach: this process limits itself."""
        return self._links.down

    def take(self, quota: str, tokens: int) -> Permit | None:
        if not self._links.here().down:
            return None
        self._go_on_alone(quota)
        return self._alone.take(quota, tokens)

    async def reserve(self, quota: str, tokens: int) -> Permit:
        if not self._links.here().down:
            try:
                return await self._reserve(self._links.here(), quota, tokens)
            except LinkDown:
                pass
        self._go_on_alone(quota)
        return await self._alone.reserve(quota, tokens)

    def settle(self, permit: Permit, answer: Reply | CallFault) -> None:
        if not permit.key:
            self._alone.settle(permit, self._scaled(permit.quota, answer))
            return
        tally = Tally()
        tally.note(answer, permit.at, 0, _ANY, 0.0)
        used = answer.usage.input_tokens
        self._end(permit, tally, tokens_back=permit.tokens - used if used else 0)

    def refund(self, permit: Permit) -> None:
        if permit.key:
            self._end(permit, Tally(sent=-1), tokens_back=permit.tokens)
        else:
            self._alone.refund(permit)

    async def _reserve(self, link: Link, quota: str, tokens: int) -> Permit:
        key, known = f"{self._process}:{next(self._numbers)}", self._known.get(quota)
        stale = known is None or self._now() - known.heard > REFRESH
        asked = (key, self._process, tokens, AHEAD, BURST, self._lasts, TICK, EXPIRE, int(stale))
        try:
            now, *answer = await self._run(link, quota, asked)
            while not answer:
                state = known.state if known is not None else PaceState.begin(self._limits, float(now), slow=self._slow)
                self._publish(link, quota, state, "")
                now, *answer = await self._run(link, quota, asked)
        except (asyncio.CancelledError, LinkDown):
            # It may have been given.
            self._end(Permit(quota, tokens, key=key), Tally(sent=-1), tokens_back=tokens)
            raise
        self._offset = float(now) - time.monotonic()
        self._left_alone.discard(quota)
        start, processes, heard, *tally = answer
        if heard:
            state = PaceState.from_json(json.loads(heard))
            if tally:
                before, state = state.at, self._adjust(state, tally[0], float(now))
                self._publish(link, quota, state, repr(before))
            known = self._known[quota] = _Known(state, processes, float(now))
        if known is not None:
            known.processes = processes
        if start not in ("later", "full"):
            return Permit(quota, tokens, float(start) - float(now), at=float(start), key=key)
        longest = min(POLL, CROWD * processes) if start == "full" else POLL
        return Permit(quota, tokens, random.uniform(longest / 2, longest), granted=False)

    async def _run(self, link: Link, quota: str, asked: Sequence[str | float]) -> list[Any]:
        names = keys("pace", quota, "state", "tally", "calls", "processes", "adjusting")
        answer: list[Any] = await link.ask("EVAL", RESERVE, len(names), *names, *asked)
        return answer

    def _adjust(self, state: PaceState, tally: Sequence[str], now: float) -> PaceState:
        """The tally as Redis has it: names and values in turn."""
        counted = dict(zip(tally[::2], map(float, tally[1::2]), strict=True))
        numbers: dict[str, Any] = {name: int(value) if name in _COUNTS else value for name, value in counted.items()}
        return adjust(replace(state, configured=self._limits), Tally(**numbers), now)

    def _publish(self, link: Link, quota: str, state: PaceState, before: str) -> None:
        """Say what goes from now on, unless somebody else has said so since `before`."""
        names = keys("pace", quota, "state", "adjusting")
        said: list[str | float] = ["state", json.dumps(state.to_json())]
        for name in ("at", "paused", "pace", "tokens", "window", "decreased", "cut"):
            value = getattr(state, name)
            said += [name, "" if value is None else value]
        link.tell("EVAL", ADJUST, len(names), *names, before, EXPIRE, *said)

    def _end(self, permit: Permit, said: Tally, *, tokens_back: float) -> None:
        names = keys("pace", permit.quota, "state", "tally", "calls")
        limits = [limit or "" for limit in (said.requests_per_minute, said.tokens_per_minute)]
        waits = (said.named_until, said.reset_until)
        counts = (said.sent, said.answered, said.refused, int(said.room is not None))
        what = (permit.key, permit.at, tokens_back, *waits, *counts, *limits, EXPIRE)
        self._links.here().tell("EVAL", SETTLE, len(names), *names, *what)

    def _go_on_alone(self, quota: str) -> None:
        """Begin where Redis left off."""
        known = self._known.get(quota)
        if known is not None and quota not in self._left_alone:
            self._left_alone.add(quota)
            self._alone.resume(quota, _part(known.state, known.processes))

    def _scaled(self, quota: str, answer: Reply | CallFault) -> Reply | CallFault:
        """Limits that the endpoint names are everybody's."""
        known = self._known.get(quota)
        if known is None or answer.hints is None:
            return answer
        requests, tokens = answer.hints.requests_per_minute, answer.hints.tokens_per_minute
        hints = replace(
            answer.hints,
            requests_per_minute=_divided(requests, known.processes),
            tokens_per_minute=_divided(tokens, known.processes),
        )
        return replace(answer, hints=hints)

    def _now(self) -> float:
        return time.monotonic() + self._offset


def _part(state: PaceState, processes: int) -> PaceState:
    """What of it goes for one of so many processes."""
    configured, named = (
        Limits(_divided(limits.requests_per_minute, processes), _divided(limits.tokens_per_minute, processes))
        for limits in (state.configured, state.named)
    )
    return replace(
        state,
        configured=configured,
        named=named,
        rate=_divided(state.rate, processes),
        limit=_divided(state.limit, processes),
        ramp=_divided(state.ramp, processes),
        window=None if state.window is None else max(1.0, state.window / processes),
        history=(),
    )


def _divided(number: float | None, by: int) -> float | None:
    return None if number is None else number / by
