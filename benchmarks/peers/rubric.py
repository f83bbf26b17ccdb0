"""rubric: PerCriterionOneShotGrader with a generate function on the openai client, as its README has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, criterion, report


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    import openai
    from rubric import OneShotOutput, Rubric
    from rubric.autograders import PerCriterionOneShotGrader

    rows = [{"weight": 1.0, "requirement": criterion(n)} for n in range(1, job.rows + 1)]
    schema = {"name": "output", "schema": OneShotOutput.model_json_schema()}
    bounds: dict[str, Any] = {} if job.timeout is None else {"timeout": job.timeout}

    async def run() -> list[Result]:
        free = asyncio.Semaphore(job.concurrency)
        client: Any = openai.AsyncOpenAI(api_key="key", base_url=job.base_url, **bounds)

        async def generate(system_prompt: str, user_prompt: str, **_: Any) -> Any:
            async with free:
                reply = await client.chat.completions.create(
                    model=MODEL,
                    messages=[{"role": "system", "content": system_prompt}, {"role": "user", "content": user_prompt}],
                    response_format={"type": "json_schema", "json_schema": schema},
                )
            return OneShotOutput.model_validate_json(reply.choices[0].message.content or "{}")

        async def one(number: int) -> Result:
            grader = PerCriterionOneShotGrader(generate_fn=generate)
            try:
                found = await Rubric.from_dict(rows).grade(query=TASK, to_grade=report(number), autograder=grader)
            except Exception as error:
                return Result(error=f"{type(error).__name__}: {error}"[:300])
            return Result(found.score)

        async with client:
            return await asyncio.gather(*map(one, range(job.rollouts)))

    return run


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    found = [
        {"criterion_number": v.row, "criterion_status": "MET" if v.met else "UNMET", "explanation": "Stated."}
        for v in verdicts
    ]
    return {"content": json.dumps({"criteria_evaluations": found})}
