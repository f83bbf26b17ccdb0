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

from rubric_env.evidence._turns import processes
from rubric_env.evidence._workers import WorkerDied, Workers

CPU_SECONDS = 20
"""For one task; one of a hundred slides needs a tenth."""


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


def perform(tool: str, arguments: dict[str, Any], root: Path, name: str, source: bytes | None = None) -> Made:
    """Make the file called `name`, or what `source` becomes when it is edited. Blocks for as long as it takes.

    Raises OfficeError, and OSError for what is the machine's fault.
    """
    suffix = Path(name).suffix.lower()
    with tempfile.TemporaryDirectory(prefix="rubric-env-office-") as made:
        copy, target = Path(made, f"source{suffix}"), Path(made, f"target{suffix}")
        if source is not None:
            copy.write_bytes(source)
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
    shared = Workers(processes(), "rubric_env.office._worker")
    atexit.register(shared.stop)
    os.register_at_fork(after_in_child=workers.cache_clear)
    return shared
