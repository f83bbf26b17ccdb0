"""py-openjudge: one LLMGrader a row, GradingRunner(max_concurrency), WeightedSumAggregator."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, criterion, report

TEMPLATE = """
Does the answer meet the criterion?
Criterion: {rubric}
Task: {{query}}
Answer: {{response}}
Return JSON with "reason" and "score": 1 when it meets it, else 0.
"""


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    from openjudge.graders.llm_grader import LLMGrader
    from openjudge.models.openai_chat_model import OpenAIChatModel
    from openjudge.runner.aggregator.weighted_sum_aggregator import WeightedSumAggregator
    from openjudge.runner.grading_runner import GradingRunner

    async def run() -> list[Result]:
        model = OpenAIChatModel(model=MODEL, api_key="key", base_url=job.base_url, timeout=job.timeout)
        graders = {
            f"R{n:02}": LLMGrader(model=model, name=f"R{n:02}", template=TEMPLATE.format(rubric=criterion(n)))
            for n in range(1, job.rows + 1)
        }
        runner = GradingRunner(
            graders,
            max_concurrency=job.concurrency,
            aggregators=WeightedSumAggregator("total", dict.fromkeys(graders, 1.0)),
            show_progress=False,
        )
        found = await runner.arun([{"query": TASK, "response": report(n)} for n in range(job.rollouts)])
        return [_result(total) for total in found["total"]]

    return run


def _result(total: Any) -> Result:
    """The score is all that a caller sees; an aggregate says in its prose alone which graders failed."""
    return Result(score=total.score) if hasattr(total, "score") else Result(error=total.error)


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {"content": json.dumps({"reason": "Stated.", "score": float(verdicts[0].met), "metadata": {}})}
