"""A harness without a process: one question to the policy, whose answer says what files there are to be.

Each line `FILE name: text` of it makes a file, each `COPY from to` copies one of the runtime.
"""

from __future__ import annotations

import re
from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI

__all__ = ["LoopbackPolicy"]


class LoopbackPolicy(vf.Harness[vf.HarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any
    ) -> Any:
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            answer = await client.chat.completions.create(
                model=ctx.model, messages=[{"role": "user", "content": data.prompt}]
            )
        said = answer.choices[0].message.content or ""
        for name, text in re.findall(r"^FILE (\S+): (.*)$", said, re.M):
            await runtime.write(name, text.encode())
        for source, target in re.findall(r"^COPY (\S+) (\S+)$", said, re.M):
            await runtime.write(target, await runtime.read(source))
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
