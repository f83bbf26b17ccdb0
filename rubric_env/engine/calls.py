"""One judge call: in its turn, through the breaker, seen by the observer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from rubric_env.engine.breaker import Breaker, JudgeAborted
from rubric_env.engine.events import CallEvent, Question
from rubric_env.engine.limiter import Limiter, Seat, Turn
from rubric_env.engine.outage import Call
from rubric_env.judges.protocol import CallFault, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage

logger = logging.getLogger(__name__)


class Calls:
    """Makes the calls of all rollouts. `on_call` sees each as it ends; what it raises is logged and goes no further."""

    def __init__(self, limiter: Limiter, breaker: Breaker) -> None:
        self.breaker = breaker
        self.on_call: Callable[[CallEvent], None] | None = None
        self._limiter = limiter

    async def make(
        self,
        ask: Callable[[], Awaitable[Reply | CallFault]],
        seat: Seat,
        question: Question,
        *,
        queued: float | None = None,
        spend: Callable[[Usage], None] | None = None,
        stays: Callable[[], bool] | None = None,
    ) -> Reply | CallFault:
        """Ask when it is this rollout's turn, first with the breaker, then with the quota, then for a place.

        The quota learns from every answer. `spend` is told of the usage, of a cancelled call too. `queued` is when the
        question was ready; None: now. Raises Elsewhere once `stays` says no, as long as the turn has not come.

        `seconds` of the answer is the time in the call alone. The fault is `breaker_open` for an endpoint given up.
        """
        clock = asyncio.get_running_loop().time
        queued = clock() if queued is None else queued
        try:
            async with self._turn(seat, question, stays) as (call, turn):
                start, at = clock(), time.time()
                # What a call cost that nobody waited for is not known.
                unknown = Usage(calls=1, cost_usd=None)
                answer: Reply | CallFault = CallFault(Fault(FaultKind.CANCELLED), unknown)
                try:
                    answer = await _answer(ask())
                    call.report(_fault(answer))
                except asyncio.CancelledError:
                    if clock() >= seat.deadline:
                        answer = CallFault(Fault(FaultKind.DEADLINE), unknown)
                    raise
                finally:
                    turn.answer, end = answer, clock()
                    usage = answer.usage if answer.usage.calls else replace(answer.usage, calls=1)
                    if spend is not None:
                        spend(usage)
                    mode = answer.mode if isinstance(answer, Reply) else ""
                    self._show(CallEvent(question, queued, start, end, at, _fault(answer), usage, mode))
                return replace(answer, seconds=end - start)
        except JudgeAborted as error:
            return CallFault(Fault(FaultKind.BREAKER_OPEN, str(error)))

    @asynccontextmanager
    async def _turn(
        self, seat: Seat, question: Question, stays: Callable[[], bool] | None
    ) -> AsyncIterator[tuple[Call, Turn]]:
        """Holds a place, the quota's permit and the breaker's leave; waits with none of them. Raises JudgeAborted."""
        while True:
            await self.breaker.ready(seat)
            async with self._limiter.slot(seat, question.quota, question.tokens, stays) as turn:
                with self.breaker.call(seat) as call:
                    if call is not None:
                        yield call, turn
                        return

    def _show(self, event: CallEvent) -> None:
        if self.on_call is not None:
            try:
                self.on_call(event)
            except Exception:
                logger.exception("on_call raised")


async def _answer(asked: Awaitable[Reply | CallFault]) -> Reply | CallFault:
    """A judge must not raise, and must not answer with nothing; one that does has failed."""
    try:
        answer = await asked
    except Exception as error:
        logger.exception("the judge raised")
        return CallFault(Fault(FaultKind.INTERNAL, f"the judge raised {type(error).__name__}: {error}"))
    if isinstance(answer, Reply) and not answer.text.strip():
        return CallFault(Fault(FaultKind.EMPTY, "the judge answered with an empty text"), answer.usage)
    return answer


def _fault(answer: Reply | CallFault) -> Fault | None:
    return answer.fault if isinstance(answer, CallFault) else answer.cut
