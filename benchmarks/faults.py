"""What judges return when their endpoint fails, ours and its peers'.

    python benchmarks/faults.py [--quick] [--json]

One rollout of 12 rows through every trouble of `tests/servers/fault_matrix.py`; a call may take 3 s wherever that can
be set, a rollout of ours 20 s. Each cell: what comes back (the exact score is 0.75), how many calls, how many seconds.
`--quick`: ours alone, without the troubles that take it long. Peers need `make bench-peers`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from _endpoint import Plan
from _run import NOT_INSTALLED, OURS, PEERS, Contender, Figures, contend
from peers.job import expected
from rich.console import Console
from rich.table import Table

from tests.servers.fault_matrix import ROWS, TROUBLES, Trouble

TIMEOUT = 3.0
DEADLINE = 20.0
PATIENCE = 60.0
"""Seconds after which a contender that is still waiting is stopped."""


def outcome(trouble: Trouble, figures: Figures) -> str:
    """`exact`, `None`, `exception`, another score (`!`: it says nothing of what failed), or `–`: it cannot happen."""
    if trouble.scenario.name != "ok" and not figures["struck"]:
        return "–"
    if "failed" in figures:
        return str(figures["failed"])
    (result,) = figures["results"]
    score, said = result["score"], bool(result["flag"])
    if result["error"]:
        return "exception"
    if score is None:
        return "None"
    if abs(score - expected(0, ROWS)) < 1e-3:
        return "exact"
    return f"{score:.2f}{'' if said else ' !'}"


def run(contender: Contender, troubles: Sequence[Trouble]) -> list[Figures]:
    plans = [Plan(contender.module, (0.01,), trouble=trouble) for trouble in troubles]
    job = {"rollouts": 1, "rows": ROWS, "timeout": TIMEOUT, "deadline": DEADLINE}
    return list(contend(contender, plans, job, PATIENCE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="ours alone, within a minute")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    options = parser.parse_args()
    troubles = [trouble for trouble in TROUBLES if not (options.quick and trouble.takes_long)]
    contenders = (OURS,) if options.quick else (OURS, *PEERS)
    found: dict[str, Any] = {}
    for contender in contenders:
        print(f"{contender.name} …", file=sys.stderr, flush=True)
        if contender.interpreter is None:
            found[contender.name] = NOT_INSTALLED
            continue
        found[contender.name] = {
            trouble.name: {
                "outcome": outcome(trouble, figures),
                "calls": figures["calls"],
                "seconds": figures.get("wall_s"),
            }
            | {name: figures["results"][0][name] for name in ("error", "flag") if "results" in figures}
            for trouble, figures in zip(troubles, run(contender, troubles), strict=True)
        }
    if options.json:
        print(json.dumps(found, indent=2))
        return
    table = Table("trouble", *found, title="what comes back (calls, seconds); ! = a wrong score that says nothing")
    for trouble in troubles:
        table.add_row(
            trouble.name, *(cell(row if isinstance(row, str) else row[trouble.name]) for row in found.values())
        )
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def cell(entry: str | dict[str, Any]) -> str:
    if isinstance(entry, str):
        return entry
    if entry["outcome"] == "–":
        return "–"
    seconds = "" if entry["seconds"] is None else f", {entry['seconds']:.1f} s"
    return f"{entry['outcome']} ({entry['calls']:.0f}{seconds})"


if __name__ == "__main__":
    main()
