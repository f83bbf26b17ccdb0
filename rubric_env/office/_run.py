"""The side of the environment: a task goes to a worker process, its file comes back."""

from __future__ import annotations

import atexit
import errno
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rubric_env.evidence._workers import WorkerDied, Workers
from rubric_env.submission import open_regular

LARGEST = 64 * 2**20
"""Bytes of a file that is edited, as it lies on the disk."""

CPU_SECONDS = 20
"""For one task; one of a hundred slides needs a tenth."""

AT_A_TIME = min(2, os.cpu_count() or 1)

_LIBRARIES = {"docx": "python-docx", "openpyxl": "openpyxl", "pptx": "python-pptx", "markdown_it": "markdown-it-py"}


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


def missing_library() -> str:
    """The distribution that the tools lack here, empty when all are installed."""
    return next((name for module, name in _LIBRARIES.items() if find_spec(module) is None), "")


def perform(
    tool: str, arguments: dict[str, Any], root: Path, file: Path, keep: Callable[[Path], object], *, edit: bool
) -> str:
    """Make or edit `file`, give the result to `keep` (a path that is removed afterwards), and say what was done.

    Blocks for as long as it takes. Raises OfficeError, and OSError for what is the machine's fault.
    """
    with tempfile.TemporaryDirectory(prefix="rubric-env-office-") as made:
        folder = Path(made)
        source = folder / f"source{file.suffix}"
        target = folder / f"target{file.suffix}"
        if edit:
            _copy(file, source)
        task = Task(tool, arguments, str(root), str(source) if edit else "", str(target))
        try:
            result = workers().do(task)
        except WorkerDied as died:
            if died.ours:
                raise OSError(errno.EIO, f"the office worker failed: {died}") from None
            raise OfficeError(f"too much for this tool, nothing was written ({died})") from None
        if "machine" in result:
            raise OSError(result["machine"], f"the office worker failed: {os.strerror(result['machine'])}")
        if "refused" in result:
            raise OfficeError(result["refused"])
        keep(target)
        return str(result["said"])


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
