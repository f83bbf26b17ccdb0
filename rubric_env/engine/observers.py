"""Who is shown the calls: any number of observers, a logger, a file."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rubric_env.engine.events import CallEvent
from rubric_env.settings import SettingsError

logger = logging.getLogger(__name__)
call_logger = logging.getLogger("rubric_env.calls")

Observer = Callable[[CallEvent], None]


class Observers:
    """Shows each call to everybody who wants to see it; what one of them raises is logged and hinders nobody."""

    def __init__(self, *always: Observer) -> None:
        self.on_call: Observer | None = None
        self._observers = list(always)

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def __call__(self, event: CallEvent) -> None:
        last = [] if self.on_call is None else [self.on_call]
        for observer in [*self._observers, *last]:
            try:
                observer(event)
            except Exception:
                logger.exception("an observer of the judge's calls raised")


def log_call(event: CallEvent) -> None:
    """To the logger `rubric_env.calls`: DEBUG, and INFO for a call with a fault. The record has it as `judge_call`."""
    level = logging.INFO if event.fault else logging.DEBUG
    if call_logger.isEnabledFor(level):
        fields = event.as_dict()
        call_logger.log(level, "judge call %s", json.dumps(fields), extra={"judge_call": fields})


class EventFile:
    """An observer that appends one JSON object a line to a file, which any number of processes may share.

    One thread writes, so that a slow disk delays no call. A line is one write at the end of the file, which local file
    systems keep whole. When writing fails (disk full), events are dropped from then on, and a warning says so. Raises
    SettingsError when the file cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        self._pid = 0
        self._broken = False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._write(b"")
        except OSError as error:
            raise SettingsError(f"events = {str(path)!r}: cannot be written: {error.strerror}") from None

    def __call__(self, event: CallEvent) -> None:
        with self._lock:
            if self._thread is None or self._pid != os.getpid():  # a fork has the object, not the thread
                self._thread, self._pid = ThreadPoolExecutor(1, thread_name_prefix="judge-events"), os.getpid()
            self._thread.submit(self._append, event)

    def close(self) -> None:
        """Write what is pending. Later events are written all the same."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()

    def _append(self, event: CallEvent) -> None:
        if not self._broken:
            try:
                self._write(json.dumps(event.as_dict()).encode() + b"\n")
            except OSError as error:
                self._broken = True
                logger.warning("JUDGE_EVENTS=%s: %s; no further events are written", self._path, error)

    def _write(self, line: bytes) -> None:
        # Opened for each line: the file may be rotated, and no descriptor is left behind.
        with self._path.open("ab", buffering=0) as file:
            while line:
                line = line[file.write(line) :]
