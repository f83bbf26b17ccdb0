from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from rubric_env.engine import Backoff, Breaker, CallEvent, Case, Journal, JudgeEngine
from rubric_env.judges import Judge, make_judge, resolve_credentials
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import Outcome
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission
from tests.servers.endpoint import Endpoint

REPLY = "The profit rose by 12 % in 2024.\n\nIt fell in 2023, because the plant in Lyon was closed."


def rows(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"R{n:02}", "description": f"states fact {n}", "weight": 1, **fields} for n in range(1, count + 1)]


class Judging:
    """Engines that talk to the scripted endpoint, with waits a hundred times shorter, and the events of their calls."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.events: list[CallEvent] = []
        self._engines: list[JudgeEngine] = []

    def engine(
        self,
        *,
        breaker: Breaker | None = None,
        judge: Judge | None = None,
        journal_in: Journal | None = None,
        **settings: Any,
    ) -> JudgeEngine:
        chosen = JudgeSettings(model="scripted", **{"max_consecutive_failures": 0, "per_timeout": 60.0, **settings})
        credentials = resolve_credentials("key", self.endpoint.base_url, environ={})
        engine = JudgeEngine(
            chosen,
            judge or make_judge(chosen, credentials),
            journal=journal_in,
            breaker=breaker,
            backoff=Backoff(chosen.retry_backoff_max, 0.01),
        )
        engine.on_call = self.events.append
        self._engines.append(engine)
        return engine

    async def __call__(self, rubric: Sequence[Mapping[str, Any]], reply: str = REPLY, **settings: Any) -> Outcome:
        return await self.engine(**settings).judge(case(rubric, reply))

    async def close(self) -> None:
        for engine in self._engines:
            await engine.aclose()

    def asked(self) -> list[tuple[str, ...]]:
        return [call.ids for call in self.endpoint.calls]


def case(rubric: Sequence[Mapping[str, Any]], reply: str = REPLY, **fields: Any) -> Case:
    texts = {"task": "Report on the profit.", "instruction": "Judge strictly."}
    return Case(RubricSpec.parse(list(rubric)), Submission(reply=reply), **{**texts, **fields})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def faults(outcome: Outcome) -> dict[str, str]:
    assert outcome.judgement is not None
    return {row: str(fault.kind) for row, fault in outcome.judgement.faults.items()}


def detail(outcome: Outcome, row: str) -> str:
    assert outcome.judgement is not None
    return outcome.judgement.faults[row].detail


@pytest.fixture
async def judging(endpoint: Endpoint) -> AsyncIterator[Judging]:
    judging = Judging(endpoint)
    yield judging
    await judging.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "the engine left tasks behind"
