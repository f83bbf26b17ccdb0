"""The survey's job through ours and through its peers: what it costs, and what comes back when calls fail.

    python benchmarks/survey.py [--quick] [--json]

40 rollouts of 12 rows, 16 calls in flight, 0.2 s a call; each contender makes the calls that its documentation
recommends, in an interpreter of its own. Then the same job while 20 % of the calls fail, drawn with a fixed seed: rate
limited, server error, garbage, an empty answer, a socket closed after 3 s. Wall and CPU seconds are of the judging,
imports apart; memory is the peak of the process. `--quick`: 8 rollouts, ours and the bare client alone. Peers need
`make bench-peers`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from _endpoint import Plan
from _run import BARE, NOT_INSTALLED, OURS, PEERS, Contender, Figures, contend
from peers.job import expected
from rich.console import Console
from rich.table import Table

from tests.servers.scenarios import SCENARIOS

ROLLOUTS, ROWS, IN_FLIGHT = 40, 12, 16
LATENCY = 0.2
FAILING = 0.2
MIX = (
    SCENARIOS["429"],
    SCENARIOS["500"],
    SCENARIOS["garbage"],
    SCENARIOS["empty"],
    replace(SCENARIOS["drop"], latency=3.0),
)
COSTS = ("calls", "wall_s", "cpu_s", "peak_mb", "max_in_flight", "connections", "request_mb", "setup_s")
ENDS = ("exact", "wrong, silently", "of these 0", "wrong, and says so", "None", "exception")


def costs(contender: Contender, rollouts: int, repeats: int) -> Figures:
    """Medians over the runs, each in a fresh interpreter."""
    job = {"rollouts": rollouts, "rows": ROWS, "concurrency": IN_FLIGHT}
    plan = Plan(contender.module, (LATENCY,))
    runs = [figures for _ in range(repeats) for figures in contend(contender, [plan], job)]
    if broken := [run["failed"] for run in runs if "failed" in run]:
        return {"failed": broken[0]}
    if any(ends(run["results"])["exact"] < rollouts for run in runs):
        return {"failed": "wrong scores"}
    return {name: median(run[name] for run in runs) for name in COSTS}


def failures(contender: Contender, rollouts: int) -> Figures:
    job = {"rollouts": rollouts, "rows": ROWS, "concurrency": IN_FLIGHT}
    plan = Plan(contender.module, (LATENCY,), mix=MIX, share=FAILING)
    (run,) = contend(contender, [plan], job)
    if "failed" in run:
        return run
    return {name: run[name] for name in ("calls", "wall_s")} | ends(run["results"])


def ends(results: Sequence[dict[str, Any]]) -> dict[str, int]:
    """How many rollouts ended in which way."""
    count = dict.fromkeys(ENDS, 0)
    for number, result in enumerate(results):
        score = result["score"]
        if result["error"]:
            count["exception"] += 1
        elif score is None:
            count["None"] += 1
        elif abs(score - expected(number, ROWS)) < 1e-3:
            count["exact"] += 1
        elif result["flag"]:
            count["wrong, and says so"] += 1
        else:
            count["wrong, silently"] += 1
            count["of these 0"] += score == 0
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="8 rollouts, without peers, within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    rollouts, repeats = (8, 1) if options.quick else (ROLLOUTS, 3)
    found: dict[str, Any] = {}
    for contender in (OURS, BARE) if options.quick else (OURS, BARE, *PEERS):
        print(f"{contender.name} …", file=sys.stderr, flush=True)
        if contender.interpreter is None:
            found[contender.name] = NOT_INSTALLED
            continue
        entry = {"load": os.getloadavg()[0], "costs": costs(contender, rollouts, repeats)}
        if contender is not BARE:
            entry["failures"] = failures(contender, rollouts)
        found[contender.name] = entry
    if options.json:
        print(json.dumps(found, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table(f"{rollouts} rollouts × {ROWS} rows, {LATENCY} s a call", found, "costs", COSTS))
    title = f"the same with {FAILING:.0%} of the calls failing: how the {rollouts} rollouts end"
    console.print(table(title, found, "failures", (*ENDS, "calls", "wall_s")))


def table(title: str, found: dict[str, Any], part: str, columns: Sequence[str]) -> Table:
    made = Table("", *columns, title=title)
    for name, entry in found.items():
        if isinstance(entry, str):
            made.add_row(name, entry)
        elif figures := entry.get(part):
            made.add_row(name, *([figures["failed"]] if "failed" in figures else cells(figures, columns)))
    return made


def cells(figures: Figures, columns: Sequence[str]) -> list[str]:
    return [
        f"{figures[column]:.2f}" if column.endswith(("_s", "_mb")) else f"{figures[column]:.0f}" for column in columns
    ]


if __name__ == "__main__":
    main()
