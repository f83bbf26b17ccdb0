"""How often a question is asked, and how long to wait in between (SPEC 7)."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from rubric_env.judges.protocol import CallFault, Reply
from rubric_env.scoring.faults import FATAL_FAULTS, FaultKind
from rubric_env.settings import JudgeSettings

FINAL_FAULTS = FATAL_FAULTS | {FaultKind.BREAKER_OPEN}
"""Any further question would fail the same way."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries; `unit` scales all of them, so that tests need not sleep."""

    longest: float = 20.0
    unit: float = 1.0

    def after_failure(self) -> float:
        """1 s after a time-out and the rest."""
        return self.unit

    def after_rate_limit(self, n: int, named: float | None = None) -> float:
        """What the endpoint `named`, else uniform(1, min(longest, 2·3^(n-1))), after the n-th rate limit in a row.

        An endpoint that goes on naming waits of nearly nothing is soon asked once a second.
        """
        growth = 3.0 ** min(n - 1, 30)
        if named is not None:
            return max(named, min(1.0, 0.05 * growth) * self.unit)
        cap = min(self.longest, 2.0 * growth)
        return random.uniform(min(1.0, cap), cap) * self.unit


class Tries:
    """The tries of one question: `max_tries` and two full calls' worth of time in calls; a rate limit is no try."""

    def __init__(self, settings: JudgeSettings, backoff: Backoff, deadline: float) -> None:
        self.out_of_time = False
        """The endpoint would have had us wait beyond the deadline."""
        self._settings = settings
        self._backoff = backoff
        self._deadline = deadline
        self._budget = settings.block_budget
        self._made = 0
        self._limited = 0

    @property
    def timeout(self) -> float:
        """Seconds that the next call may take."""
        return min(self._settings.per_timeout, self._budget)

    async def again(self, answer: Reply | CallFault) -> bool:
        """Book a call that left the question open. True after the wait for the next, False when there is none.

        Another endpoint is asked at once; one that names a wait is waited for.
        """
        self._budget -= answer.seconds
        fault = answer.fault if isinstance(answer, CallFault) else None
        named = answer.retry_after if isinstance(answer, CallFault) else None
        if fault is not None and fault.kind is FaultKind.RATE_LIMIT:
            self._limited += 1
            wait = self._backoff.after_rate_limit(self._limited, named)
        else:
            self._limited = 0
            self._made += 1
            wait = max(self._backoff.after_failure(), named or 0.0)
        if isinstance(answer, CallFault) and answer.elsewhere:
            wait = 0.0
        elif fault is not None and fault.kind in FINAL_FAULTS:
            return False
        asked_to_wait = self._limited or named is not None
        self.out_of_time = bool(asked_to_wait) and asyncio.get_running_loop().time() + wait >= self._deadline
        # Two full time-outs use the budget up, whatever the clock's last digit says.
        spent = self._made >= self._settings.max_tries or self._budget < self._settings.per_timeout / 100
        if spent or self.out_of_time:
            return False
        await asyncio.sleep(wait)
        return True
