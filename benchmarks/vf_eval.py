"""vf-eval with our judges beside vf-eval with those that verifiers brings: what it costs, and what scores come out.

    python benchmarks/vf_eval.py [--quick] [--json]

20 tasks, 4 rollouts of each, 16 rollouts at a time: a policy on loopback writes one report a rollout, whose 12 rows are
met or not as the scripted judge endpoint knows beforehand; a judge call takes 0.2 s. All runs are of one release of
verifiers, 0.3.1: `vf-eval` with its classic environments, `eval` with verifiers.v1. Then the same while 10 % of the
judge calls fail, drawn with a fixed seed: rate limited, server error, garbage, an empty answer, a closed socket.

HarborRubric and HarborJudge ask for 4 rows a call, their default, and all calls of a rollout at a time, as the others
do, who know no limit. RubricJudge asks for 4 rows a call too, and for all, its default. JudgeRubric has no blocks: its
own question is about one row; beside it stands a reward function that asks for 4 rows, and for all 12, with a prompt of
its own. JudgeRubric sends an empty question to the judge in all releases that have it, which saves the task's tokens.
The runs without a judge show what verifiers costs by itself.

`wall` is that of the command, `judging` from the first judge call to the last answer, `cpu` that of the command with
its workers. Tokens are characters ÷ 4; a JudgeRubric's yes or no costs hardly any, and gives no reason. `mean` is what
the command reports as average reward, `truth` what it should be. Medians of 3 runs, the order turned each time, after
one run that is thrown away. `--quick`: 4 tasks, one run with failures, no worker processes, 4 rows a call only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from subprocess import PIPE, STDOUT, Popen
from tempfile import TemporaryDirectory
from typing import Any

from _endpoint import Endpoint, Plan, endpoints
from peers.__main__ import QUIET
from peers.job import MODEL, criterion, expected
from peers.ours import rubric
from rich.console import Console
from rich.table import Table

from tests.servers.scenarios import SCENARIOS

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
ROWS, BATCH, ROLLOUTS, AT_ONCE = 12, 4, 4, 16
SETTINGS = {"concurrency": ROWS // BATCH, "max_in_flight": AT_ONCE * ROWS // BATCH}
LATENCY = 0.2
FAILING = 0.1
MIX = tuple(SCENARIOS[name] for name in ("429", "500", "garbage", "empty", "drop"))
COSTS = ("calls", "wall_s", "judging_s", "cpu_s", "input_tokens", "output_tokens", "max_in_flight", "mean", "truth")
ENDS = ("exact", "wrong, silently", "of these 0", "wrong, and says so", "lost")
Figures = dict[str, Any]
END = re.compile(r"Report no\. (\d+)\.")


@dataclass(frozen=True)
class Contender:
    """`answers` is the module of `peers` in whose form the judge endpoint answers; `batch` None: all rows in a call."""

    name: str
    judge: str
    answers: str = "ours"
    batch: int | None = BATCH
    v1: bool = False
    quick: bool = True

    def command(self, policy: str, judge: str, tasks: int, folder: Path) -> list[str]:
        return (self._v1 if self.v1 else self._classic)(policy, judge, tasks, folder)

    def _classic(self, policy: str, judge: str, tasks: int, folder: Path) -> list[str]:
        arguments = {"judge": self.judge, "base_url": judge, "rows": ROWS, "examples": tasks}
        arguments |= {"batch": self.batch or ROWS, "settings": SETTINGS}
        where = ["-m", "policy", "-b", policy, "-k", "POLICY_KEY", "-o", str(folder), "-s", "-d"]
        size = ["-n", str(tasks), "-r", str(ROLLOUTS), "-c", str(AT_ONCE), "-C", "judge_result"]
        return [str(BIN / "vf-eval"), "_vf-classic", "-a", json.dumps(arguments), *where, *size]

    def _v1(self, policy: str, judge: str, tasks: int, folder: Path) -> list[str]:
        entry: dict[str, Any] = {"id": self.judge, "model": MODEL, "base_url": judge, "api_key_var": "OPENAI_API_KEY"}
        if self.judge == "rubric":
            file = folder / "rubric.json"
            names = [{"name": f"R{n:02}", "text": criterion(n)} for n in range(1, ROWS + 1)]
            file.write_text(json.dumps({"criteria": names}), "utf-8")
            entry |= {"path": str(file), "view": "last_reply", "max_criteria": self.batch}
        else:
            entry |= {"rubric": rubric(ROWS), "settings": SETTINGS}
        plugged = [] if self.judge == "none" else [entry]
        where = ["-m", "policy", "--client.base-url", policy, "--client.api-key-var", "POLICY_KEY", "-o", str(folder)]
        size = ["-n", str(tasks), "-r", str(ROLLOUTS), "-c", str(AT_ONCE), "--no-push", "--rich", "None"]
        agent = ["--env.agent.harness.id", "loopback_policy", "--env.agent.runtime.type", "subprocess"]
        tasks_of = ["--env.taskset.examples", str(tasks), "--env.taskset.task.judges", json.dumps(plugged)]
        return [str(BIN / "eval"), "_vf-tasks", *tasks_of, *agent, *where, *size]


CONTENDERS = (
    Contender("HarborRubric", "ours"),
    Contender("JudgeRubric, 4 rows a call", "JudgeRubric", "judge_rubric"),
    Contender("JudgeRubric, 12 rows a call", "JudgeRubric", "judge_rubric", batch=None, quick=False),
    Contender("JudgeRubric, a row a call", "JudgeRubric", "judge_rubric", batch=1, quick=False),
    Contender("classic, no judge", "none", quick=False),
    Contender("v1: HarborJudge", "rubric_judge", v1=True),
    Contender("v1: RubricJudge, 4 rows a call", "rubric", "verifiers", v1=True),
    Contender("v1: RubricJudge, 12 rows a call", "rubric", "verifiers", batch=None, v1=True, quick=False),
    Contender("v1: no judge", "none", v1=True, quick=False),
)


def run(contender: Contender, tasks: int, failing: float, *, workers: bool = True) -> Figures:
    """One run of the command."""
    judge = Plan(contender.answers, (LATENCY,), mix=MIX, share=failing)
    with endpoints([Plan(policy=True, latencies=(0.05,)), judge]) as (policy, server), TemporaryDirectory() as folder:
        command = contender.command(policy.base_url, server.base_url, tasks, Path(folder))
        if not workers:
            command.append("--no-serve" if contender.v1 else "--disable-env-server")
        spent = timed(command, Path(folder))
        read = read_v1 if contender.v1 else read_classic
        rows, mean = read(Path(folder))
        return spent | ends(rows) | judged(server) | {"mean": mean, "truth": fmean(row["truth"] for row in rows)}


def timed(command: Sequence[str], folder: Path) -> Figures:
    """Wall seconds, and CPU seconds with all that the command started and waited for."""
    hidden = ("JUDGE_", "OPENAI_", "PRIME_", "HTTP", "http")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= QUIET | {"POLICY_KEY": "key", "HF_DATASETS_OFFLINE": "1", "TMPDIR": str(folder)}
    paths = (HERE, HERE.parent, HERE.parent / "tests" / "v1" / "harness")
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    began = time.perf_counter()
    with Popen(command, env=environment, cwd=folder, stdout=PIPE, stderr=STDOUT, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}\n{said[-3000:]}")
    return {"wall_s": time.perf_counter() - began, "cpu_s": used.ru_utime + used.ru_stime}


def judged(server: Endpoint) -> Figures:
    seen = server.figures()
    return {
        "calls": seen["calls"],
        "judging_s": seen["span_s"],
        "input_tokens": seen["request_mb"] * 1e6 / 4,
        "output_tokens": seen["message_mb"] * 1e6 / 4,
        "max_in_flight": seen["max_in_flight"],
    }


def read_classic(folder: Path) -> tuple[list[Figures], float]:
    """What became of each rollout, and the average that vf-eval reports."""
    (results,) = folder.rglob("results.jsonl")
    (metadata,) = folder.rglob("metadata.json")
    rows = []
    for line in results.read_text("utf-8").splitlines():
        row = json.loads(line)
        truth = truth_of(row["completion"][-1]["content"])
        told = row["metrics"].get("judge_coverage", 1.0) < 1
        rows.append({"truth": truth, "score": None if row["error"] else row["reward"], "told": told})
    return rows, json.loads(metadata.read_text("utf-8"))["avg_reward"]


def read_v1(folder: Path) -> tuple[list[Figures], float]:
    (results,) = folder.rglob("traces.jsonl")
    rows = []
    for line in results.read_text("utf-8").splitlines():
        for trace in json.loads(line)["traces"]:
            said = [node["message"]["content"] for node in trace["nodes"] if node["message"]["role"] == "assistant"]
            scores = [reward["score"] for reward in trace["rewards"].values() if reward]
            score = sum(scores) if scores and not trace["errors"] else None
            told = trace["metrics"].get("judge_coverage", 1.0) < 1
            rows.append({"truth": truth_of(said[-1]), "score": score, "told": told})
    # The dashboard's average leaves out what was not scored.
    scores = [row["score"] for row in rows if row["score"] is not None]
    return rows, fmean(scores) if scores else 0.0


def truth_of(reply: str) -> float:
    found = END.search(reply)
    assert found is not None
    return expected(int(found[1]), ROWS)


def ends(rows: Sequence[Mapping[str, Any]]) -> Figures:
    """How many rollouts ended in which way."""
    count = dict.fromkeys(ENDS, 0)
    for row in rows:
        if row["score"] is None:
            count["lost"] += 1
        elif abs(row["score"] - row["truth"]) < 1e-6:
            count["exact"] += 1
        elif row["told"]:
            count["wrong, and says so"] += 1
        else:
            count["wrong, silently"] += 1
            count["of these 0"] += row["score"] == 0
    return count


def compared(
    contenders: Sequence[Contender], tasks: int, runs: int, failing: float, *, workers: bool = True
) -> dict[str, Figures]:
    """Medians over the runs; the contenders take turns."""
    found: dict[str, list[Figures]] = {contender.name: [] for contender in contenders}
    for number in range(runs):
        turn = number % len(contenders)
        for contender in (*contenders[turn:], *contenders[:turn]):
            print(f"{contender.name}, run {number + 1} of {runs} …", file=sys.stderr, flush=True)
            found[contender.name].append(run(contender, tasks, failing, workers=workers))
    return {name: {column: median(one[column] for one in done) for column in done[0]} for name, done in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 tasks, one run, within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    tasks, runs = (4, 1) if options.quick else (20, 3)
    contenders = [contender for contender in CONTENDERS if contender.quick or not options.quick]
    if not options.quick:
        for contender in contenders[:1] + [one for one in contenders if one.v1][:1]:
            run(contender, 1, 0.0)
    costs = {} if options.quick else compared(contenders, tasks, runs, 0.0)
    judging = [contender for contender in contenders if contender.judge != "none"]
    failures = compared(judging, tasks, runs, FAILING, workers=not options.quick)
    if options.json:
        print(json.dumps({"load": os.getloadavg()[0], "costs": costs, "failures": failures}, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 150)
    if costs:
        console.print(table(f"{tasks * ROLLOUTS} rollouts × {ROWS} rows, {LATENCY} s a call", costs, COSTS))
    title = f"{tasks * ROLLOUTS} rollouts, {FAILING:.0%} of the calls fail"
    console.print(table(title, failures, (*ENDS, "mean", "truth", "calls", "wall_s", "judging_s", "cpu_s")))


def table(title: str, found: Mapping[str, Figures], columns: Sequence[str]) -> Table:
    made = Table("", *columns, title=title)
    for name, figures in found.items():
        made.add_row(name, *(cell(column, figures[column]) for column in columns))
    return made


def cell(column: str, value: float) -> str:
    if column in ("mean", "truth"):
        return f"{value:.3f}"
    return f"{value:.1f}" if column.endswith("_s") else f"{value:,.0f}"


if __name__ == "__main__":
    main()
