"""Worker processes that parse files: started when first needed, killed when they overstay, replaced when they die."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Protocol

from rubric_env.evidence._turns import Turns, processes
from rubric_env.evidence._worker import MEMORY

STALLED = 4
"""Times its CPU seconds after which a worker is given up that did not use them up: the machine is too busy."""

FIRST_TRY = 10
"""CPU seconds after which a job makes room for those that wait: a deck of 300 slides needs six (measured)."""

JOBS = 100
"""Files after which a worker is replaced, so that what libraries leak ends with it."""


RESULT = 8 * 2**20
"""Bytes of a result, far above what a reader gives."""


class WorkerDied(Exception):
    """The file cost its worker. `ours`: the machine was too slow; else the file itself asks for too much.

    `late`: with more time it might have been done.
    """

    def __init__(self, reason: str, *, ours: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.ours = ours
        self.late = late


class Work(Protocol):
    """A dataclass of plain values. The worker's module has a handler under the name of its class."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def cpu_seconds(self) -> int: ...


class Workers:
    """At most `size` files are parsed at a time; callers are threads, and wait for their turn.

    `module` is what the processes run, with `_worker.serve`. A job that needs more than `first_try` CPU seconds starts
    again from the beginning, when nobody waits who has not had as much.
    """

    def __init__(self, size: int, module: str = "rubric_env.evidence._worker", *, first_try: int = FIRST_TRY) -> None:
        self._module = module
        self._first_try = first_try
        self._turns = Turns(size)
        self._idle: deque[_Worker] = deque()

    def do(self, job: Work) -> dict[str, Any]:
        """The worker's result. Raises WorkerDied when the file took its worker with it."""
        if job.cpu_seconds > self._first_try:
            try:
                return self._do(job, self._first_try, long=False)
            except WorkerDied as died:
                if not died.late:
                    raise
        return self._do(job, job.cpu_seconds, long=job.cpu_seconds > self._first_try)

    def _do(self, job: Work, cpu_seconds: int, *, long: bool) -> dict[str, Any]:
        with self._turns.turn(long=long):
            worker = self._worker()
            try:
                return worker.do(job, cpu_seconds)
            finally:
                if worker.alive and worker.jobs < JOBS:
                    self._idle.append(worker)
                else:
                    worker.stop()

    def _worker(self) -> _Worker:
        with suppress(IndexError):
            while not (worker := self._idle.pop()).alive:
                worker.stop()
            return worker
        return _Worker(self._module)

    def stop(self) -> None:
        """End the workers that are idle. New ones are started when they are needed."""
        with suppress(IndexError):
            while True:
                self._idle.pop().stop()


@cache
def workers() -> Workers:
    """Those of this process."""
    shared = Workers(processes())
    atexit.register(shared.stop)
    os.register_at_fork(after_in_child=workers.cache_clear)
    return shared


class _Worker:
    def __init__(self, module: str) -> None:
        self.jobs = 0
        self._home = tempfile.TemporaryDirectory(prefix="rubric-env-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._home.name,
            env=_environment(self._home.name),
            start_new_session=True,
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def do(self, job: Work, cpu_seconds: int) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        self.jobs += 1
        try:
            # Not `asdict`, which copies whatever the fields hold, item by item.
            fields = {name: getattr(job, name) for name in job.__dataclass_fields__}
            stdin.write(json.dumps([type(job).__name__, cpu_seconds, fields]).encode() + b"\n")
            stdin.flush()
            line = self._line(stdout.fileno(), STALLED * cpu_seconds)
        except BrokenPipeError:
            line = b""
        if not line:
            raise self._died(cpu_seconds)
        result: dict[str, Any] = json.loads(line)
        return result

    def _line(self, descriptor: int, seconds: float) -> bytes:
        """Up to the line's end; empty when the worker dies first. Raises WorkerDied when it stalls."""
        end, received = time.monotonic() + seconds, b""
        while not received.endswith(b"\n"):
            ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.stop()
                raise WorkerDied(f"it was not read within {seconds:g} s on this machine", ours=True, late=True)
            chunk = os.read(descriptor, 2**16)
            if not chunk:
                return b""
            received += chunk
            if len(received) > RESULT:
                self.stop()
                raise WorkerDied("its reader went out of control")
        return received

    def _died(self, cpu_seconds: int) -> WorkerDied:
        code = self._process.wait()
        self.stop()
        if code == -signal.SIGXCPU:
            return WorkerDied(f"reading it takes more than {cpu_seconds} s of CPU time", late=True)
        if code == -signal.SIGKILL:
            return WorkerDied("its reader was killed from outside", ours=True)
        return WorkerDied(f"it crashes its reader, which may use {MEMORY // 2**20:,} MB (exit code {code})")

    def stop(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self._home.cleanup()


def _environment(home: str) -> dict[str, str]:
    """Nothing of ours but what Python needs: a parser that is taken over finds no secret."""
    passed = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **passed,
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
