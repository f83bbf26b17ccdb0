"""The side of the environment: a task goes to a worker process, its file comes back."""

from __future__ import annotations

import atexit
import errno
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rubric_env.evidence._workers import WorkerDied, Workers
from rubric_env.submission import open_regular

LARGEST = 64 * 2**20
"""Bytes of a file that is edited, as it lies on the disk."""

CPU_SECONDS = 20
"""For one task; one of a hundred slides needs a tenth."""

AT_A_TIME = min(2, os.cpu_count() or 1)


class OfficeError(Exception):
    """What is wrong with the arguments or the file; the message names every problem and what helps."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does: `tool` with `arguments`. It reads pictures below `root`, and writes `target` alone.

    `source` is a private copy of the file to be edited, empty when a file is made.
    """

    tool: str
    arguments: dict[str, Any]
    root: str
    source: str = ""
    target: str = ""
    cpu_seconds: int = CPU_SECONDS


class Made(NamedTuple):
    """A file, and what is said of it."""

    data: bytes
    said: str


def perform(tool: str, arguments: dict[str, Any], root: Path, name: str, source: Path | None = None) -> Made:
    """Make the file called `name`, or edit a copy of `source`. Blocks for as long as it takes.

    Raises OfficeError, and OSError for what is the machine's fault.
    """
    suffix = Path(name).suffix.lower()
    with tempfile.TemporaryDirectory(prefix="rubric-env-office-") as made:
        copy, target = Path(made, f"source{suffix}"), Path(made, f"target{suffix}")
        if source is not None:
            _copy(source, copy)
        task = Task(tool, arguments, str(root), str(copy) if source is not None else "", str(target))
        try:
            result = workers().do(task)
        except WorkerDied as died:
            if died.ours:
                raise OSError(errno.EIO, f"the office worker failed: {died}") from None
            raise OfficeError(f"it is too much for this tool; nothing was written ({died})") from None
        if "machine" in result:
            raise OSError(result["machine"], f"the office worker failed: {os.strerror(result['machine'])}")
        if "refused" in result:
            raise OfficeError(result["refused"])
        return Made(target.read_bytes(), str(result["said"]))


@cache
def workers() -> Workers:
    """Those of this process."""
    shared = Workers(AT_A_TIME, "rubric_env.office._worker")
    atexit.register(shared.stop)
    os.register_at_fork(after_in_child=workers.cache_clear)
    return shared


def _copy(file: Path, target: Path) -> None:
    with open_regular(file) as opened:
        data = opened.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OfficeError(f"larger than {LARGEST // 2**20} MB")
    target.write_bytes(data)
