"""The offline judge in this process: no key, no network, no model. A wiring aid, and it says so (SPEC 11)."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from rubric_env.judges.protocol import CallFault, Prompt, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage


class LocalJudge:
    """Compares words and numbers by the rule of `rubric_env.local.lexical`. Spends no tokens."""

    model = "local-lexical"
    identity = "local lexical"

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault:
        """Judge one block in a worker thread."""
        start = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                text = await asyncio.to_thread(_answer, prompt)
        except TimeoutError:
            fault = Fault(FaultKind.TIMEOUT, f"no answer within {timeout:g} s")
            return CallFault(fault, Usage(calls=1), time.monotonic() - start)
        return Reply(text, Usage(calls=1), time.monotonic() - start, mode="local")

    async def aclose(self) -> None:
        """Nothing is held open."""


def _answer(prompt: Prompt) -> str:
    from rubric_env.local.lexical import judge_row
    from rubric_env.local.passages import read_question

    question = read_question(f"{prompt.shared}\n{prompt.rows}")
    assert question is not None, "a judge prompt has rows"
    verdicts: list[dict[str, Any]] = []
    for row in question.rows:
        found = judge_row(row, question.evidence)
        verdict = {"id": row["id"], "reason": found.reason, "evidence": found.evidence, "hit": found.hit}
        verdicts.append(verdict if found.level is None else {**verdict, "level": found.level})
    return json.dumps({"verdicts": verdicts}, ensure_ascii=False)
