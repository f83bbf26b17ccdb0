"""Several endpoints as one judge: work by weight, a rollout stays where its prefix is cached, failures move on."""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rubric_env.judges.protocol import CallFault, Judge, Prompt, Reply
from rubric_env.scoring.faults import ENDPOINT_FAULTS, FATAL_FAULTS, FaultKind

Answer = TypeVar("Answer", bound=Reply | CallFault)
Complete = Callable[[Sequence[Mapping[str, Any]]], Awaitable[Reply | CallFault]]

FAILURES = 2
"""Failures in a row that set a member aside when nothing was answered within `QUIET` seconds: it is dead."""
QUIET = 1.0
MANY_FAILURES = 5
"""Failures in a row that do so at once: where one call in ten fails by itself, that happens once in 100,000."""

DOWN = (10.0, 120.0)
"""Seconds aside after failures; doubled each time that the first call afterwards fails, up to the second figure."""
LIMITED = (1.0, 30.0)
"""Least seconds aside after a rate limit, doubled likewise; a longer wait that the endpoint names counts."""
REFUSED = 60.0
"""Seconds aside after a fault that asking again does not mend: key, quota, model."""
LONGEST = 600.0
"""However long a wait an endpoint names: a call that finds out costs little."""
TRIAL = 30.0
"""Seconds for which others stay away while one call tries a member that was down."""


class JudgePool:
    """Judges that stand in for each other. Serves any number of event loops and threads.

    `pick` gives all blocks of a rollout the same member, so that its prefix cache works, as long as that member is
    well; `noted` learns from each answer. A member that fails is set aside for a while, then one call tries it before
    others follow; after a rate limit all return at the time that was named. With a single member both do nothing.
    Raises ValueError without members or for a weight that is not a positive number.
    """

    def __init__(self, members: Sequence[tuple[Judge, float]], *, clock: Callable[[], float] = time.monotonic) -> None:
        if not members:
            raise ValueError("a pool needs at least one judge")
        if bad := [weight for _, weight in members if not (0 < weight < math.inf)]:
            raise ValueError(f"weight {bad[0]}: a judge's weight is a number above 0")
        equals: Counter[str] = Counter()
        self._members: list[_Member] = []
        for judge, weight in members:
            equals[judge.identity] += 1
            self._members.append(_Member(judge, weight, f"{judge.identity} #{equals[judge.identity]}".encode()))
        self._by_judge = {id(member.judge): member for member in self._members}
        self._clock = clock
        self._lock = threading.Lock()
        self.model = " + ".join(sorted({judge.model for judge, _ in members}))
        self.identity = " + ".join(sorted(equals))
        """Several keys of one endpoint are one identity: the same question has the same answer there."""

    @classmethod
    def of(cls, judge: Judge) -> JudgePool:
        """The judge itself when it is a pool, else a pool of one."""
        return judge if isinstance(judge, JudgePool) else cls([(judge, 1.0)])

    def __len__(self) -> int:
        return len(self._members)

    def pick(self, prompt: Prompt) -> Judge:
        """Whom to ask now. When nobody is well: who is the first to be asked again, rather one whose key is taken."""
        if len(self._members) == 1:
            return self._members[0].judge
        return self._pick(prompt.shared.encode("utf-8", "replace"), self._members).judge

    def noted(self, judge: Judge, answer: Answer) -> Answer:
        """Learn from what `judge`, as picked, answered; a fault that another member may mend gets `elsewhere`."""
        if len(self._members) == 1:
            return answer
        fault = answer.fault if isinstance(answer, CallFault) else answer.cut
        member = self._by_judge[id(judge)]
        with self._lock:
            now = self._clock()
            if fault is None or not self._aside(member, fault.kind, answer, now):
                return answer
            others = [other for other in self._members if other is not member]
            helps = any(other.until <= now or (member.refused and not other.refused) for other in others)
        return replace(answer, elsewhere=True) if helps and isinstance(answer, CallFault) else answer
