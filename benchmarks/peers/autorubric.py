"""autorubric: CriterionGrader under `evaluate`; a call a row (its default), or a call a rollout with mode `item`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, criterion, report


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    from autorubric import LLMConfig, Rubric, RubricDataset
    from autorubric.eval import evaluate
    from autorubric.graders import CriterionGrader

    rows = [{"name": f"R{n:02}", "weight": 1.0, "requirement": criterion(n)} for n in range(1, job.rows + 1)]
    bounds: dict[str, Any] = {} if job.timeout is None else {"timeout": job.timeout}

    async def run() -> list[Result]:
        config = LLMConfig(
            model=f"openai/{MODEL}",
            api_base=job.base_url,
            api_key="key",
            max_parallel_requests=job.concurrency,
            **bounds,
        )
        calls = "per_item" if job.mode == "item" else "per_criterion"
        grader = CriterionGrader(judge_model_config=config, llm_calls=calls)
        dataset = RubricDataset(prompt=TASK, rubric=Rubric.from_dict(rows), name="survey")
        for n in range(job.rollouts):
            dataset.add_item(submission=report(n), description=f"rollout {n}")
        with tempfile.TemporaryDirectory() as folder:
            found = await evaluate(dataset, grader, show_progress=False, experiments_dir=folder)
        return [_result(item) for item in sorted(found.item_results, key=lambda item: item.item_idx)]

    return run


def _result(item: Any) -> Result:
    unsure = item.report.cannot_assess_count
    if item.error and item.report.score is not None:
        return Result(error=item.error)
    return Result(item.report.score, flag=item.error or (f"{unsure} cannot be assessed" if unsure else ""))


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    found = [{"criterion_status": "MET" if verdict.met else "UNMET", "explanation": "Stated."} for verdict in verdicts]
    if len(found) == 1:
        return {"content": json.dumps(found[0])}
    ids = (f"c{verdict.row - 1}" for verdict in verdicts)
    judgments = [
        {"criterion_id": name, "selected_option": None, **entry} for name, entry in zip(ids, found, strict=True)
    ]
    return {"content": json.dumps({"judgments": judgments})}
