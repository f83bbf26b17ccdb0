"""Several endpoints as one judge: work by weight, a rollout stays where its prefix is cached, failures move on."""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rubric_env.judges.protocol import CallFault, Judge, Prompt, Reply
from rubric_env.scoring.faults import ENDPOINT_FAULTS, FATAL_FAULTS, SUBMISSION_FAULTS, FaultKind

A = TypeVar("A", Reply, CallFault, Reply | CallFault)
Complete = Callable[[Sequence[Mapping[str, Any]]], Awaitable[Reply | CallFault]]

MENDABLE = ENDPOINT_FAULTS | FATAL_FAULTS | {FaultKind.RATE_LIMIT}
"""Faults of one endpoint, which another may not have."""
ANSWERS = SUBMISSION_FAULTS | {FaultKind.BAD_REQUEST}
"""Faults that show an endpoint at work. All others are not of the endpoint."""

FAILURES = 2
"""Failures in a row that set a member aside when it answered nothing within the last `QUIET` seconds either."""
QUIET = 1.0
MANY_FAILURES = 5
"""Failures in a row that do so at once: where one call in ten fails by itself, one in 100,000 sees them."""

DOWN = (10.0, 120.0)
"""Seconds aside after failures: at first, and at most. Doubled each time that the first call afterwards fails too."""
LIMITED = (1.0, 30.0)
"""The same after a rate limit; a longer wait that the endpoint names counts."""
REFUSED = 60.0
"""Seconds aside after a fault that asking again does not mend: key, quota, model."""
LONGEST = 600.0
"""However long a wait an endpoint names: a call that finds out costs little."""
TRIAL = 30.0
"""Seconds for which others stay away while one rollout tries a member that was down."""


class JudgePool:
    """Judges that stand in for each other; a judge itself. Serves any number of event loops and threads.

    `pick` gives all blocks of a rollout the same member, so that its prefix cache works, as long as that member is
    well; `noted` learns from each answer. A member that fails is set aside for a while, and one rollout tries it
    before others follow; after a rate limit they all return when it is over. With a single member both do nothing.
    Raises ValueError without members, or for a weight that is no number above 0.
    """

    def __init__(self, members: Sequence[tuple[Judge, float]], *, clock: Callable[[], float] = time.monotonic) -> None:
        if not members:
            raise ValueError("a pool needs at least one judge")
        if bad := [weight for _, weight in members if not 0 < weight < math.inf]:
            raise ValueError(f"weight {bad[0]}: the weight of a judge is a number above 0")
        equals: Counter[str] = Counter()
        self._members: list[_Member] = []
        for judge, weight in members:
            equals[judge.identity] += 1
            self._members.append(_Member(judge, weight, f"{judge.identity} {equals[judge.identity]}".encode()))
        self._by_judge = {id(member.judge): member for member in self._members}
        self._clock = clock
        self._lock = threading.Lock()
        self.model = " + ".join(sorted({judge.model for judge, _ in members}))
        self.identity = " + ".join(sorted(equals))
        """Of all members, in any order. Several keys of one endpoint are one: they give the same answers."""

    @classmethod
    def of(cls, judge: Judge) -> JudgePool:
        """The judge itself when it is a pool, else a pool of one."""
        return judge if isinstance(judge, JudgePool) else cls([(judge, 1.0)])

    def pick(self, prompt: Prompt) -> Judge:
        """Whom to ask now. When nobody is well: who may be asked again first, and least of all one without a key."""
        if len(self._members) == 1:
            return self._members[0].judge
        return self._pick(prompt.shared, self._members).judge

    def staying(self, judge: Judge, prompt: Prompt) -> Callable[[], bool] | None:
        """Tells a call that waits for its turn whether to go on waiting for the picked `judge`: not when it was set
        aside and another is well. None: always."""
        if len(self._members) == 1:
            return None
        member, rollout = self._by_judge[id(judge)], _rollout(prompt.shared)

        def stays() -> bool:
            now = self._clock()
            set_aside = member.until > now and member.trial != rollout
            return not (set_aside and any(other.until <= now for other in self._members))

        return stays

    def noted(self, judge: Judge, answer: A) -> A:
        """Learn from what the picked `judge` answered; a fault that another member may mend gets `elsewhere`."""
        if len(self._members) == 1:
            return answer
        member = self._by_judge[id(judge)]
        with self._lock:
            now = self._clock()
            member.learn(answer, now)
            if not isinstance(answer, CallFault) or answer.fault.kind not in MENDABLE or member.until <= now:
                return answer
            others = [other for other in self._members if other is not member]
            helps = any(other.until <= now or (member.refused and not other.refused) for other in others)
        return replace(answer, elsewhere=helps)

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault:
        """One question to one member."""
        judge = self.pick(prompt)
        return self.noted(judge, await judge.ask(prompt, timeout=timeout))

    @property
    def complete(self) -> Complete | None:
        """Answers a free question, as a member does; None when no member can."""
        able = [member for member in self._members if hasattr(member.judge, "complete")]
        if len(self._members) == 1 or not able:
            return getattr(self._members[0].judge, "complete", None)

        async def complete(messages: Sequence[Mapping[str, Any]]) -> Reply | CallFault:
            judge: Any = self._pick(repr(messages), able).judge
            answer: Reply | CallFault = await judge.complete(messages)
            return self.noted(judge, answer)

        return complete

    @property
    def quota(self) -> str:
        """That of the only member; several have quotas of their own, which `pick` tells."""
        judge = self._members[0].judge
        return str(getattr(judge, "quota", judge.identity)) if len(self._members) == 1 else self.identity

    @property
    def sees(self) -> bool:
        """Whether every member takes pictures."""
        return all(getattr(member.judge, "sees", False) for member in self._members)

    def client(self) -> Any:
        """The HTTP client of the member with the largest weight, for the running loop; the judge if it has none."""
        judge = max(self._members, key=lambda member: member.weight).judge
        client = getattr(judge, "client", None)
        return judge if client is None else client()

    async def aclose(self) -> None:
        """Close the connections that the members have in this loop."""
        await asyncio.gather(*(member.judge.aclose() for member in self._members))

    def _pick(self, shared: str, members: Sequence[_Member]) -> _Member:
        rollout = _rollout(shared)
        with self._lock:
            now = self._clock()
            for member in members:
                if member.trial == rollout and member.until > now:
                    return member
            ready = [member for member in members if member.until <= now]
            if not ready:
                return min(members, key=lambda member: (member.refused, member.until))
            best = max(ready, key=lambda member: member.score(rollout))
            if best.down:
                best.trial, best.until = rollout, now + TRIAL
            return best


def _rollout(shared: str) -> bytes:
    # A text remembers its own hash: all blocks of a rollout together read it once.
    return hash(shared).to_bytes(8, "big", signed=True)


@dataclass(slots=True, eq=False)
class _Member:
    """One judge and how it fares. Times are the pool's clock."""

    judge: Judge
    weight: float
    name: bytes
    until: float = 0.0
    """Set aside before this time."""
    since: float = -math.inf
    """When it was set aside last: calls that went out before tell nothing new."""
    down: bool = False
    """Has to be tried before it counts as well."""
    refused: bool = False
    """Would refuse any call: its key, quota or model is at fault."""
    trial: bytes | None = None
    """The rollout that tries it."""
    strikes: int = 0
    """Times set aside in a row."""
    failures: int = 0
    """Failed calls in a row."""
    answered: float = -math.inf

    def score(self, rollout: bytes) -> float:
        """Weighted rendezvous hashing: the highest score gets the rollout, and shares follow the weights."""
        drawn = int.from_bytes(hashlib.blake2b(rollout + self.name, digest_size=6).digest())
        return -self.weight / math.log((drawn + 0.5) / 2**48)

    def learn(self, answer: Reply | CallFault, now: float) -> None:
        """Take note of a call that ended now. One that timed out while nobody was answered needs no second."""
        if now - answer.seconds < self.since:
            return
        refusal = answer if isinstance(answer, CallFault) else None
        fault = refusal.fault if refusal else answer.cut if isinstance(answer, Reply) else None
        named = min(LONGEST, refusal.retry_after or 0.0) if refusal else 0.0
        kind = fault.kind if fault else None
        if kind in FATAL_FAULTS:
            self._set_aside(now, REFUSED)
            self.down = self.refused = True
        elif kind is FaultKind.RATE_LIMIT:
            self._alive(now)
            self._set_aside(now, max(named, self._growing(*LIMITED)))
        elif kind in ENDPOINT_FAULTS:
            self.failures += 1
            silent = self.failures >= FAILURES and now - self.answered >= QUIET
            hangs = kind is FaultKind.TIMEOUT and self.answered <= now - answer.seconds
            if self.down or silent or hangs or self.failures >= MANY_FAILURES:
                self._set_aside(now, max(named, self._growing(*DOWN)))
                self.down = True
        elif kind is None or kind in ANSWERS:
            self._alive(now)
            self.strikes = 0

    def _alive(self, now: float) -> None:
        if self.down:
            self.strikes = 0
        self.failures, self.answered = 0, now
        self.until, self.down, self.refused, self.trial = 0.0, False, False, None

    def _set_aside(self, now: float, seconds: float) -> None:
        self.since, self.until, self.trial = now, now + seconds, None
        self.strikes += 1

    def _growing(self, first: float, longest: float) -> float:
        return min(longest, first * 2.0 ** min(self.strikes, 10))
