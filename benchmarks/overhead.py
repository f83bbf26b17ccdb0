"""What the engine costs beside its calls.

    python benchmarks/overhead.py [--quick] [--json]

Load: 500 rollouts of 32 rows, read from files (blocks of 4: 4,000 calls), 200 in flight, against a loopback endpoint
in another process whose answers take a lognormal time (median 2 s, sigma 0.5), the n-th call of every contender the
same. Beside the engine, each in a process of its own: the bare openai client making the same calls, and verifiers'
JudgeRubric making as many. CPU is that of the whole process while judging: evidence, parsing and scores are in it.
`idle_outside` is what the endpoint sees: the share of slot-seconds without a call, from the first to the last one's
arrival, the time before evidence was ready included.

Memory: 5,000 rollouts of 32 rows one group of 8 after the other, 16 groups at a time, answers after 5 ms; resident
memory after a full garbage collection, when 500 were through and when all were.

Survey: 40 rollouts of 12 rows, 120 calls of 0.2 s, 16 in flight, against the bare client; medians of 5 runs.

`--quick`: 800 calls of a quarter of the time, 50 in flight (the same calls a second); 1,000 rollouts; 3 runs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from _endpoint import Plan, endpoints
from _run import BARE, OURS, Contender, Figures, contend
from peers.__main__ import peak_mb
from peers.bare_client import request_bodies
from peers.job import MODEL, TASK, expected, report
from peers.ours import rubric
from rich.console import Console
from rich.table import Table

from rubric_env.engine import CallEvent, Case, JudgeEngine
from rubric_env.judges import make_judge, resolve_credentials
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import Outcome
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission, read_submission

ROWS, BATCH = 32, 4
SIGMA = 0.5
PARAGRAPHS = 40
INSTRUCTION = "Judge each row."
GROUP, GROUPS_AT_ONCE = 8, 16

IDLE_GOAL = 0.03
CPU_GOAL = 1.0
GROWTH_GOAL_MB = 5.0
WALL_GOAL = 1.05
PEAK_GOAL_MB = 90.0


@dataclass(frozen=True)
class Size:
    rollouts: int
    in_flight: int
    median_s: float
    kept: int
    """Rollouts of the memory part."""
    surveys: int

    @property
    def calls(self) -> int:
        return self.rollouts * ROWS // BATCH

    @property
    def settled(self) -> int:
        """Rollouts after which the memory is first looked at: the caches of Python and malloc are filled."""
        return max(self.kept // 10, 2 * GROUP * GROUPS_AT_ONCE)

    @property
    def latencies(self) -> list[float]:
        dice = random.Random(1)
        return [self.median_s * dice.lognormvariate(0.0, SIGMA) for _ in range(self.calls)]


FULL = Size(rollouts=500, in_flight=200, median_s=2.0, kept=5_000, surveys=5)
QUICK = Size(rollouts=100, in_flight=50, median_s=0.5, kept=1_000, surveys=3)


def submissions(folder: str, rollouts: int) -> list[Submission]:
    found = []
    for number in range(rollouts):
        output = Path(folder, str(number), "output")
        output.mkdir(parents=True)
        (output / "report.md").write_text(report(number, PARAGRAPHS), "utf-8")
        found.append(read_submission(output.parent, "The report is in output/report.md."))
    return found


def new_engine(base_url: str, **settings: Any) -> JudgeEngine:
    chosen = JudgeSettings(model=MODEL, **settings)
    return JudgeEngine(chosen, make_judge(chosen, resolve_credentials("key", base_url, environ={})))


def check(outcomes: Sequence[Outcome], first: int) -> None:
    """Nothing was lost on the way: a benchmark of wrong scores would be worth nothing."""
    for number, outcome in enumerate(outcomes, first):
        assert outcome.reward is not None, outcome.exit_reason
        assert abs(outcome.reward - expected(number, ROWS)) < 1e-9


async def engine(base_url: str, folder: str, size: Size) -> Figures:
    """Evidence, prompts, calls, parsing and scores."""
    judge = new_engine(base_url, batch=BATCH, max_in_flight=size.in_flight)
    events: list[CallEvent] = []
    judge.on_call = events.append
    spec = RubricSpec.parse(rubric(ROWS))
    cases = [Case(spec, delivered, TASK, INSTRUCTION) for delivered in submissions(folder, size.rollouts)]

    async def run() -> None:
        outcomes = await asyncio.gather(*map(judge.judge, cases))
        check(outcomes, 0)

    figures = await measured(run)
    await judge.aclose()
    return figures | {"idle": idle_share(events, size.in_flight)}


async def bare_client(base_url: str, folder: str, size: Size) -> Figures:
    """The engine's requests through AsyncOpenAI and a semaphore; made beforehand, and the answers are not read."""
    import openai

    bodies = [body for one in submissions(folder, size.rollouts) for body in request_bodies(one, ROWS)]
    client: Any = openai.AsyncOpenAI(api_key="key", base_url=base_url, max_retries=0)

    async def call(body: dict[str, Any]) -> None:
        await client.chat.completions.create(model=MODEL, **body)

    async with client:
        return await measured(lambda: at_most(size.in_flight, [partial(call, body) for body in bodies]))


async def judge_rubric(base_url: str, folder: str, size: Size) -> Figures:
    """verifiers' own JudgeRubric: one yes or no a call, so as many calls, each with a report of its own."""
    import openai
    import verifiers as vf

    client = openai.AsyncOpenAI(api_key="key", base_url=base_url, max_retries=0)
    judge = vf.JudgeRubric(judge_client=client, judge_model=MODEL)

    async def call(number: int) -> None:
        prompt = [{"role": "user", "content": TASK}]
        answer = [{"role": "assistant", "content": report(number, PARAGRAPHS)}]
        await judge.judge(prompt, answer, "The region grew.", {})

    calls = range(size.calls)
    async with client:
        return await measured(lambda: at_most(size.in_flight, [partial(call, number) for number in calls]))


async def memory(base_url: str, folder: str, size: Size) -> Figures:
    """Resident megabytes when the first rollouts are through, and when all are."""
    judge = new_engine(base_url, batch=ROWS // 2, max_in_flight=64)
    spec = RubricSpec.parse(rubric(ROWS))
    groups = iter(range(size.kept // GROUP))
    through, early = 0, 0.0

    async def work() -> None:
        nonlocal through, early
        for group in groups:
            scope = str(group)
            replies = [Submission(reply=report(group * GROUP + n, PARAGRAPHS)) for n in range(GROUP)]
            cases = [Case(spec, reply, TASK, INSTRUCTION, group=scope) for reply in replies]
            outcomes = await asyncio.gather(*map(judge.judge, cases))
            check(outcomes, group * GROUP)
            judge.forget(scope)
            through += GROUP
            if not early and through >= size.settled:
                early = resident_mb()

    figures = await measured(lambda: at_most(GROUPS_AT_ONCE, [work] * GROUPS_AT_ONCE))
    late = resident_mb()
    await judge.aclose()
    return figures | {"early_mb": early, "late_mb": late}


CONTENDERS: dict[str, Callable[[str, str, Size], Coroutine[Any, Any, Figures]]] = {
    "rubric-env engine": engine,
    "bare openai client": bare_client,
    "verifiers JudgeRubric": judge_rubric,
    "memory": memory,
}


async def at_most(slots: int, calls: Sequence[Callable[[], Awaitable[None]]]) -> None:
    free = asyncio.Semaphore(slots)

    async def one(call: Callable[[], Awaitable[None]]) -> None:
        async with free:
            await call()

    await asyncio.gather(*map(one, calls))


async def measured(run: Callable[[], Awaitable[None]]) -> Figures:
    """Wall and CPU seconds of `run`, and the peak memory of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    await run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"wall_s": wall, "cpu_s": cpu, "peak_mb": peak_mb()}


def resident_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def idle_share(events: Sequence[CallEvent], slots: int) -> float:
    """Of all slot-seconds, those in which a slot was free and a block was ready to go."""
    changes: list[tuple[float, int, int]] = []
    for event in events:
        changes += [(event.queued, 0, 1), (event.start, 1, -1), (event.end, -1, 0)]
    changes.sort()
    busy = ready = 0
    idle, before = 0.0, changes[0][0]
    for moment, calls, blocks in changes:
        idle += min(slots - busy, ready) * (moment - before)
        busy, ready, before = busy + calls, ready + blocks, moment
    return idle / (slots * (changes[-1][0] - changes[0][0]))


def child(name: str, base_url: str, size: Size, result: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        result.put(asyncio.run(CONTENDERS[name](base_url, folder, size)))


def apart(name: str, plan: Plan, size: Size) -> Figures:
    """One contender in a process of its own, and what its endpoint saw."""
    spawn = multiprocessing.get_context("spawn")
    print(f"{name} …", file=sys.stderr, flush=True)
    with endpoints([plan]) as (server,):
        result = spawn.SimpleQueue()
        process = spawn.Process(target=child, args=(name, server.base_url, size, result))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(f"{name} failed")
        figures: Figures = result.get() | server.figures()
        return figures


def load(size: Size) -> dict[str, Figures]:
    found = {}
    plan = Plan("ours", size.latencies)
    for name in list(CONTENDERS)[:3]:
        figures = apart(name, plan, size)
        ideal = sum(size.latencies) / size.in_flight
        found[name] = figures | {
            "cpu_ms_per_call": 1000 * figures["cpu_s"] / figures["calls"],
            "wall_over_ideal": figures["wall_s"] / ideal,
            "idle_outside": 1 - figures["busy"] / size.in_flight,
        }
    return found


def survey(runs: int) -> dict[str, Figures]:
    """Medians; the two take turns, so that a busy machine is the same for both."""
    job = {"rollouts": 40, "rows": 12, "concurrency": 16}
    found: dict[str, list[Figures]] = {OURS.name: [], BARE.name: []}
    for number in range(runs):
        print(f"survey, run {number + 1} of {runs} …", file=sys.stderr, flush=True)
        for contender in (OURS, BARE):
            found[contender.name].append(_surveyed(contender, job))
    columns = ("calls", "wall_s", "cpu_s", "peak_mb", "connections", "max_in_flight")
    return {name: {column: median(run[column] for run in done) for column in columns} for name, done in found.items()}


def _surveyed(contender: Contender, job: dict[str, Any]) -> Figures:
    (figures,) = contend(contender, [Plan(contender.module, (0.2,))], job)
    if "failed" in figures:
        sys.exit(f"{contender.name}: {figures['failed']}")
    return figures


def goals(loaded: dict[str, Figures], kept: Figures, surveyed: dict[str, Figures]) -> list[dict[str, Any]]:
    ours, bare = loaded["rubric-env engine"], loaded["bare openai client"]
    job, floor = surveyed[OURS.name], surveyed[BARE.name]
    reached = [
        ("slot-seconds idle while a block was ready", ours["idle"], IDLE_GOAL),
        ("CPU per call over the bare client's", ours["cpu_ms_per_call"] / bare["cpu_ms_per_call"], CPU_GOAL),
        ("memory growth from the first rollouts to all, MB", kept["late_mb"] - kept["early_mb"], GROWTH_GOAL_MB),
        ("survey: wall over the bare client's", job["wall_s"] / floor["wall_s"], WALL_GOAL),
        ("survey: connections per call in flight", job["connections"] / job["max_in_flight"], 1.0),
        ("survey: peak memory, MB", job["peak_mb"], PEAK_GOAL_MB),
    ]
    return [{"name": name, "value": value, "at_most": goal, "met": value <= goal} for name, value, goal in reached]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="scaled down, within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    surveyed = survey(size.surveys)
    loaded = load(size)
    kept = apart("memory", Plan("ours", (0.005,)), size)
    reached = goals(loaded, kept, surveyed)
    if options.json:
        found = {"machine_load": os.getloadavg(), "load": loaded, "memory": kept, "survey": surveyed, "goals": reached}
        print(json.dumps(found, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 140)
    columns = (
        "wall_s",
        "wall_over_ideal",
        "idle_outside",
        "cpu_ms_per_call",
        "peak_mb",
        "max_in_flight",
        "connections",
    )
    console.print(table(f"load: {size.calls} calls, {size.in_flight} in flight", loaded, columns))
    console.print(table("survey", surveyed, ("wall_s", "cpu_s", "peak_mb", "calls", "max_in_flight", "connections")))
    early, late = f"{kept['early_mb']:.1f} MB", f"{kept['late_mb']:.1f} MB"
    console.print(f"memory: {early} after {size.settled} rollouts, {late} after {size.kept}")
    for goal in reached:
        verdict = "met" if goal["met"] else "MISSED"
        console.print(f"{goal['name']}: {goal['value']:.3g} (at most {goal['at_most']:g}): {verdict}")


def table(title: str, found: dict[str, Figures], columns: Sequence[str]) -> Table:
    made = Table("", *columns, title=title)
    for name, figures in found.items():
        made.add_row(name, *(f"{figures[column]:.2f}" for column in columns))
    return made


if __name__ == "__main__":
    main()
