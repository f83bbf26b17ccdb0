"""This project: JudgeEngine on the reply, blocks of 4."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from peers.job import MODEL, TASK, Job, Result, Verdict, criterion, report

ROWS_A_CALL = 4


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    from rubric_env.engine import Case, JudgeEngine
    from rubric_env.judges import make_judge, resolve_credentials
    from rubric_env.rubric import RubricSpec
    from rubric_env.settings import JudgeSettings
    from rubric_env.submission import Submission

    bounds: dict[str, Any] = {"per_timeout": job.timeout, "deadline": job.deadline}
    given = {name: seconds for name, seconds in bounds.items() if seconds is not None}
    settings = JudgeSettings(model=MODEL, batch=ROWS_A_CALL, max_in_flight=job.concurrency, **given)
    judge = make_judge(settings, resolve_credentials("key", job.base_url, environ={}))
    spec = RubricSpec.parse(rubric(job.rows))

    async def run() -> list[Result]:
        engine = JudgeEngine(settings, judge)
        cases = [Case(spec, Submission(reply=report(n)), TASK, "Judge each row.") for n in range(job.rollouts)]
        outcomes = await asyncio.gather(*(engine.judge(case) for case in cases))
        await engine.aclose()
        return [Result(outcome.reward, flag=outcome.exit_reason) for outcome in outcomes]

    return run


def rubric(rows: int) -> list[dict[str, Any]]:
    return [{"id": f"R{n:02}", "description": criterion(n), "weight": 1} for n in range(1, rows + 1)]


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    reason = "The delivered report states this in its second section, with the figure that the row asks for."
    found = [
        {"id": f"R{v.row:02}", "reason": reason, "evidence": "model_response_text.txt#¶3", "hit": v.met}
        for v in verdicts
    ]
    return {"content": json.dumps({"verdicts": found}, ensure_ascii=False)}
