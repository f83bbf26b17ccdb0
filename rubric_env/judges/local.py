"""The offline judge in this process: no key, no network, no model. A wiring aid, and it says so (SPEC 11)."""

from __future__ import annotations

import asyncio
import time

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
    from rubric_env.local.lexical import answer
    from rubric_env.local.passages import read_question

    question = read_question(f"{prompt.shared}\n{prompt.rows}")
    assert question is not None, "a judge prompt has rows"
    return answer(question)
