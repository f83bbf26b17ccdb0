"""Prompt tokens that a real server has to evaluate for a rollout.

    python benchmarks/prefix.py [--quick] [--json]

Needs `make llama`: llama.cpp's own server with a small model, whose `/metrics` count the tokens of prompts that were
evaluated and those that came from its cache. The same rollouts (8 rows, two at a time) are judged by the engine as it
is, in blocks of 4 with the rows last; in blocks with the rows before the evidence; and with one call a row, both ways.
Answers end after their first token: only prompts count here.

Cache slots: every contender gets a server of its own, with one slot (`n_parallel` 1). A call that follows another with
the same beginning goes on where that one ended; between two rollouts the server keeps what the slot held in memory
(`cache_ram_mib`, its default) and takes it back.

The bound is measured on the prompts themselves: the tokens of a contender's prompts, as the server tokenizes them,
with each common beginning counted once. Goals: the engine is within 5 % of its bound, evaluates fewer tokens than the
others, and reads from the answers exactly the counts that the server keeps. Exit 1 when one is missed. `--quick`: 3
rows in blocks of 2, one rollout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from rubric_env.engine import Case, JudgeEngine
from rubric_env.judges import CallFault, Judge, Prompt, Reply, make_judge, resolve_credentials
from rubric_env.local import LlamaServer, LlamaUnavailable
from rubric_env.rubric import RubricSpec
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission

TASK = "Report on the quarter, region by region."
INSTRUCTION = "Judge each row on the report alone."
PARAGRAPH = (
    "Revenue of region {n} rose by {n} % to {n}.4 million in the third quarter, mainly because the contract with the "
    "second largest customer was renewed in August; the margin stayed at {n} points."
)
BOUND_GOAL = 1.05
EVALUATED = "llamacpp:prompt_tokens_total"
CACHED = "llamacpp:prompt_tokens_cached_total"


@dataclass(frozen=True)
class Size:
    rollouts: int
    rows: int
    batch: int
    paragraphs: int


FULL = Size(rollouts=2, rows=8, batch=4, paragraphs=12)
QUICK = Size(rollouts=1, rows=3, batch=2, paragraphs=3)


class Watched:
    """A judge that keeps its prompts, and puts their rows before the evidence where that is wanted."""

    def __init__(self, judge: Judge, rows_first: bool) -> None:
        self._judge = judge
        self._rows_first = rows_first
        self.model, self.identity = judge.model, judge.identity
        self.asked: list[list[dict[str, str]]] = []

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault:
        if self._rows_first:
            prompt = replace(prompt, shared=prompt.rows, rows=prompt.shared)
        question = "\n".join((prompt.shared, prompt.rows, prompt.contract_json))
        self.asked.append([{"role": "system", "content": prompt.system}, {"role": "user", "content": question}])
        return await self._judge.ask(prompt, timeout=timeout)

    async def aclose(self) -> None:
        await self._judge.aclose()


async def judged(server: LlamaServer, size: Size, batch: int, rows_first: bool) -> dict[str, float]:
    settings = JudgeSettings(
        model=server.model,
        batch=batch,
        max_tokens=1,
        # One token is no verdict, so each block is asked once and then given up.
        max_tries=1,
        resplit=False,
        max_consecutive_failures=0,
        per_timeout=1800.0,
    )
    judge = Watched(make_judge(settings, resolve_credentials("any", server.base_url, environ={})), rows_first)
    engine = JudgeEngine(settings, judge)
    start = time.perf_counter()
    outcomes = await asyncio.gather(*(engine.judge(case(number, size)) for number in range(size.rollouts)))
    seconds = time.perf_counter() - start
    await engine.aclose()
    calls, read, cached = (
        sum(outcome.fields[name] for outcome in outcomes)
        for name in ("judge_calls", "judge_input_tokens", "judge_cached_tokens")
    )
    counted = counters(server)
    prompts = [tokens(server, messages) for messages in judge.asked]
    assert calls == len(prompts) == size.rollouts * -(-size.rows // batch), "a block was asked twice"
    assert sum(map(len, prompts)) == read, "the prompts are not those that the server saw"
    return {
        "calls": calls / size.rollouts,
        "prompt_tokens": read / size.rollouts,
        "evaluated": counted[EVALUATED] / size.rollouts,
        "bound": distinct(prompts) / size.rollouts,
        "cached_share": counted[CACHED] / read,
        "misread": abs(counted[CACHED] - cached) + abs(counted[EVALUATED] - (read - cached)),
        "seconds": seconds / size.rollouts,
    }


def case(number: int, size: Size) -> Case:
    regions = range(100 * (number + 1), 100 * (number + 1) + size.rows)
    rows = [
        {"id": f"R{n}", "description": f"States the change of revenue of region {n} with its cause.", "weight": 1}
        for n in regions
    ]
    report = "\n\n".join(PARAGRAPH.format(n=100 * (number + 1) + n) for n in range(size.paragraphs))
    return Case(RubricSpec.parse(rows), Submission(reply=report), TASK, INSTRUCTION, name=f"rollout {number}")


def counters(server: LlamaServer) -> dict[str, float]:
    """What the server counted since it started."""
    lines = httpx.get(f"{root(server)}/metrics").text.splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if not line.startswith("#"))}


def tokens(server: LlamaServer, messages: Sequence[dict[str, str]]) -> list[int]:
    prompt = httpx.post(f"{root(server)}/apply-template", json={"messages": messages}).json()["prompt"]
    found: list[int] = httpx.post(f"{root(server)}/tokenize", json={"content": prompt}).json()["tokens"]
    return found


def root(server: LlamaServer) -> str:
    return server.base_url.removesuffix("/v1")


def distinct(prompts: Sequence[Sequence[int]]) -> int:
    """Tokens of all prompts, each common beginning counted once."""
    total, previous = 0, []
    for prompt in sorted(map(list, prompts)):
        same = next((n for n, (a, b) in enumerate(zip(previous, prompt, strict=False)) if a != b), len(previous))
        total, previous = total + len(prompt) - same, prompt
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller prompts, within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    contenders = {
        "rubric-env engine": (size.batch, False),
        "blocks, rows first": (size.batch, True),
        "a call a row": (1, False),
        "a call a row, rows first": (1, True),
    }
    found: dict[str, dict[str, float]] = {}
    for name, (batch, rows_first) in contenders.items():
        print(f"{name}: {size.rollouts} x {size.rows} rows …", file=sys.stderr, flush=True)
        try:
            with LlamaServer() as server:
                found[name] = asyncio.run(judged(server, size, batch, rows_first))
        except LlamaUnavailable as error:
            sys.exit(str(error))
    ours, *others = (figures["evaluated"] for figures in found.values())
    summary: dict[str, Any] = {
        "size": vars(size),
        "evaluated_over_bound": ours / found["rubric-env engine"]["bound"],
        "bound_goal": BOUND_GOAL,
        "of_the_others": {name: ours / other for name, other in zip(list(found)[1:], others, strict=True)},
        "misread": sum(figures["misread"] for figures in found.values()),
        "contenders": found,
    }
    missed = summary["evaluated_over_bound"] > BOUND_GOAL or ours >= min(others) or summary["misread"] > 0
    if options.json:
        print(json.dumps(summary, indent=2))
        sys.exit(missed)
    columns = ("calls", "prompt_tokens", "evaluated", "bound", "cached_share", "seconds")
    print(f"{'per rollout':26}" + "".join(f"{column:>15}" for column in columns))
    for name, figures in found.items():
        print(f"{name:26}" + "".join(f"{figures[column]:15.2f}" for column in columns))
    print(f"evaluated over the bound of its prompts: {summary['evaluated_over_bound']:.3f} (goal {BOUND_GOAL})")
    for name, share in summary["of_the_others"].items():
        print(f"evaluated of what '{name}' does: {share:.0%} (goal: less than all)")
    print(f"tokens that we read otherwise than the server counts them: {summary['misread']:.0f} (goal 0)")
    sys.exit(missed)


if __name__ == "__main__":
    main()
