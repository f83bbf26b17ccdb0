"""pydantic-evals: an LLMJudge a row, `Dataset.evaluate(max_concurrency)`, which bounds cases; the share that passes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, criterion, report


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.settings import ModelSettings
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import LLMJudge

    async def run() -> list[Result]:
        model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=job.base_url, api_key="key"))
        settings = None if job.timeout is None else ModelSettings(timeout=job.timeout)
        judges = [
            LLMJudge(
                rubric=criterion(n),
                model=model,
                model_settings=settings,
                include_input=True,
                assertion={"evaluation_name": f"R{n:02}", "include_reason": True},
            )
            for n in range(1, job.rows + 1)
        ]
        cases: list[Any] = [Case(name=f"{n:04}", inputs=f"{TASK} ({n})") for n in range(job.rollouts)]
        dataset: Any = Dataset(name="survey", cases=cases, evaluators=judges)

        async def task(inputs: str) -> str:
            return report(int(inputs.rpartition("(")[2][:-1]))

        found = await dataset.evaluate(task, max_concurrency=job.concurrency, progress=False)
        return [_result(case) for case in sorted(found.cases, key=lambda case: case.name)]

    return run


def _result(case: Any) -> Result:
    passed = [assertion.value for assertion in case.assertions.values()]
    failures = case.evaluator_failures
    flag = f"{len(failures)} evaluators failed: {failures[0].error_message}"[:300] if failures else ""
    return Result(sum(passed) / len(passed) if passed else None, flag=flag)


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    met = verdicts[0].met
    arguments = json.dumps({"reason": "Stated.", "pass": met, "score": float(met)})
    call = {"id": "call_1", "type": "function", "function": {"name": "final_result", "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}
