"""harbor-rewardkit: a judge.toml a rollout (batched, the default) and `rewardkit.run`, 16 at a time in one process.

As a Harbor verifier it is a process a trial, which costs its import (litellm) each time.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from peers.job import TASK, Job, Result, Verdict, criterion, report

MODEL = "gpt-5-mini"
"""It always names an effort, which its client refuses to send to a model that does not think."""


def setup(job: Job) -> Callable[[], Awaitable[list[Result]]]:
    import rewardkit

    root = Path(tempfile.mkdtemp())
    folders = [_instance(root / str(n), n, job) for n in range(job.rollouts)]

    def one(folder: Path) -> Result:
        try:
            scores = rewardkit.run(folder / "tests", workspace=folder / "app", output=folder / "reward.json")
        except Exception as error:
            inner = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
            return Result(error=f"{type(inner).__name__}: {inner}"[:300])
        details = json.loads((folder / "reward-details.json").read_text("utf-8"))
        return Result(next(iter(scores.values())), flag="timed out" if '"error"' in json.dumps(details) else "")

    async def run() -> list[Result]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(job.concurrency) as threads:
            return await asyncio.gather(*(loop.run_in_executor(threads, one, folder) for folder in folders))

    return run


def _instance(folder: Path, number: int, job: Job) -> Path:
    (folder / "tests").mkdir(parents=True)
    (folder / "app").mkdir()
    delivered = folder / "app" / "report.md"
    delivered.write_text(report(number), "utf-8")
    lines = ["[judge]", f'judge = "openai/{MODEL}"', f"files = [{json.dumps(str(delivered))}]"]
    if job.timeout is not None:
        lines.append(f"timeout = {int(job.timeout)}")
    for n in range(1, job.rows + 1):
        lines += ["[[criterion]]", f'name = "R{n:02}"', f"description = {json.dumps(criterion(n))}"]
    (folder / "tests" / "judge.toml").write_text("\n".join(lines), "utf-8")
    (folder / "tests" / "task.txt").write_text(TASK, "utf-8")
    return folder


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    found = {f"R{v.row:02}": {"score": "yes" if v.met else "no", "reasoning": "Stated."} for v in verdicts}
    return {"content": json.dumps(found)}
