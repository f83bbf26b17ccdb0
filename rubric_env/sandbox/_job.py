"""One run: a folder goes in through a pipe, a program runs, what it left comes out through another."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO

from rubric_env.sandbox._files import BrokenStream, Change, Returned, TooMuch, apply, folder_items, receive, send_items
from rubric_env.sandbox._inside import END, FACT, RECORD, SCRIPT, STARTED, Item, write_record
from rubric_env.sandbox._limits import MIB, Limits

GRACE_SECONDS = 60.0
"""Beyond the program's own time, for a sandbox to begin, to take files in and to give them back."""

EXIT_SECONDS = 5.0
NOTE_BYTES = 2000

_STARTED = RECORD.pack(FACT, len(STARTED), 0) + STARTED

Start = Callable[[Limits, int], subprocess.Popen[bytes]]
"""Begins a sandbox in which process 1 waits for records; the second argument is where its errors go."""


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
    """From the begin of the sandbox to its end."""


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
            stage = Path(tempfile.mkdtemp(prefix=f"{self._folder.name}-", dir=self._folder.parent))
        except TooMuch as much:
            return Finished(
                None, "", "", stopped=f"nothing ran: the folder holds {much}, the most that can be taken in"
            )
        except OSError as error:
            raise SandboxFailure(f"the folder cannot be handed to the sandbox: {error}") from error
        watchdog = threading.Timer(self._limits.seconds + GRACE_SECONDS, self.stop)
        watchdog.daemon = True
        try:
            watchdog.start()
            with tempfile.TemporaryFile() as errors, self._begin(errors.fileno()) as process:
                began = time.monotonic()
                try:
                    finished = self._talk(process, items, stage, errors)
                    return replace(finished, seconds=time.monotonic() - began)
                finally:
                    self.stop()
        except (OSError, RuntimeError) as error:  # RuntimeError: the machine has no thread left.
            raise SandboxFailure(f"the sandbox broke: {error}") from error
        finally:
            watchdog.cancel()
            shutil.rmtree(stage, ignore_errors=True)

    def _begin(self, errors: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._ended:
                raise SandboxFailure("stopped before it began")
            self._process = self._start(self._limits, errors)
            return self._process

    def _talk(
        self, process: subprocess.Popen[bytes], items: dict[bytes, Item], stage: Path, errors: BinaryIO
    ) -> Finished:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            self._send(process.stdin, items)
            began = process.stdout.read(len(_STARTED)) == _STARTED
        except BrokenPipeError:
            began = False
            with suppress(BrokenPipeError):  # Else what is still buffered fails later, and hides why.
                process.stdin.close()
        if not began:
            self.stop()
            process.wait()
            raise SandboxFailure(f"the sandbox does not begin: {_last_line(errors)}")
        try:
            returned = receive(process.stdout, items, stage, self._limits)
            finished = _finished(returned, self._limits)
        except BrokenStream as broken:
            # It had begun, so that this is what comes of the program: it had all the machine's time and memory.
            return Finished(None, "", "", stopped=f"stopped: the sandbox ended ({broken}); no file was taken back")
        finally:
            process.stdout.close()  # What still writes ends.
            with suppress(subprocess.TimeoutExpired):
                # When it is killed, what it started is left to the machine's process 1: not all look after it.
                process.wait(EXIT_SECONDS)
        if "over" in returned.facts:
            return finished
        with self._lock:
            if self._ended:
                return finished
            changes, blocked = apply(self._folder, items, returned, stage)
        notes = (*finished.notes, *(f"{name}: a link of the folder is there, not kept" for name in blocked))
        return replace(finished, changes=tuple(changes), notes=notes)

    def _send(self, pipe: IO[bytes], items: dict[bytes, Item]) -> None:
        limits = self._limits
        numbers = {
            "RLIMIT_AS": limits.address_space,
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": limits.cpu_seconds,
            "RLIMIT_FSIZE": limits.file_size,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_NPROC": limits.processes,
            "milliseconds": int(limits.seconds * 1000),
            "memory": limits.memory,
            "files": limits.files,
            "disk": limits.disk,
            "kept": 2 * limits.output,
        }
        for name, number in numbers.items():
            write_record(pipe.write, FACT, f"limit.{name}".encode(), b"%d" % number)
        for word in self._command:
            write_record(pipe.write, FACT, b"argv", word.encode("utf-8", "replace"))
        if self._script is not None:
            write_record(pipe.write, FACT, b"script", self._script.encode("utf-8", "replace"))
        send_items(pipe.write, self._folder, items)
        write_record(pipe.write, END)
        pipe.close()


def _finished(returned: Returned, limits: Limits) -> Finished:
    """Raises BrokenStream."""
    facts = {name: values[0] for name, values in returned.facts.items()}
    try:
        code = int(facts["code"]) if "code" in facts else None
        output, errors = (
            _text(facts[f"{name}.head"], facts[f"{name}.tail"], int(facts[f"{name}.size"]), limits.output)
            for name in ("stdout", "stderr")
        )
        reason = facts["stopped"].decode()
        notes = [_shown(note) for note in returned.facts.get("note", ())]
        more = int(facts["notes"]) - len(notes)
    except (KeyError, ValueError):
        raise BrokenStream("what it says cannot be read") from None
    stopped = {
        "": "",
        "time": f"stopped after {limits.seconds:g} s",
        "memory": f"stopped at more than {limits.memory // MIB} MiB of memory, files included",
    }.get(reason, "stopped")
    if code == -signal.SIGXCPU:
        code, stopped = None, f"stopped after {limits.cpu_seconds} s of processor time"
    if more > 0:
        notes.append(f"and {more} more")
    if "over" in facts:
        notes.insert(0, f"no file was taken back: the folder holds {_shown(facts['over'])}")
    return Finished(code, output, errors, stopped, notes=tuple(notes))


def _shown(note: bytes) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in note[:NOTE_BYTES].decode("utf-8", "replace"))


def _text(head: bytes, tail: bytes, size: int, room: int) -> str:
    """All of a stream, or its first and last characters."""
    whole = (head + tail).decode("utf-8", "replace")
    if size <= len(head) + len(tail) and len(whole) <= room:
        return whole
    first, last = (whole, whole) if size <= len(head) + len(tail) else (_letters(head), _letters(tail))
    first, last = first[: room // 2], last[-(room // 2) :]
    left_out = size - len(first.encode()) - len(last.encode())
    return f"{first}\n… {max(left_out, 0)} bytes left out …\n{last}"


def _letters(data: bytes) -> str:
    # A letter that the cut went through is left out.
    return data.decode("utf-8", "ignore")


def _last_line(errors: BinaryIO) -> str:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - NOTE_BYTES))
    lines = errors.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it says nothing")
