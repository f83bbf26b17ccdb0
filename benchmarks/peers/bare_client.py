"""The floor: our prompts, made beforehand, through AsyncOpenAI and a semaphore; the answers are read as bare JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from peers.job import MODEL, TASK, Job, Result, report
from peers.ours import ROWS_A_CALL, message, rubric

__all__ = ["ROWS_A_CALL", "message", "setup"]


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    import openai

    from rubric_env.submission import Submission

    bodies = [request_bodies(Submission(reply=report(n)), job.rows) for n in range(job.rollouts)]

    async def run() -> list[Result]:
        free = asyncio.Semaphore(job.concurrency)
        client: Any = openai.AsyncOpenAI(api_key="key", base_url=job.base_url, max_retries=0)

        async def call(body: dict[str, Any]) -> Any:
            async with free:
                reply = await client.chat.completions.create(model=MODEL, **body)
            return json.loads(reply.choices[0].message.content)["verdicts"]

        async def rollout(blocks: list[dict[str, Any]]) -> Result:
            found = [verdict for block in await asyncio.gather(*map(call, blocks)) for verdict in block]
            return Result(sum(verdict["hit"] for verdict in found) / job.rows)

        async with client:
            return await asyncio.gather(*map(rollout, bodies))

    return run


def request_bodies(submission: Any, rows: int) -> list[dict[str, Any]]:
    """The requests that the engine makes for a rollout."""
    from rubric_env.engine.prompt import Brief
    from rubric_env.evidence import build_pack
    from rubric_env.rubric import RubricSpec

    spec = RubricSpec.parse(rubric(rows))
    pack = build_pack(submission, budget_tokens=100_000)
    brief = Brief.of(spec, pack, "0" * 32, instruction="Judge each row.", task=TASK, reference="")
    bodies = []
    for start in range(0, rows, ROWS_A_CALL):
        prompt = brief.prompt(spec.ids[start : start + ROWS_A_CALL])
        schema = {"name": "verdicts", "strict": True, "schema": prompt.schema}
        question = f"{prompt.shared}\n{prompt.rows}\n{prompt.contract_json}"
        bodies.append(
            {
                "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": question}],
                "response_format": {"type": "json_schema", "json_schema": schema},
            }
        )
    return bodies
