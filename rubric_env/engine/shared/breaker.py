"""The breaker of a whole fleet: the states of `engine.outage`, kept in Redis."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import asdict

from rubric_env.engine.breaker import Breaker, Guard
from rubric_env.engine.outage import LARGEST_WINDOW, PROBES, RECOVERY, ROLLOUTS, Call, Ended, Outage
from rubric_env.engine.shared._link import Link, LinkDown, Links
from rubric_env.engine.shared._scripts import EXPIRE, keys, script
from rubric_env.scoring.faults import FaultKind

REPORT, SWAP = script("report"), script("swap")
PRESENT = 15.0
"""Seconds for which a process counts after it was heard of: one that was killed is not in flight any more."""
HELLO = 5.0
"""Seconds between the reports of a process with nothing new to say."""
FRESH = 0.25
"""A call goes out on news of at most that age, in seconds; so often is asked while calls wait."""
GATHER = 0.02
"""Seconds for which answers are gathered, to be reported together. A failure is reported at once."""
PROBE = 10.0
"""Seconds for which a probe is its sender's alone; renewed as long as it is out."""


class SharedBreaker(Breaker):
    """A Breaker that all processes with the same `scope` share; each its own while Redis is out of reach."""

    def __init__(
        self,
        links: Links,
        scope: str,
        smallest: int,
        *,
        probes: Sequence[float] = PROBES,
        recovery: float = RECOVERY,
    ) -> None:
        super().__init__(smallest, probes=probes, recovery=recovery)
        self.links = links
        self.scope = scope

    async def aclose(self) -> bool:
        """Wait until this loop's last reports are on their way. False: rollouts are judged here, and it stays open."""
        guard = self._guards.here()
        if guard.rollouts:
            return False
        self._guards.take()
        if isinstance(guard, SharedGuard):
            await guard.aclose()
        return True

    def _guard(self) -> Guard:
        return SharedGuard(self, self.links.here()) if self.rules.smallest else Guard(self)


class SharedGuard(Guard):
    """What a loop knows of the fleet's breaker. Its time is Redis's, estimated.

    `outage` is what was heard last. A change is proposed to Redis, which accepts it if it still knows the same; without
    Redis the guard goes on from there by itself.
    """

    def __init__(self, breaker: SharedBreaker, link: Link) -> None:
        super().__init__(breaker)
        self._link = link
        self._keys = keys("breaker", breaker.scope, "outage", "window", "calls", "rollouts")
        self._process = secrets.token_hex(6)
        self._names: dict[Hashable, str] = {}
        self._numbers = itertools.count()
        self._raw = ""
        """`outage`, as Redis has it."""
        self._finished: list[Call] = []
        self._heard = 0.0
        self._in_step = False
        """`outage` is what Redis said, and nothing was concluded without it since."""
        self._ticket = 0.0
        """Until when a probe may go out that this process has claimed."""
        self._probing = False
        self._asking = asyncio.Lock()
        self._news, self._urgent = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._reporter: asyncio.Task[None] | None = None

    def enter(self, rollout: Hashable) -> None:
        super().enter(rollout)
        self._names.setdefault(rollout, f"{self._process}:{next(self._numbers)}")
        self._tell()

    def leave(self, rollout: Hashable) -> None:
        super().leave(rollout)
        self._names.pop(rollout, None)
        self._tell()

    async def ready(self, rollout: Hashable) -> None:
        while True:
            async with self._asking:
                await self._refresh()
            await super().ready(rollout)
            if self.outage is None or self._link.down or await self._claim(rollout):
                return

    def admit(self, rollout: Hashable) -> Call | None:
        call = super().admit(rollout)
        if call is not None:
            self._tell()
        return call

    def finish(self, call: Call) -> None:
        self._probing = self._probing and not call.probe
        if self._link.down:
            self._in_step = False
            super().finish(call)
            return
        self.in_flight -= 1
        self._finished.append(call)
        self._tell(at_once=call.failed or call.probe)

    async def aclose(self) -> None:
        if self._reporter is not None:
            self._tell()
            await asyncio.wait([self._reporter], timeout=PRESENT)

    def _name(self, rollout: Hashable) -> Hashable:
        return self._names.get(rollout, self._process)

    def _take_probe(self, rollout: Hashable) -> bool:
        if self._link.down:
            self._in_step = False
            self._probing = super()._take_probe(rollout)
        else:
            self._probing = self._now() < self._ticket
        self._ticket = 0.0
        return self._probing

    async def _claim(self, rollout: Hashable) -> bool:
        """Whether this process may send the fleet's next probe."""
        async with self._asking:
            outage = self.outage
            if outage is None or not self._in_step or not outage.lets_out(self._name(rollout), self._now()):
                return False
            until = self._now() + PROBE
            try:
                claimed = await self._propose(outage.with_probe(until))
            except LinkDown:
                return False
            self._ticket = until if claimed else 0.0
            return claimed

    async def _refresh(self) -> None:
        fresh = self._in_step and self._loop.time() - self._heard <= FRESH
        if not fresh and not self._link.down:
            with suppress(LinkDown):
                await self._report()

    def _tell(self, *, at_once: bool = False) -> None:
        self._news.set()
        if at_once:
            self._urgent.set()
        reporter = self._reporter
        # A loop that ends cancels all its tasks: one that is made then would be left behind.
        if reporter is None or (reporter.done() and not reporter.cancelled() and not self._loop.is_closed()):
            self._reporter = self._loop.create_task(self._keep_reporting())

    async def _keep_reporting(self) -> None:
        """As long as there are rollouts: what happens here, and now and then that we are there."""
        while True:
            self._news.clear()
            self._urgent.clear()
            with suppress(LinkDown):
                await self._report()
            if not (self.rollouts or self._news.is_set()):
                return
            await _wait(self._news, HELLO if self.outage is None else FRESH)
            await _wait(self._urgent, GATHER)

    async def _report(self) -> None:
        """Say what is in flight and what ended, hear how the endpoint stands, and draw the conclusions."""
        finished, self._finished = self._finished, []
        ended = [counts for call in finished if (counts := call.counts) is not None]
        failed = any(call.kind is not None for call in ended)
        gone = {call.rollout for call in finished}.difference(self._names.values())
        said: list[str | float] = [self._process, self.in_flight, len(self._names), LARGEST_WINDOW, ROLLOUTS]
        said += [PRESENT, self._rules.largest, EXPIRE, int(failed)]
        for known in ended:
            said += [known.sent, _text(known)]
        try:
            now, raw, all_calls, all_rollouts, window = await self._link.ask(
                "EVAL", REPORT, len(self._keys), *self._keys, *said
            )
            self._heard = self._loop.time()
            self._offset = float(now) - self._heard
            self._adopt(raw)
            if self.outage is None and failed:
                last = [_ended(text, float(sent)) for text, sent in zip(window[::2], window[1::2], strict=True)]
                there = all_calls + len(finished), all_rollouts + len(gone)
                if (outage := self._rules.outage(last, *there, self._now())) is not None:
                    await self._propose(outage)
            for call in finished:
                await self._conclude(call)
            if self._probing and self.outage is not None and self.outage.probe_until < self._now() + PROBE / 2:
                await self._propose(self.outage.with_probe(self._now() + PROBE))
        except asyncio.CancelledError:
            self._finished[:0] = finished
            self._news.set()
            raise
        except LinkDown:
            self._in_step = False
            for call in finished:
                self._book(call, self.in_flight + len(finished))
            raise

    async def _conclude(self, call: Call) -> None:
        """What is left of the outage after `call`, whoever else changes it at the same time."""
        while self.outage is not None:
            after = self.outage.after(call, self._now(), self._rules)
            if after == self.outage or await self._propose(after):
                return

    async def _propose(self, outage: Outage | None) -> bool:
        """Whether Redis accepts the change. Otherwise what it knows is adopted."""
        new = "" if outage is None else _dumps(outage)
        raw = await self._link.ask("EVAL", SWAP, 2, *self._keys[:2], self._raw, new, EXPIRE)
        self._adopt(raw)
        return bool(raw == new)

    def _adopt(self, raw: str) -> None:
        self._raw, self._in_step = raw, True
        if not raw:
            self._ticket = 0.0
        self._set(_loads(raw) if raw else None)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _text(call: Ended) -> str:
    """Unique, because a process sends no two calls at the same time."""
    return f"{call.rollout} {call.kind or 'ok'} {call.sent!r}"


def _ended(text: str, sent: float) -> Ended:
    rollout, kind, _ = text.split()
    return Ended(sent, rollout, None if kind == "ok" else FaultKind(kind))


def _dumps(outage: Outage) -> str:
    return json.dumps({**asdict(outage), "witnesses": sorted(map(str, outage.witnesses))})


def _loads(text: str) -> Outage:
    data = json.loads(text)
    kinds, witnesses = map(FaultKind, data["kinds"]), frozenset(data["witnesses"])
    return Outage(**{**data, "kinds": tuple(kinds), "witnesses": witnesses})
