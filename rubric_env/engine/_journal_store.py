"""The journal's SQLite file: what is in it, and the statements that read and write it."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from rubric_env.engine._journal_jobs import Look, Pair
from rubric_env.scoring.judgement import RowVerdict

APPLICATION = 0x52454A31
"""SQLite's application_id of a journal."""
VERSION = 2
"""SQLite's user_version. Any change of the tables, or of the fields of RowVerdict, needs the next number."""

LIMIT_BYTES = 2**30
"""Of the file: about 1.5 million verdicts at the 690 bytes that one with a reason of 250 and an evidence of 150
characters takes; eight times what 4,300 jobs of 40 rows leave behind, and small for any disk that holds their files."""
EVICTED = 2_000
"""Verdicts that are dropped at a time, some 40 ms of the writer's time."""
USE_SECONDS = 3600
"""How exactly the time of the last use is kept: reads of the same hour write nothing."""
CHECKED_BYTES = 64 * 2**20
"""Files up to this size are checked whole when they are opened (50 ms); damage to a larger one shows in use."""

LEASE_SECONDS = 30.0
"""A process that has not renewed its lease for this long is taken for dead. Where process ids can be seen, a dead
one shows at once."""
BUSY_SECONDS = 1.0
"""SQLite's own wait for another writer; who waits longer asks again."""

TABLES = """
    CREATE TABLE verdict (
        id INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL, used INTEGER NOT NULL, verdict TEXT NOT NULL,
        UNIQUE (scope, key)
    );
    CREATE INDEX verdict_used ON verdict (used);
    CREATE TABLE owner (id INTEGER PRIMARY KEY, place TEXT NOT NULL, pid INTEGER NOT NULL, until REAL NOT NULL);
    CREATE TABLE claim (
        scope TEXT NOT NULL, key TEXT NOT NULL, owner INTEGER NOT NULL, until REAL NOT NULL,
        PRIMARY KEY (scope, key)
    ) WITHOUT ROWID;
"""

# Lists travel as one JSON text each way: one statement whatever their length, and one step in which sqlite3 gives the
# interpreter's lock away and has to get it back from a busy event loop.
LOOK = """
    SELECT json_group_array(json_array(asked.key, v.id, v.used, v.verdict,
                                       c.owner, min(c.until, o.until), o.place, o.pid))
    FROM json_each(?) AS asked
    LEFT JOIN verdict AS v ON v.scope = json_extract(asked.value, '$[0]') AND v.key = json_extract(asked.value, '$[1]')
    LEFT JOIN claim AS c ON c.scope = json_extract(asked.value, '$[0]') AND c.key = json_extract(asked.value, '$[1]')
    LEFT JOIN owner AS o ON o.id = c.owner
"""
ACCEPT = """
    INSERT OR REPLACE INTO verdict (scope, key, used, verdict)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), ?, json_extract(value, '$[2]') FROM json_each(?)
"""
CLAIM = """
    INSERT OR REPLACE INTO claim (scope, key, owner, until)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), ?, ? FROM json_each(?)
"""
RELEASE = """
    DELETE FROM claim WHERE owner = ? AND (scope, key) IN
    (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?))
"""

_fields = attrgetter(*RowVerdict.__dataclass_fields__)


class JournalError(ValueError):
    """The file named by JUDGE_JOURNAL cannot be used."""


class JournalStore:
    """One connection; for one thread. Methods raise sqlite3.Error; those that write want `writing` around them.

    Opening makes the file when there is none. Raises JournalError for a file that is no journal of this version or is
    damaged, which stays as it is.
    """

    def __init__(self, path: Path, owner: int) -> None:
        self._path = path
        self._owner = owner
        self.renew_at = 0.0
        """When claims need to be renewed, by time.monotonic()."""
        self._stale: set[int] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(f"cannot be opened ({error}): name another file") from None
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        try:
            # In a transaction, so that what another process makes of the file meanwhile is seen whole or not at all.
            self._db.execute("BEGIN")
            new = self._is_new()
            self._db.execute("COMMIT")
            if new:
                self._db.execute("PRAGMA journal_mode=WAL")
                with self.writing():
                    if self._is_new():
                        for statement in TABLES.split(";"):
                            self._db.execute(statement)
                        self._db.execute(f"PRAGMA application_id={APPLICATION}")
                        self._db.execute(f"PRAGMA user_version={VERSION}")
            # WAL and NORMAL: a commit outlives the process; only a power cut may take the last ones.
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(f"PRAGMA journal_size_limit={16 * 2**20}")
            if self._path.stat().st_size <= CHECKED_BYTES and self._value("PRAGMA quick_check(1)") != "ok":
                raise JournalError(_damaged(self._path, "its pages contradict each other"))
        except sqlite3.DatabaseError as error:
            if _code(error) == sqlite3.SQLITE_NOTADB:
                raise self._unusable("no journal of verdicts: name another file") from None
            if _code(error) == sqlite3.SQLITE_CORRUPT:
                raise JournalError(describe(self._path, error)) from None
            raise

    def _is_new(self) -> bool:
        """False for a journal of this version; JournalError for anything else that holds something."""
        application, version = self._value("PRAGMA application_id"), self._value("PRAGMA user_version")
        tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if application == APPLICATION and version == VERSION:
            return False
        if application == APPLICATION or tables == {"verdict_1"}:
            raise self._unusable(
                "written by another version of rubric-env: name another file, or delete this one and what it remembers"
            )
        if application or version or tables:
            raise self._unusable("the database of another program: name another file")
        return True

    def close(self) -> None:
        self._db.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that holds the write lock from its start."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            self.renew_at = 0.0
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def look(self, pairs: Sequence[Pair]) -> Look:
        now = time.time()
        look = Look({}, set())
        lives = functools.cache(_lives)
        for index, row, used, verdict, owner, until, place, pid in json.loads(self._value(LOOK, _json(pairs))):
            if verdict is not None and (read := _read(verdict)):
                look.known[pairs[index]] = read
                if used < now - USE_SECONDS:
                    self._stale.add(row)
            elif until is not None and until > now and owner != self._owner and lives(place, pid):
                look.held.add(pairs[index])
        return look

    def accept(self, verdicts: Mapping[Pair, RowVerdict]) -> None:
        """Keep verdicts."""
        if verdicts:
            rows = [(*pair, json.dumps(_fields(verdict))) for pair, verdict in verdicts.items()]
            self._db.execute(ACCEPT, (int(time.time()), _json(rows)))

    def claim(self, pairs: Sequence[Pair], seconds: float) -> None:
        """Say that we ask, for at most `seconds`."""
        if pairs:
            if time.monotonic() >= self.renew_at:
                self.renew()
            self._db.execute(CLAIM, (self._owner, time.time() + seconds, _json(pairs)))

    def release(self, pairs: Collection[Pair]) -> None:
        """Give up what we claimed of these."""
        if pairs:
            self._db.execute(RELEASE, (self._owner, _json(list(pairs))))

    def renew(self) -> None:
        """Say that we live."""
        now = time.time()
        owner = (self._owner, _place(), os.getpid(), now + LEASE_SECONDS)
        self._db.execute("INSERT OR REPLACE INTO owner VALUES (?, ?, ?, ?)", owner)
        if not self.renew_at:
            self._db.execute("DELETE FROM owner WHERE until < ?", (now,))
            self._db.execute("DELETE FROM claim WHERE owner NOT IN (SELECT id FROM owner)")
        self.renew_at = time.monotonic() + LEASE_SECONDS / 3

    def leave(self) -> None:
        """Give up whatever we claimed."""
        if self.renew_at:
            with self.writing():
                self._db.execute("DELETE FROM claim WHERE owner = ?", (self._owner,))
                self._db.execute("DELETE FROM owner WHERE id = ?", (self._owner,))

    @property
    def unmarked(self) -> bool:
        """Verdicts were read whose time of last use is to be written."""
        return bool(self._stale)

    def mark_used(self) -> None:
        stale, self._stale = self._stale, set()
        self._db.execute(
            "UPDATE verdict SET used = ? WHERE id IN (SELECT value FROM json_each(?))",
            (int(time.time()), _json(list(stale))),
        )

    def too_large(self) -> bool:
        pages = self._value("PRAGMA page_count") - self._value("PRAGMA freelist_count")
        return bool(pages * self._value("PRAGMA page_size") > LIMIT_BYTES)

    def evict(self) -> None:
        """Drop the verdicts that were unused longest. Their pages are used again; the file does not shrink."""
        self._db.execute(
            "DELETE FROM verdict WHERE id IN (SELECT id FROM verdict ORDER BY used, id LIMIT ?)", (EVICTED,)
        )

    def _value(self, statement: str, *parameters: Any) -> Any:
        return self._db.execute(statement, parameters).fetchone()[0]

    def _unusable(self, why: str) -> JournalError:
        return JournalError(f"JUDGE_JOURNAL={self._path}: {why}")


def describe(path: Path, error: Exception) -> str:
    """What is wrong with the file, in one line for people."""
    if isinstance(error, sqlite3.Error) and _code(error) == sqlite3.SQLITE_CORRUPT:
        return _damaged(path, str(error))
    return str(error) if isinstance(error, JournalError) else f"JUDGE_JOURNAL={path}: {error}"


def is_busy(error: Exception) -> bool:
    """Another process holds the file: worth another try."""
    return isinstance(error, sqlite3.Error) and _code(error) in {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
    }


def _damaged(path: Path, why: str) -> str:
    remedy = "move it, its -wal and its -shm away (what it held is asked again), or name another file"
    return f"JUDGE_JOURNAL={path}: damaged ({why}): {remedy}"


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; the extended ones have more above the low byte."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _read(text: str) -> RowVerdict | None:
    try:
        return RowVerdict(*json.loads(text))
    except (ValueError, TypeError):
        # SQLite has no checksums: a bit that flipped costs one question, not the rollout.
        return None


@functools.cache
def _place() -> str:
    """Where our process ids mean something: this machine, and the container on it."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{platform.node()} {namespace}"


def _lives(place: str, pid: int) -> bool:
    """False when the process is known to be gone. An id that was given to another process counts as alive."""
    if os.name != "posix" or place != _place():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
