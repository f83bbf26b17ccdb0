"""What the engine costs beside its calls.

    python benchmarks/overhead.py [--quick] [--json]

200 rollouts of 32 rows (blocks of 4: 1,600 calls), 64 calls in flight, against a loopback endpoint in another process
that answers after 1 s. Beside it, in the same run and each in a process of its own: the bare openai client making the
same calls, and verifiers' JudgeRubric making as many. Goals: at most 5 % of the slot-seconds idle while a block was
ready, at most 1.5 times the CPU of the bare client. `--quick`: 40 rollouts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from _endpoint import endpoint

from rubric_env.engine import CallEvent, Case, JudgeEngine
from rubric_env.engine.prompt import Brief
from rubric_env.evidence import build_pack
from rubric_env.judges import make_judge, resolve_credentials
from rubric_env.rubric import RubricSpec
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission, read_submission

Figures = dict[str, float]

TASK = "Report on the quarter, region by region."
INSTRUCTION = "Judge each row."
ROWS = 32
BATCH = 4
SLOTS = 64
LATENCY = 1.0
IDLE_GOAL = 0.05
CPU_GOAL = 1.5

PARAGRAPH = (
    "Revenue of region {n} rose by {n} % to {n}.4 million in the third quarter, mainly because the contract with the "
    "second largest customer was renewed in August; the margin stayed at {n} points, the backlog covers nine weeks."
)


def report(rollout: int) -> str:
    """About 2,000 tokens, another text for every rollout."""
    return "\n\n".join(PARAGRAPH.format(n=rollout * 100 + n) for n in range(40))


def rubric() -> list[dict[str, Any]]:
    return [
        {"id": f"R{n:02}", "description": f"States the change of revenue of region {n} with its cause.", "weight": 1}
        for n in range(1, ROWS + 1)
    ]


def submissions(folder: str, rollouts: int) -> list[Submission]:
    found = []
    for number in range(rollouts):
        output = Path(folder, str(number), "output")
        output.mkdir(parents=True)
        (output / "report.md").write_text(report(number), "utf-8")
        found.append(read_submission(output.parent, "The report is in output/report.md."))
    return found


async def engine(base_url: str, folder: str, rollouts: int) -> Figures:
    """HarborRubric's engine, reading of evidence and scoring included."""
    settings = JudgeSettings(model="bench", batch=BATCH, max_in_flight=SLOTS)
    judge = JudgeEngine(settings, make_judge(settings, resolve_credentials("key", base_url, environ={})))
    events: list[CallEvent] = []
    judge.on_call = events.append
    spec = RubricSpec.parse(rubric())
    cases = [Case(spec, delivered, TASK, INSTRUCTION) for delivered in submissions(folder, rollouts)]

    async def run() -> None:
        outcomes = await asyncio.gather(*(judge.judge(case) for case in cases))
        assert [outcome.reward for outcome in outcomes] == [1.0] * rollouts

    figures = await measured(run)
    await judge.aclose()
    return figures | {"idle": idle_share(events)}


async def bare_client(base_url: str, folder: str, rollouts: int) -> Figures:
    """The engine's requests through AsyncOpenAI and a semaphore; made beforehand, and the answers are not read."""
    import openai

    spec = RubricSpec.parse(rubric())
    bodies = []
    for delivered in submissions(folder, rollouts):
        pack = build_pack(delivered, budget_tokens=100_000)
        brief = Brief.of(spec, pack, "0" * 32, instruction=INSTRUCTION, task=TASK, reference="")
        for start in range(0, ROWS, BATCH):
            prompt = brief.prompt(spec.ids[start : start + BATCH])
            schema = {"name": "verdicts", "strict": True, "schema": prompt.schema}
            messages = [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": f"{prompt.shared}\n{prompt.rows}\n{prompt.contract_json}"},
            ]
            bodies.append({"messages": messages, "response_format": {"type": "json_schema", "json_schema": schema}})
    client: Any = openai.AsyncOpenAI(api_key="key", base_url=base_url, max_retries=0)

    async def call(body: dict[str, Any]) -> None:
        await client.chat.completions.create(model="bench", **body)

    async with client:
        return await measured(lambda: at_most(SLOTS, [lambda body=body: call(body) for body in bodies]))


async def judge_rubric(base_url: str, folder: str, rollouts: int) -> Figures:
    """verifiers' own JudgeRubric: one yes or no a call, so as many calls, each with a report of its own."""
    import openai
    import verifiers as vf

    client = openai.AsyncOpenAI(api_key="key", base_url=base_url, max_retries=0)
    judge = vf.JudgeRubric(judge_client=client, judge_model="bench")

    async def call(number: int) -> None:
        prompt = [{"role": "user", "content": TASK}]
        await judge.judge(prompt, [{"role": "assistant", "content": report(number)}], "The region grew.", {})

    calls = range(rollouts * ROWS // BATCH)
    async with client:
        return await measured(lambda: at_most(SLOTS, [lambda number=number: call(number) for number in calls]))


async def at_most(slots: int, calls: Sequence[Callable[[], Awaitable[None]]]) -> None:
    free = asyncio.Semaphore(slots)

    async def one(call: Callable[[], Awaitable[None]]) -> None:
        async with free:
            await call()

    await asyncio.gather(*map(one, calls))


CONTENDERS: dict[str, Callable[[str, str, int], Coroutine[Any, Any, Figures]]] = {
    "rubric-env engine": engine,
    "bare openai client": bare_client,
    "verifiers JudgeRubric": judge_rubric,
}


async def measured(run: Callable[[], Awaitable[None]]) -> Figures:
    """Wall and CPU seconds of `run`, and the peak memory of this process in MB."""
    wall, cpu = time.perf_counter(), time.process_time()
    await run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def idle_share(events: Sequence[CallEvent]) -> float:
    """Of all slot-seconds, those in which a slot was free and a block was ready to go."""
    changes: list[tuple[float, int, int]] = []
    for event in events:
        changes += [(event.queued, 0, 1), (event.start, 1, -1), (event.end, -1, 0)]
    changes.sort()
    busy = ready = 0
    idle, before = 0.0, changes[0][0]
    for moment, calls, blocks in changes:
        idle += min(SLOTS - busy, ready) * (moment - before)
        busy, ready, before = busy + calls, ready + blocks, moment
    return idle / (SLOTS * (changes[-1][0] - changes[0][0]))


def child(name: str, base_url: str, rollouts: int, result: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        result.put(asyncio.run(CONTENDERS[name](base_url, folder, rollouts)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="40 rollouts, within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    rollouts = 40 if options.quick else 200
    calls = rollouts * ROWS // BATCH
    spawn = multiprocessing.get_context("spawn")
    found: dict[str, Figures] = {}
    with endpoint(LATENCY) as (base_url, pipe):
        for name in CONTENDERS:
            print(f"{name}: {calls} calls …", file=sys.stderr, flush=True)
            result = spawn.SimpleQueue()
            process = spawn.Process(target=child, args=(name, base_url, rollouts, result))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(f"{name} failed")
            pipe.send(None)
            found[name] = result.get() | pipe.recv()
            found[name]["cpu_ms_per_call"] = 1000 * found[name]["cpu_s"] / calls
            found[name]["wall_over_ideal"] = found[name]["wall_s"] / (calls * LATENCY / SLOTS)
    ours, bare = found["rubric-env engine"], found["bare openai client"]
    summary = {
        "calls": calls,
        "idle_while_ready": ours["idle"],
        "idle_goal": IDLE_GOAL,
        "cpu_over_bare": ours["cpu_s"] / bare["cpu_s"],
        "cpu_goal": CPU_GOAL,
        "contenders": found,
    }
    if options.json:
        print(json.dumps(summary, indent=2))
        return
    columns = ["wall_s", "wall_over_ideal", "busy", "cpu_ms_per_call", "peak_mb", "max_in_flight", "connections"]
    print(f"{'':24}" + "".join(f"{column:>17}" for column in columns))
    for name, figures in found.items():
        print(f"{name:24}" + "".join(f"{figures[column]:17.2f}" for column in columns))
    print(f"slot-seconds idle while a block was ready: {summary['idle_while_ready']:.1%} (goal {IDLE_GOAL:.0%})")
    print(f"CPU per call over the bare client's: {summary['cpu_over_bare']:.2f} (goal {CPU_GOAL})")


if __name__ == "__main__":
    main()
