"""inspect-ai: a Task whose solver hands in the report, a `model_graded_qa` scorer a row; the mean of the scorers."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, average, criterion, report

TEMPLATE = """
You are assessing a submitted answer on a given task based on a criterion.
[Task]: {{question}}
[Submission]: {{answer}}
[Criterion]: {criterion}
Does the submission meet the criterion?
{{instructions}}
"""


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    from inspect_ai import Task, eval_async
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_ai.scorer import model_graded_qa
    from inspect_ai.solver import solver

    @solver  # type: ignore[untyped-decorator]
    def hand_in() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.output.completion = report(int(state.sample_id))
            return state

        return solve

    async def run() -> list[Result]:
        bounds: dict[str, Any] = {} if job.timeout is None else {"attempt_timeout": int(job.timeout), "max_retries": 3}
        config = GenerateConfig(max_connections=job.concurrency, **bounds)
        grader = get_model(f"openai/{MODEL}", base_url=job.base_url, api_key="key", config=config)
        scorers = [
            model_graded_qa(template=TEMPLATE.format(criterion=criterion(n)), model=grader)
            for n in range(1, job.rows + 1)
        ]
        samples = [Sample(id=str(n), input=TASK, target="-") for n in range(job.rollouts)]
        with tempfile.TemporaryDirectory() as folder:
            logs = await eval_async(
                Task(dataset=samples, solver=hand_in(), scorer=scorers),
                model=grader,
                log_dir=folder,
                fail_on_error=False,
                max_samples=job.rollouts,
            )
            samples = sorted(logs[0].samples, key=lambda sample: int(sample.id))  # read when asked for
            return [_result(sample) for sample in samples]

    return run


def _result(sample: Any) -> Result:
    if sample.error is not None:
        return Result(error=sample.error.message[:300])
    values = [score.value for score in sample.scores.values()]
    graded = [value for value in values if value in ("C", "I")]
    flag = f"{len(values) - len(graded)} scores are NaN" if len(graded) < len(values) else ""
    return Result(average([value == "C" for value in graded]) if graded else None, flag=flag)


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {"content": f"The figure is there.\n\nGRADE: {'C' if verdicts[0].met else 'I'}"}
