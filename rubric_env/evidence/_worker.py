"""The process that parses what a policy delivered: `python -m rubric_env.evidence._worker`, one job a line.

It may crash, hang or ask for all memory: that costs the file, never the judge. Jobs come on stdin, results go out on
what was stdout; whatever a library prints goes nowhere.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
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

LONG_SIDE = 1080
"""Pixels of a page's longer side: text of 10 pt stays legible, and a judge's endpoint does not shrink it further."""

UNITS = 64 * 2**20
"""Bytes of passages kept of one file, far above what any budget shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """Read the file at `path`, delivered under a name that ended in `suffix`, into `folder`."""

    path: str
    suffix: str
    folder: str
    cpu_seconds: int = CPU_SECONDS


@dataclass(frozen=True, slots=True)
class Draw:
    """Draw the pages of the PDF at `path` as PNG files `{folder}/{stem}-001.png`, at most `pages` of them."""

    path: str
    folder: str
    stem: str
    pages: int
    cpu_seconds: int = CPU_SECONDS


def read(job: Job) -> dict[str, Any]:
    """What goes into `meta.json`; the passages go into `units.jsonl`."""
    from rubric_env.evidence.kinds import NotRead, identify

    started = time.monotonic()
    reading = Reading(Path(job.path), Path(job.folder))
    kind_name = "unknown"
    count = 0
    try:
        kind, note = identify(reading.path, job.suffix)
        kind_name = kind.name
        if note:
            reading.note(note)
        if kind.units is None:
            status, note = "text", note
        else:
            count = _write(kind.units(reading), reading)
            status, note = "read" if count else "empty", ""
    except NotRead as error:
        kind_name, status, note = error.kind, "unsupported", str(error)
    except Unreadable as error:
        status, note = "unreadable", str(error)
    except MemoryError:
        status, note = "unreadable", f"reading it needs more than {MEMORY // 2**20:,} MB of memory"
    except ModuleNotFoundError as error:
        status, note = "unsupported", f"reading it needs {error.name}: pip install 'rubric-env[office]'"
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
        "seconds": round(time.monotonic() - started, 3),
        "facts": {name: value for name, value in reading.facts.items() if not name.startswith("_")},
    }


def draw(job: Draw) -> dict[str, Any]:
    """`pages` that the PDF has, and `drawn`: number, width and height in pixels of each page that was drawn."""
    import pypdfium2

    Path(job.folder).mkdir(parents=True, exist_ok=True)
    try:
        document = pypdfium2.PdfDocument(job.path)
    except pypdfium2.PdfiumError as error:
        return {"pages": 0, "drawn": [], "note": f"the PDF cannot be opened: {error}"}
    drawn = []
    for number in range(min(len(document), job.pages)):
        page = document[number]
        width, height = page.get_size()
        picture = page.render(scale=LONG_SIDE / max(width, height, 1.0)).to_pil()
        picture.save(Path(job.folder) / f"{job.stem}-{number + 1:03}.png")
        drawn.append([number + 1, picture.width, picture.height])
        page.close()
    return {"pages": len(document), "drawn": drawn, "note": ""}


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
        work, fields = json.loads(line)
        _limit_cpu(fields["cpu_seconds"])
        results.write(json.dumps(read(Job(**fields)) if work == "Job" else draw(Draw(**fields))) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
