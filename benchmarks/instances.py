"""A user's folder of thousands of instances as a data set: seconds, beside reading and parsing the same files bare.

    python benchmarks/instances.py [--quick] [--json]

The goal: 4,312 instances in under 5 s, and an environment that is there at once (the folder is read when the data set
is asked for, by the parent of an env server and not by its workers).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rubric_env.classic import Family, build_environment

SHIPPED = Path(__file__).parent.parent / "environments"
INSTANCES = 4312
GOAL_SECONDS = 5.0
LOCAL = {"settings": {"backend": "local"}}


def copies(folder: Path, number: int) -> None:
    """`number` instances: those that ship, over and over."""
    shipped = sorted(path for path in SHIPPED.glob("*/harbor_*/instances/*") if path.is_dir())
    for n in range(number):
        source = shipped[n % len(shipped)]
        shutil.copytree(source, folder / f"{n:05d}-{source.name}", ignore=shutil.ignore_patterns("recordings"))


def read_bare(folder: Path) -> int:
    """What cannot be avoided: every rubric, task.toml and text is opened and parsed. Returns the number of rubrics."""
    found = 0
    for instance in sorted(folder.iterdir()):
        json.loads((instance / "tests/rubric.json").read_bytes())
        tomllib.loads((instance / "task.toml").read_text("utf-8"))
        for name in ("instruction.md", "tests/task_prompt.md", "tests/judge_instruction.md"):
            (instance / name).read_text("utf-8")
        for path in (instance / "tests/expected_output").iterdir():
            path.read_bytes()
        found += 1
    return found


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def measure(number: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        copies(Path(folder), number)
        read_bare(Path(folder))  # so that neither pays for the disk
        bare, _ = timed(lambda: read_bare(Path(folder)))
        made, environment = timed(lambda: build_environment(Family("bench", Path(folder)), judge=LOCAL, sandbox="off"))
        loaded, dataset = timed(environment.get_dataset)
        assert len(dataset) == number
    return {
        "instances": number,
        "environment_s": made,
        "data_set_s": loaded,
        "bare_s": bare,
        "ratio": loaded / bare,
        "seconds_for_4312": loaded * INSTANCES / number,
        "met": loaded * INSTANCES / number < GOAL_SECONDS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer instances")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON object")
    arguments = parser.parse_args()
    figures = measure(1000 if arguments.quick else INSTANCES)
    if arguments.json:
        print(json.dumps(figures))
    else:
        table = Table("", "s", title=f"{figures['instances']} instances")
        table.add_row("the environment is made", f"{figures['environment_s']:.2f}")
        table.add_row("its data set is loaded", f"{figures['data_set_s']:.2f}")
        table.add_row("the same files read and parsed, no more", f"{figures['bare_s']:.2f}")
        Console().print(table, f"{figures['ratio']:.1f} × reading; goal for 4,312: under {GOAL_SECONDS:g} s")
    sys.exit(not figures["met"])


if __name__ == "__main__":
    main()
