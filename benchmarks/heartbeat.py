"""How long the event loop is held up while thousands of rollouts are scored by HarborRubric at once.

    python benchmarks/heartbeat.py [--quick] [--json]

2,000 rollouts in groups of 8 start together in one process, as vf-eval with a large `-c` starts them: 12 rows each, 256
calls in flight, answers after 1, 2 and 3 s. A task that sleeps 5 ms measures how late it wakes. `late_*` are
milliseconds over the whole run with the garbage collector off; `start` is the longest within the first second, in which
verifiers hands over all rollouts, `later` after it; `callback` is the longest that a single step on the loop computed
(CPU time). The same again with the collector on gives `gc`, its longest pause: it walks all objects of the process,
of which verifiers and what it imports have half a million, and any code that allocates is interrupted by it.

Goal: no step on the loop computes for 50 ms. Exit 1 when it is missed. `--quick`: 200 rollouts, collector off.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from asyncio import events
from typing import Any

import verifiers as vf
from _endpoint import Plan, endpoints
from peers.job import TASK, report
from peers.ours import rubric

from rubric_env.classic import HarborRubric

GROUP = 8
ROWS = 12
IN_FLIGHT = 256
LATENCIES = (1.0, 2.0, 3.0)
BEAT = 0.005
GOAL = 0.05


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rollouts = 200 if options.quick else 2000
    gc.collect()
    gc.disable()
    figures = asyncio.run(measure(rollouts))
    if not options.quick:
        gc.enable()
        figures["gc"] = longest_pause(rollouts)
    if options.json:
        print(json.dumps(figures))
    else:
        print("  ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    sys.exit(figures["callback"] >= GOAL * 1000)


async def measure(rollouts: int) -> dict[str, float]:
    """Milliseconds, but for `rollouts`, `mean_reward` and `seconds`."""
    steps: list[float] = []
    run = events.Handle._run

    def timed(handle: events.Handle) -> None:
        began = time.thread_time()
        run(handle)
        steps.append(time.thread_time() - began)

    with endpoints([Plan(latencies=LATENCIES)]) as servers:
        group = vf.RubricGroup(
            [HarborRubric("judge", servers[0].base_url, "key", {"max_in_flight": IN_FLIGHT}, rubric(ROWS))]
        )
        beats: list[tuple[float, float]] = []
        heart = asyncio.create_task(beat(beats))
        events.Handle._run = timed  # type: ignore[method-assign]
        try:
            began = time.perf_counter()
            groups = await asyncio.gather(*(score(group, first) for first in range(0, rollouts, GROUP)))
            seconds = time.perf_counter() - began
        finally:
            events.Handle._run = run  # type: ignore[method-assign]
            heart.cancel()
        await group.teardown()
    rewards = [reward for rewards in groups for reward in rewards]
    late = sorted(lateness for _, lateness in beats)
    return {
        "rollouts": len(rewards),
        "mean_reward": sum(rewards) / len(rewards),
        "seconds": seconds,
        "late_p50": 1000 * late[len(late) // 2],
        "late_p99": 1000 * late[int(0.99 * len(late))],
        "start": 1000 * max(lateness for at, lateness in beats if at < began + 1),
        "later": 1000 * max((lateness for at, lateness in beats if at >= began + 1), default=0.0),
        "callback": 1000 * max(steps),
    }


async def beat(beats: list[tuple[float, float]]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(BEAT)
        beats.append((began, time.perf_counter() - began - BEAT))


async def score(group: Any, first: int) -> list[float]:
    states = [state(number) for number in range(first, first + GROUP)]
    await group.score_group(states)
    for scored in states:
        await group.cleanup(scored)
    return [scored["reward"] for scored in states]


def state(number: int) -> Any:
    reply = [{"role": "assistant", "content": report(number)}]
    prompt = [{"role": "user", "content": TASK}]
    made = vf.State(input={"prompt": prompt, "answer": "", "example_id": number // GROUP, "info": {}})
    step = {"reward": None, "advantage": None, "completion": reply}
    made.update(task=dict(made["input"]), completion=reply, trajectory=[step], reward=None, metrics=None, error=None)
    return made


def longest_pause(rollouts: int) -> float:
    began, longest = 0.0, 0.0

    def watch(phase: str, info: Any) -> None:
        nonlocal began, longest
        now = time.perf_counter()
        if phase == "start":
            began = now
        else:
            longest = max(longest, now - began)

    gc.callbacks.append(watch)
    try:
        asyncio.run(measure(rollouts))
    finally:
        gc.callbacks.remove(watch)
    return 1000 * longest


if __name__ == "__main__":
    main()
