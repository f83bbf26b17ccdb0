"""What was judged once is not paid for twice (SPEC 7): accepted verdicts by what they were judged on."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from rubric_env._loops import PerLoop
from rubric_env.scoring.judgement import RowVerdict

T = TypeVar("T")
HELD = 50_000
"""Verdicts held in memory, about 1 kB each; the oldest are dropped, which costs a repeated question, nothing else."""

logger = logging.getLogger(__name__)


class JournalError(ValueError):
    """The file named by JUDGE_JOURNAL cannot be used."""


class Journal:
    """Verdicts by key: in memory, or in a SQLite file that processes share. Keys within one `scope` only.

    A file is written by one thread of its own. When it fails later (disk full), judging goes on and a warning says so.
    Raises JournalError when the file cannot be opened.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._memory: dict[str, dict[str, RowVerdict]] = {}
        self._held = 0
        self._lock = threading.Lock()
        self._asked: PerLoop[dict[tuple[str, str], asyncio.Future[RowVerdict | None]]] = PerLoop(dict)
        self._file = _File(Path(path)) if path else None

    async def read(self, scope: str, keys: Sequence[str]) -> dict[str, RowVerdict]:
        """The verdicts that are known already."""
        if self._file is not None:
            return await self._file.read(scope, keys)
        known = self._memory.get(scope, {})
        return {key: known[key] for key in keys if key in known}

    async def accept(self, scope: str, verdicts: Mapping[str, RowVerdict]) -> None:
        """Append verdicts, and hand them to whoever waits for the same keys."""
        for key, verdict in verdicts.items():
            self._answer(scope, key, verdict)
        if self._file is not None:
            await self._file.append(scope, verdicts)
            return
        with self._lock:
            known = self._memory.setdefault(scope, {})
            self._held += len(verdicts.keys() - known.keys())
            known.update(verdicts)
            while self._held > HELD:
                self._drop_oldest()

    def forget(self, scope: str) -> None:
        """Drop what is held in memory for a scope whose rollouts are all scored."""
        with self._lock:
            self._held -= len(self._memory.pop(scope, {}))

    def take(self, scope: str, key: str) -> bool:
        """True: the caller asks, and must `accept` or `release` the key. False: somebody asks already; `wait`."""
        asked = self._asked.here()
        if (scope, key) in asked:
            return False
        asked[scope, key] = asyncio.get_running_loop().create_future()
        return True

    def release(self, scope: str, keys: Iterable[str]) -> None:
        """Give up the keys that were taken and got no verdict."""
        for key in keys:
            self._answer(scope, key, None)

    async def wait(self, scope: str, key: str) -> RowVerdict | None:
        """The verdict of whoever asks; None when they got none, or ended before this call."""
        asked = self._asked.here().get((scope, key))
        return await asyncio.shield(asked) if asked is not None else None

    def close(self) -> None:
        """Write what is pending. The journal can be used again afterwards."""
        if self._file is not None:
            self._file.close()

    def _drop_oldest(self) -> None:
        scope, verdicts = next(iter(self._memory.items()))
        del verdicts[next(iter(verdicts))]
        self._held -= 1
        if not verdicts:
            del self._memory[scope]

    def _answer(self, scope: str, key: str, verdict: RowVerdict | None) -> None:
        asked = self._asked.here().pop((scope, key), None)
        if asked is not None and not asked.done():
            asked.set_result(verdict)


class _File:
    """One connection, used by one thread: sqlite3 stays off the event loop, and a read sees all earlier writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._executor().submit(self._open).result()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise JournalError(f"JUDGE_JOURNAL={path}: not usable as a journal ({error}): name another file") from None

    async def read(self, scope: str, keys: Sequence[str]) -> dict[str, RowVerdict]:
        return await self._run(lambda: self._select(scope, keys), {})

    async def append(self, scope: str, verdicts: Mapping[str, RowVerdict]) -> None:
        rows = [(scope, key, json.dumps(asdict(verdict))) for key, verdict in verdicts.items()]
        await self._run(lambda: self._insert(rows), None)

    def close(self) -> None:
        # Also at interpreter exit, when no thread takes new work: what is queued is still written.
        # Another loop may go on: what comes from now on gets a thread and a connection of its own.
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    async def _run(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            # A verdict that was paid for is written even if its rollout is cancelled meanwhile.
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._executor(), work))
        except sqlite3.Error as error:
            logger.warning("JUDGE_JOURNAL=%s: %s; judging goes on without it", self._path, error)
            return otherwise

    def _executor(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge-journal")
        return self._thread

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=10.0, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS verdict_1"
                " (scope TEXT, key TEXT, verdict TEXT NOT NULL, PRIMARY KEY (scope, key)) WITHOUT ROWID"
            )
            self._connection.commit()
        return self._connection

    def _select(self, scope: str, keys: Sequence[str]) -> dict[str, RowVerdict]:
        # JSON keeps this one statement whatever the number of keys: SQLite limits the count of parameters.
        found = self._open().execute(
            "SELECT key, verdict FROM verdict_1 WHERE scope = ? AND key IN (SELECT value FROM json_each(?))",
            (scope, json.dumps(list(keys))),
        )
        return {key: RowVerdict(**json.loads(text)) for key, text in found}

    def _insert(self, rows: Sequence[tuple[str, str, str]]) -> None:
        with self._open() as connection:
            connection.executemany("INSERT OR REPLACE INTO verdict_1 VALUES (?, ?, ?)", rows)
