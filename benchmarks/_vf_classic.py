"""An environment whose one turn is a report, judged in the way that `judge` names; for vf-eval."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any

import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI
from peers.job import MODEL, TASK, criterion
from peers.ours import rubric

from rubric_env.classic import HarborRubric

QUESTION = """Which of these criteria does the response meet?

{answer}

Response:
```
{response}
```

Answer with one line for each criterion, its two-digit number and "yes" or "no", for example "01: yes"."""


def load_environment(judge: str, base_url: str, rows: int, examples: int, batch: int, settings: dict[str, Any]) -> Any:
    """`judge`: "ours" (under `settings`), "JudgeRubric" (`batch` rows a call), or "none"."""
    prompts = [{"question": TASK, "answer": ""} for _ in range(examples)]
    if judge == "ours":
        scorer: Any = HarborRubric(MODEL, base_url, "key", settings, rubric(rows))
    elif judge == "JudgeRubric":
        scorer = judge_rubric(base_url, rows, batch)
    else:
        scorer = vf.Rubric()
    return vf.SingleTurnEnv(dataset=Dataset.from_list(prompts), rubric=scorer)


def judge_rubric(base_url: str, rows: int, batch: int) -> Any:
    """The rows in blocks, all at once. A call about one row asks JudgeRubric's own question."""
    client = AsyncOpenAI(api_key=os.environ["OPENAI_API_KEY"], base_url=base_url)
    prompt = {"judge_prompt": QUESTION} if batch > 1 else {}
    scorer = vf.JudgeRubric(judge_client=client, judge_model=MODEL, **prompt)
    blocks = [range(first, min(first + batch, rows + 1)) for first in range(1, rows + 1, batch)]

    async def quality(judge: Any, prompt: Any, completion: Any, state: Any) -> float:
        asked = ("\n".join(map(criterion, block)) for block in blocks)
        replies = await asyncio.gather(*(judge(prompt, completion, text, state) for text in asked))
        return sum(len(re.findall(r"\byes\b", reply)) for reply in replies) / rows

    scorer.add_reward_func(quality)
    return scorer
