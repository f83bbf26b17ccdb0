"""How long the event loop is held up while thousands of rollouts are made and scored at once.

    python benchmarks/heartbeat.py [--quick] [--json] [--only chat|environments|hostile]

A task that sleeps 5 ms measures how late it wakes, and every step on the loop how long it computed, in CPU time of the
loop's thread without garbage collection. Milliseconds: `late_*` as it was felt, with all that the machine did;
`callback` the longest step, whoever's; `ours` the longest share of a step that was the work of rubric-env, or of a
library that it had called; `verifiers` the same of verifiers; `unseen` of nobody knows whom, since one call into C held
the interpreter all the while; `gc` the longest garbage collection on that thread, which walks all objects of the
process, of which verifiers and what it imports have half a million. Steps of less than 20 ms are not told apart. All
endpoints are other processes.

`chat`: 2,000 rollouts in groups of 8 are scored together by HarborRubric, as vf-eval with a large `-c` starts them: 12
rows each, 256 calls in flight, answers after 1, 2 and 3 s. The garbage collector is off.

`environments`: the four environments as they are, with the recorded policies: tools run, files are read. Seven rounds
of 306 rollouts at a time through `evaluate`, results saved with `judge_result` and then dropped. LibreOffice is left
out, which would take two seconds a file: tasks that want a workbook, and pictures of decks. Memory of the process is
`rss_2_mb` after the second round, `rss_mb` after the last, `rss_max_mb` at most, sampled each second; `left_*` is what
there is more of after the last round than after the second: descriptors, threads, child processes, temporary files.

`hostile`: groups of 16 at the limits: replies of the policy of 2 MB and of the judge of 250 kB, arguments of 1 MB,
32 calls a message, 30 turns of 20,000 characters, 200 rows, 500 input files, a corpus of 2,000 documents, a report of
400 kB with 3,300 citations.

Goal: no step of ours computes for 50 ms, and memory after the last round is within 10 % of that after the second.
Exit 1 when it is missed. `--quick`, all three side by side: 200 rollouts in chat, one round of 64, the first three at
the limits.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import verifiers as vf
from _endpoint import Plan, endpoints
from _hostile import hostile
from _loop import Watch, watching
from _replay import replaying
from peers.job import TASK, report
from peers.ours import rubric

from rubric_env.classic import HarborRubric

GROUP = 8
ROWS = 12
IN_FLIGHT = 256
LATENCIES = (1.0, 2.0, 3.0)
GOAL = 50.0
GROWTH = 1.1
ENVIRONMENTS = ("harbor_gdp", "harbor_wle", "harbor_dr", "harbor_ppt")
LARGE = 250_000
Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--only", choices=RUNS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(asyncio.run(RUNS[options.only](options.quick))))
        return
    with ThreadPoolExecutor(len(RUNS) if options.quick else 1) as side_by_side:
        found = dict(zip(RUNS, side_by_side.map(lambda name: apart(name, quick=options.quick), RUNS), strict=True))
    if options.json:
        print(json.dumps(found))
    else:
        for name, figures in found.items():
            print(f"{name:<13}" + "  ".join(f"{figure} {value:.4g}" for figure, value in figures.items()))
    missed = any(figures["ours"] >= GOAL for figures in found.values())
    memory = found["environments"]
    sys.exit(missed or memory.get("rss_mb", 0.0) > GROWTH * memory.get("rss_2_mb", 1.0))


def apart(name: str, *, quick: bool) -> Figures:
    """Measured in an interpreter, and with temporary files, of its own."""
    with tempfile.TemporaryDirectory() as folder:
        hidden = ("JUDGE_", "OPENAI_", "PRIME_", "HTTP", "http")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        keys = {"JUDGE_API_KEY": "key", "POLICY_KEY": "key", "HF_DATASETS_OFFLINE": "1", "TMPDIR": folder}
        command = [sys.executable, __file__, "--only", name, *(["--quick"] if quick else [])]
        done = subprocess.run(command, env=kept | keys, stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)  # type: ignore[no-any-return]


async def chat(quick: bool) -> Figures:
    gc.collect()
    gc.disable()
    rollouts = 200 if quick else 2000
    with endpoints([Plan(latencies=LATENCIES)]) as servers:
        judge = HarborRubric("judge", servers[0].base_url, "key", {"max_in_flight": IN_FLIGHT}, rubric(ROWS))
        group = vf.RubricGroup([judge])
        with watching() as watch:
            began = time.perf_counter()
            groups = await asyncio.gather(*(score(group, first) for first in range(0, rollouts, GROUP)))
            seconds = time.perf_counter() - began
            await group.teardown()
    return done([reward for rewards in groups for reward in rewards], seconds, watch)


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


async def environments(quick: bool) -> Figures:
    names, rounds, rollouts = (ENVIRONMENTS[::2], 1, 4) if quick else (ENVIRONMENTS, 7, 9)
    modules = {name: importlib.import_module(name) for name in names}
    folders = {name: list(instances(module)) for name, module in modules.items()}
    recordings = [
        json.loads(path.read_text("utf-8"))
        for some in folders.values()
        for folder in some
        for path in sorted(folder.glob("recordings/*.json"))
    ]
    with replaying(recordings) as (policy, judge):
        given = judge_at(judge)
        loaded = [modules[name].load_environment([str(path) for path in folders[name]], judge=given) for name in names]
        return await measured(loaded, policy, rounds, rollouts)


def instances(module: Any) -> Iterator[Path]:
    """Those that ship with an environment, but for tasks that want a workbook."""
    for path in sorted((Path(str(module.__file__)).parent / "instances").iterdir()):
        deliverables = tomllib.loads((path / "task.toml").read_text("utf-8"))["metadata"].get("deliverables", ())
        if not any(name.endswith(".xlsx") for name in deliverables):
            yield path


async def limits(quick: bool) -> Figures:
    folder = Path(tempfile.mkdtemp())
    cases = hostile()[: 3 if quick else None]
    recordings = [case.make(folder / case.environment) for case in cases]
    with replaying(recordings, LARGE) as (policy, judge):
        loaded = [
            importlib.import_module(name).load_environment(str(folder / name), judge=judge_at(judge))
            for name in dict.fromkeys(case.environment for case in cases)
        ]
        return await measured(loaded, policy, 1, 1 if quick else 16)


def judge_at(base_url: str) -> dict[str, Any]:
    # Beside its key, which is no argument.
    os.environ["JUDGE_BASE_URL"] = base_url
    return {"model": "patient", "settings": {"max_in_flight": IN_FLIGHT, "vision": "off"}}


async def measured(loaded: Sequence[Any], policy: str, rounds: int, rollouts: int) -> Figures:
    # As verifiers' own workers have it.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(512))
    rewards: list[float] = []
    after: list[Figures] = []
    for env in loaded:
        env.get_eval_dataset()  # read when first asked for, before any rollout
    with watching() as watch, sampled() as samples:
        began = time.perf_counter()
        for number in range(rounds):
            made = await asyncio.gather(*(evaluate(env, policy, rollouts, number) for env in loaded))
            rewards += [reward for some in made for reward in some]
            gc.collect()
            after.append(held())
            print(f"round {number + 1}: {after[-1]}", file=sys.stderr)
        seconds = time.perf_counter() - began
        for env in loaded:
            await env._teardown()
    for step in sorted(watch.steps, key=lambda step: -step.share("ours"))[:3]:
        print(f"{1000 * step.share('ours'):.0f} of {1000 * step.seconds:.0f} ms: {step.seen}", file=sys.stderr)
    first, last = after[min(1, len(after) - 1)], after[-1]
    return done(rewards, seconds, watch) | {
        "rss_2_mb": first["rss_mb"],
        "rss_mb": last["rss_mb"],
        "rss_max_mb": max(samples),
        **{f"left_{name}": last[name] - first[name] for name in ("descriptors", "threads", "children", "files")},
    }


async def evaluate(env: Any, policy: str, rollouts: int, number: int) -> list[float]:
    client = vf.ClientConfig(api_key_var="POLICY_KEY", api_base_url=policy)
    outputs = await env.evaluate(
        client=client,
        model="replay",
        rollouts_per_example=rollouts,
        state_columns=["judge_result"],
        save_results=True,
        results_path=Path(tempfile.gettempdir(), "results", env.env_id, str(number)),
        on_start=lambda *_: None,
        on_progress=lambda *_: None,
        on_log=lambda _: None,
    )
    erred = [output["error"] for output in outputs["outputs"] if output.get("error")]
    if erred:
        print(f"{env.env_id}: {len(erred)} erred: {erred[0]}", file=sys.stderr)
    return [output["reward"] for output in outputs["outputs"]]


@contextmanager
def sampled() -> Iterator[list[float]]:
    """Resident megabytes of this process, each second."""
    over, samples = threading.Event(), [held()["rss_mb"]]

    def sample() -> None:
        while not over.wait(1.0):
            samples.append(held()["rss_mb"])

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def held() -> Figures:
    """What this process holds. `files` are those of its temporary folder but for the results."""
    status = Path("/proc/self/status").read_text("ascii").split()
    children = Path("/proc/self/task").glob("*/children")
    kept = [path for path in Path(tempfile.gettempdir()).iterdir() if path.name != "results"]
    return {
        "rss_mb": int(status[status.index("VmRSS:") + 1]) / 1024,
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "children": sum(len(path.read_text("ascii").split()) for path in children),
        "files": len(kept),
    }


def done(rewards: Sequence[float], seconds: float, watch: Watch) -> Figures:
    return {"rollouts": len(rewards), "mean_reward": fmean(rewards), "seconds": seconds, **watch.figures()}


RUNS = {"chat": chat, "environments": environments, "hostile": limits}

if __name__ == "__main__":
    main()
