"""One run: a folder goes in through a pipe, a program runs, what it left comes out through another."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rubric_env.sandbox import _inside
from rubric_env.sandbox._files import BrokenStream, Change, Returned, TooMuch, apply, folder_items, receive, remove, send_items
from rubric_env.sandbox._inside import END, FACT, SCRIPT, write_record
from rubric_env.sandbox._limits import MIB, Limits

GRACE_SECONDS = 60.0
"""Beyond the program's own time, for a sandbox to begin, to take files in and to give them back."""

_STARTED = struct.pack(">cHQ", FACT, 7, 0) + b"started"
_ERROR_BYTES = 4000


class SandboxFailure(Exception):
    """The machine's failure, not the program's: a sandbox that does not start, a disk of the host that is full."""


@dataclass(frozen=True)
class Finished:
    """What a program did. Nothing of it runs any more."""

    code: int | None
    """Exit code; minus the number of the signal that ended it; None when it was stopped, or never started."""
    output: str
    """What it wrote to stdout: all, or the beginning and the end."""
    errors: str
    """What it wrote to stderr."""
    stopped: str = ""
    """What it was stopped for; empty when it ended by itself."""
    changes: tuple[Change, ...] = ()
    """Files of the folder that are new, changed or deleted now."""
    notes: tuple[str, ...] = ()
    """What it left that was not taken back, and why."""
    seconds: float = 0.0


class Start(Protocol):
    """Begins a sandbox that runs process 1."""

    def __call__(self, limits: Limits, **pipes: int) -> subprocess.Popen[bytes]: ...


class Job:
    """Runs in a thread of its own; `stop`, from any other, ends it."""

    def __init__(self, start: Start, python: str, command: str | Sequence[str], folder: Path, limits: Limits) -> None:
        self._start = start
        self._command = [python, SCRIPT] if isinstance(command, str) else list(command)
        self._script = command if isinstance(command, str) else None
        self._folder = folder
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._ended = False

    def stop(self) -> None:
        """Kill the sandbox with all that is in it; the folder stays as it is."""
        with self._lock:
            self._ended = True
            if self._process is not None:
                # With it go its child, process 1 of the sandbox, and with that all others.
                self._process.kill()

    def run(self) -> Finished:
        """Raises SandboxFailure."""
        try:
            items = folder_items(self._folder, self._limits)
            stage = Path(tempfile.mkdtemp(prefix=".sandbox-", dir=self._folder.parent))
        except TooMuch as much:
            return Finished(None, "", "", f"nothing ran: the workspace holds {much}, which is all that a run may take")
        except OSError as error:
            raise SandboxFailure(f"the workspace cannot be read: {error}") from error
        watchdog = threading.Timer(self._limits.seconds + GRACE_SECONDS, self.stop)
        watchdog.daemon = True
        try:
            with tempfile.TemporaryFile() as errors:
                process = self._begin(errors.fileno())
                watchdog.start()
                try:
                    return self._talk(process, items, stage, errors.fileno())
                finally:
                    self.stop()
                    for pipe in (process.stdin, process.stdout):
                        if pipe is not None and not pipe.closed:
                            _close(pipe)
                    process.wait()
        except OSError as error:
            raise SandboxFailure(f"the sandbox broke: {error}") from error
        finally:
            watchdog.cancel()
            remove(stage)
