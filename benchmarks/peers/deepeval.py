"""deepeval: a GEval metric a row under `evaluate`, errors ignored as for large runs; the mean of the metrics.

The steps are given, so that no call goes into making them up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, average, criterion, report


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    if job.timeout is not None:
        os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = str(job.timeout)
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import GEval
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase, SingleTurnParams

    model = GPTModel(model=MODEL, api_key="key", base_url=job.base_url)
    params = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]
    metrics = [
        GEval(name=f"R{n:02}", evaluation_params=params, evaluation_steps=[f"Check: {criterion(n)}"], model=model)
        for n in range(1, job.rows + 1)
    ]
    cases = [LLMTestCase(name=f"{n:04}", input=TASK, actual_output=report(n)) for n in range(job.rollouts)]

    async def run() -> list[Result]:
        # `evaluate` runs a loop of its own.
        import asyncio

        return await asyncio.to_thread(judged)

    def judged() -> list[Result]:
        found = evaluate(
            cases,
            metrics,
            async_config=AsyncConfig(max_concurrent=job.concurrency),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            error_config=ErrorConfig(ignore_errors=True),
            cache_config=CacheConfig(write_cache=False),
        )
        return [_result(case) for case in sorted(found.test_results, key=lambda case: case.name)]

    return run


def _result(case: Any) -> Result:
    scores = [metric.score for metric in case.metrics_data]
    failed = [metric.error for metric in case.metrics_data if metric.score is None]
    if failed:
        return Result(flag=f"{len(failed)} of {len(scores)} metrics: {failed[0]}")
    return Result(average(scores))


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {"content": json.dumps({"reason": "Stated.", "score": 10 if verdicts[0].met else 0})}
