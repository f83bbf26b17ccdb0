"""The process that parses what a policy delivered: `python -m rubric_env.evidence._worker`, one job a line.

It may crash, hang or ask for all memory: that costs the file, never the judge. Jobs come on stdin, results go out on
what was stdout; whatever a library prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_env.evidence._extract import Unit, Unreadable
from rubric_env.evidence._reading import Reading

MEMORY = 2 * 2**30
"""Bytes of address space: an ordinary office file needs a tenth."""

CPU_SECONDS = 60
"""For the text of one file; a 300-slide deck needs a tenth."""

WRITTEN = 256 * 2**20
"""Bytes of one file that a reader writes."""

UNITS = 64 * 2**20
"""Bytes of passages kept of one file, far above what any budget shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """Read the file at `path`, delivered under a name that ended in `suffix`, into `folder`."""

    path: str
    suffix: str
    folder: str
    cpu_seconds: int = CPU_SECONDS


def read(job: Job) -> dict[str, Any]:
    """What goes into `meta.json`; the passages go into `units.jsonl`."""
    from rubric_env.evidence.kinds import NotRead, identify

    reading = Reading(Path(job.path), Path(job.folder))
    kind_name = "unknown"
    count = 0
    try:
        kind, note = identify(reading.path, job.suffix)
        kind_name = kind.name
        if note:
            reading.note(note)
        assert kind.units is not None
        count = _write(kind.units(reading), reading)
        status, note = "read" if count else "empty", ""
    except NotRead as error:
        kind_name, status, note = error.kind, "unsupported", str(error)
    except Unreadable as error:
        status, note = "unreadable", str(error)
    except MemoryError:
        status, note = "unreadable", f"reading it needs more than {MEMORY // 2**20:,} MB of memory"
    except Exception as error:
        # Broken files raise anything. What came before it stays.
        count = reading.facts.pop("_units", 0)
        reading.lost("the rest of the file", error)
        status, note = ("read", "") if count else ("unreadable", f"it cannot be parsed ({type(error).__name__})")
    return {
        "kind": kind_name,
        "status": status,
        "note": note,
        "notes": reading.notes,
        "errors": reading.errors,
        "cut": reading.cut,
        "units": count,
        "facts": {name: value for name, value in reading.facts.items() if not name.startswith("_")},
    }


def _write(units: Iterator[Unit], reading: Reading) -> int:
    size = count = 0
    with (reading.folder / "units.jsonl").open("w", encoding="utf-8", errors="backslashreplace") as stream:
        for unit in units:
            if size > UNITS:
                reading.skipped(f"only the first {UNITS // 2**20} MB of its text were kept")
                break
            size += stream.write(json.dumps(unit, ensure_ascii=False) + "\n")
            count += 1
            reading.facts["_units"] = count
    return count


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for limit, value in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, WRITTEN)):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _limit_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds, hard))


def main() -> None:
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    _limit()
    for line in sys.stdin:
        job = Job(**json.loads(line))
        _limit_cpu(job.cpu_seconds)
        results.write(json.dumps(read(job)) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
