"""The process that parses what a policy delivered: `python -m rubric_env.evidence._worker`, one job a line.

It may crash, hang or ask for all memory: that costs the file, never the judge. Jobs come on stdin, results go out on
what was stdout; whatever a library prints goes nowhere.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_env.evidence._decode import clean
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

NOTES, NOTE = 20, 300
"""What is said of one file as a whole, and the characters of one such line: sheets may have names of megabytes."""

ERRORS = 1000
"""Parts of one file named that could not be extracted."""

FACTS = 64 * 2**10
"""Bytes of facts kept of one file."""

LINE = 100_000
"""Characters of a line of `units.jsonl`, so that who reads one file holds little of it: long passages take several."""

DRAWING_SHARE = 0.7
"""Of the CPU seconds for drawing, after which no new page is begun, so that those which are done are not lost."""

UNITS = 64 * 2**20
"""Bytes of passages kept of one file, far above what any budget shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """Read the file at `path`, delivered under a name that ended in `suffix`, into `folder`.

    `calculated` is a copy of a workbook with the values of its formulas, where there is one.
    """

    path: str
    suffix: str
    folder: str
    cpu_seconds: int = CPU_SECONDS
    calculated: str = ""


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

    started = time.process_time()
    reading = Reading(Path(job.path), Path(job.folder), calculated=Path(job.calculated) if job.calculated else None)
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
    meta = {
        "kind": kind_name,
        "status": status,
        "note": _shortened(note),
        "notes": _few(reading.notes),
        "errors": reading.errors[:ERRORS],
        "ours": reading.failed and status in ("read", "empty"),
        "cut": reading.cut,
        "units": count,
        "seconds": round(time.process_time() - started, 3),
        "facts": _small(reading.facts),
    }
    # Half a character in a name or a message could be neither saved nor sent on.
    whole: dict[str, Any] = json.loads(clean(json.dumps(meta, ensure_ascii=False)))
    return whole


def draw(job: Draw) -> dict[str, Any]:
    """`pages` that the PDF has, `drawn`: number, width and height in pixels of each page that was drawn, and `note`.

    `late` says that its time was over before the last of them.
    """
    import pypdfium2

    Path(job.folder).mkdir(parents=True, exist_ok=True)
    try:
        document = pypdfium2.PdfDocument(job.path)
    except pypdfium2.PdfiumError as error:
        return {"pages": 0, "drawn": [], "note": f"the PDF cannot be opened: {error}", "late": False}
    drawn, broken, ended = [], [], "in time"
    wanted = min(len(document), job.pages)
    end = time.process_time() + DRAWING_SHARE * job.cpu_seconds
    for number in range(wanted):
        try:
            page = document[number]
            width, height = page.get_size()
            picture = page.render(scale=LONG_SIDE / max(width, height, 1.0)).to_pil()
            picture.save(Path(job.folder) / f"{job.stem}-{number + 1:03}.png")
            page.close()
        except OSError as error:
            # A full disk is not the file's doing.
            ended = f"({(error.strerror or str(error)).lower()})"
            break
        except (pypdfium2.PdfiumError, ValueError, MemoryError):
            broken.append(number + 1)
        else:
            drawn.append([number + 1, picture.width, picture.height])
        if time.process_time() > end:
            break
    late = len(drawn) + len(broken) < wanted
    notes = [f"only {len(drawn)} pages were drawn {ended}"] if late else []
    notes += [f"pages that cannot be drawn: {', '.join(map(str, broken))}"] if broken else []
    return {"pages": len(document), "drawn": drawn, "note": "; ".join(notes), "late": late}


def _few(notes: list[str]) -> list[str]:
    """The notes that say most: how much there is, and what is wrong, stand at the ends."""
    notes = [_shortened(note) for note in notes]
    if len(notes) <= NOTES:
        return notes
    return [*notes[: NOTES // 2], f"and {len(notes) - NOTES:,} more such notes", *notes[-NOTES // 2 :]]


def _shortened(note: str) -> str:
    note = " ".join(note.split())
    return note if len(note) <= NOTE else f"{note[: NOTE - 50]} … {note[-45:]}"


def _small(facts: dict[str, Any]) -> dict[str, Any]:
    """Without those that a file made huge."""
    named = {name: value for name, value in facts.items() if not name.startswith("_")}
    return {name: value for name, value in named.items() if len(json.dumps(value)) <= FACTS}


def _lines(unit: Unit) -> Iterator[Unit]:
    # What a reader took from JSON may be anything.
    unit = Unit(*(clean(str(part)) for part in unit))
    start, text = 0, unit.text
    while len(text) - start > LINE:
        end = text.rfind(" ", start + LINE // 2, start + LINE) + 1 or start + LINE
        yield unit._replace(text=text[start:end])
        start = end
    yield unit._replace(text=text[start:])


def _write(units: Iterator[Unit], reading: Reading) -> int:
    size = count = 0
    with (reading.folder / "units.jsonl").open("w", encoding="utf-8", errors="backslashreplace") as stream:
        for unit in units:
            if size > UNITS:
                reading.skipped(f"only the first {UNITS // 2**20} MB of its text were kept")
                break
            for line in _lines(unit):
                size += stream.write(json.dumps(line, ensure_ascii=False) + "\n")
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
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(used.ru_utime + used.ru_stime) + seconds, hard))


def serve(handlers: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]) -> None:
    """Do the jobs that come on stdin until it ends: each names its handler and the CPU seconds that it may take now."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    _limit()
    for line in sys.stdin:
        work, cpu_seconds, fields = json.loads(line)
        _limit_cpu(cpu_seconds)
        results.write(json.dumps(handlers[work](fields)) + "\n")
        results.flush()


if __name__ == "__main__":
    serve({"Job": lambda fields: read(Job(**fields)), "Draw": lambda fields: draw(Draw(**fields))})
