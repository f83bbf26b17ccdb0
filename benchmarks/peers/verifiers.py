"""verifiers v1: RubricJudge with `max_criteria` 4 on a trace whose last reply is the report."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, criterion, report

ROWS_A_CALL = 4


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    from verifiers.v1.judges.rubric import RubricJudge, RubricJudgeConfig
    from verifiers.v1.task import TaskData

    rows = [{"name": f"R{n:02}", "text": criterion(n)} for n in range(1, job.rows + 1)]
    path = Path(tempfile.mkdtemp(), "rubric.json")
    path.write_text(json.dumps({"criteria": rows}), "utf-8")
    config = RubricJudgeConfig(
        path=path,
        model=MODEL,
        base_url=job.base_url,
        api_key_var="OPENAI_API_KEY",
        max_criteria=ROWS_A_CALL,
        view="last_reply",
    )

    async def run() -> list[Result]:
        # What an environment bounds are rollouts, of so many calls each.
        free = asyncio.Semaphore(max(1, job.concurrency // -(-job.rows // ROWS_A_CALL)))

        async def one(number: int) -> Result:
            async with free:
                try:
                    return Result(await RubricJudge(config).score(TaskData(idx=number, prompt=TASK), trace(number)))
                except Exception as error:
                    return Result(error=f"{type(error).__name__}: {error}"[:300])

        return await asyncio.gather(*map(one, range(job.rollouts)))

    return run


def trace(number: int) -> Any:
    """A finished rollout whose agent replied with the report."""
    from verifiers.v1.trace import Trace

    return Trace.model_construct(
        root_reply=report(number), metrics={}, info={}, extra_usage=[], nodes=[], calls=[], rewards={}
    )


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    found = [{"name": f"R{v.row:02}", "reason": "Stated.", "verdict": "yes" if v.met else "no"} for v in verdicts]
    return {"content": json.dumps({"verdicts": found})}
