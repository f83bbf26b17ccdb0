"""The thread that reads and writes the journal's file: everything that waits goes in one transaction."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rubric_env.engine._journal_jobs import Accept, Job, Look, Pair, Read, Release, Take
from rubric_env.engine._journal_memory import Memory
from rubric_env.engine._journal_store import JournalError, JournalStore, describe, is_busy
from rubric_env.scoring.judgement import RowVerdict

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds for other writers to let go of the file."""
RETRY_SECONDS = 2.0
"""Between tries to use a file that failed."""
POLL_SECONDS = 0.25
"""Between looks what came of the questions that other processes ask: 5 ms for a thousand of them."""

logger = logging.getLogger(__name__)


class JournalFile:
    """A file of verdicts, used by one thread of ours and by any number of processes.

    Jobs are done in the order they come. `tell(pair, verdict)` is called in that thread when a verdict was written, and
    with what came of a pair that another process asked. A file that fails later (a full disk) is tried again now and
    then; what is accepted meanwhile is held in memory, and a warning says so. Raises JournalError when the file cannot
    be used to begin with.
    """

    def __init__(self, path: Path, tell: Callable[[Pair, RowVerdict | None], None]) -> None:
        self._path = path
        self._tell = tell
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        try:
            # Not kept open: workers may be forked before the first question, and SQLite must not be open then.
            _patiently(lambda: JournalStore(path, owner=0), PATIENCE).close()
        except sqlite3.Error as error:
            raise JournalError(f"{describe(path, error)}: name another file") from None

    def submit(self, job: Job) -> None:
        with self._lock:
            if self._worker is None:
                atexit.register(self.close)
                self._worker = _Worker(self._path, self._tell)
            elif self._worker.pid != os.getpid():
                self._worker = _Worker(self._path, self._tell, forked=True)
            self._worker.jobs.put(job)

    def close(self) -> None:
        """Write what is pending, and let go of the file until the next job."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None and worker.pid == os.getpid():
            atexit.unregister(self.close)
            worker.jobs.put(None)
            worker.thread.join()


class _Worker:
    def __init__(self, path: Path, tell: Callable[[Pair, RowVerdict | None], None], *, forked: bool = False) -> None:
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.pid = os.getpid()
        self._path = path
        self._tell = tell
        self._forked = forked
        self._owner = secrets.randbits(62)
        self._store: JournalStore | None = None
        self._unwritten = Memory()
        self._claimed: set[Pair] = set()
        self._watched: set[Pair] = set()
        self._failing = False
        self._poll_at = self._retry_at = 0.0
        # A daemon, so that a journal that nobody closes keeps no process alive; `atexit` closes it.
        self.thread = threading.Thread(target=self._run, name="judge-journal", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        stop = False
        while not stop:
            jobs, stop = self._next_jobs()
            try:
                if jobs or not stop:
                    self._work(jobs)
            except Exception as error:
                # A mistake of ours: whoever waits is told, and the thread goes on for the others.
                logger.exception("the journal failed")
                for job in jobs:
                    if not job.done.done():
                        job.done.set_exception(error)
        self._end()

    def _next_jobs(self) -> tuple[list[Job], bool]:
        """All jobs that wait, after waiting for one or for what is due; and whether to stop after them."""
        due = []
        if self._failing:
            due += [self._retry_at] if len(self._unwritten) else []
        elif self._store is not None:
            due += [self._store.renew_at] if self._claimed else []
            due += [self._poll_at] if self._watched else []
        jobs: list[Job] = []
        try:
            job = self.jobs.get(timeout=max(0.0, min(due) - time.monotonic()) if due else None)
            while job is not None:
                jobs.append(job)
                job = self.jobs.get_nowait()
        except queue.Empty:
            return jobs, False
        return jobs, True

    def _work(self, jobs: Sequence[Job]) -> None:
        if self._failing and time.monotonic() < self._retry_at:
            self._without_file(jobs)
            return
        patience = 0.0 if self._failing else PATIENCE
        if self._failing:
            self._let_go()  # whatever became of the file, it is looked at afresh
        try:
            self._settle(jobs, _patiently(lambda: self._transact(self._open(), jobs), patience))
            jobs = ()
            _patiently(lambda: self._tend(self._open()), patience)
        except (sqlite3.Error, JournalError) as error:
            self._fail(error)
            self._without_file(jobs)

    # With the file

    def _open(self) -> JournalStore:
        if self._forked:
            raise JournalError(f"JUDGE_JOURNAL={self._path}: was in use when this process was forked")
        if self._store is None:
            self._store = JournalStore(self._path, self._owner)
        return self._store

    def _transact(self, store: JournalStore, jobs: Sequence[Job]) -> list[Look]:
        """What was found for each job. Changes nothing but the file, and that in one go: it may be tried again."""
        accepted = self._unwritten.everything()
        for job in jobs:
            if isinstance(job, Accept):
                accepted.update(job.verdicts)
        renewal = bool(self._claimed) and time.monotonic() >= store.renew_at
        if not (accepted or renewal or self._failing or any(isinstance(job, Release) for job in jobs)):
            # What is known already takes no write lock, for which other processes would have to wait.
            looks = [store.look(_pairs(job)) for job in jobs]
            if not any(isinstance(job, Take) and look.open(job.pairs) for job, look in zip(jobs, looks, strict=True)):
                return looks
        with store.writing():
            if renewal:
                store.renew()
            store.accept(accepted)
            store.release(self._claimed & accepted.keys())
            return [self._do(store, job) for job in jobs]

    def _do(self, store: JournalStore, job: Job) -> Look:
        match job:
            case Release():
                store.release(job.pairs)
            case Read():
                return store.look(job.pairs)
            case Take():
                look = store.look(job.pairs)
                store.claim(look.open(job.pairs), job.seconds)
                return look
        return Look({}, set())

    def _settle(self, jobs: Sequence[Job], looks: Sequence[Look]) -> None:
        """It is in the file: those who wait are told."""
        if self._failing:
            self._failing = False
            logger.warning("JUDGE_JOURNAL=%s: works again, %d verdicts written", self._path, len(self._unwritten))
            self._unwritten = Memory()
        for job, look in zip(jobs, looks, strict=True):
            match job:
                case Take():
                    self._claimed.update(look.open(job.pairs))
                    self._watched.update(look.held)
                case Accept():
                    self._claimed.difference_update(job.verdicts)
                case Release():
                    self._claimed.difference_update(job.pairs)
                    self._watched.difference_update(job.pairs)
            self._finish(job, look)

    def _tend(self, store: JournalStore) -> None:
        """What is nobody's job: see what others were asked, keep the file small."""
        now = time.monotonic()
        if self._watched and now >= self._poll_at:
            self._poll_at = now + POLL_SECONDS
            look = store.look(list(self._watched))
            for pair in self._watched - look.held:
                self._watched.discard(pair)
                self._tell(pair, look.known.get(pair))
        if store.unmarked:
            with store.writing():
                store.mark_used()
        while store.too_large():
            with store.writing():
                store.evict()

    # Without

    def _fail(self, error: Exception) -> None:
        if not self._failing:
            what = describe(self._path, error)
            logger.warning("%s; judging goes on without it, and new verdicts stay in memory until it works", what)
        self._failing = True
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._claimed.clear()
        watched, self._watched = self._watched, set()
        for pair in watched:
            self._tell(pair, None)

    def _without_file(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            look = Look({}, set())
            match job:
                case Accept():
                    self._unwritten.put(job.verdicts)
                case Read() | Take():
                    look = Look(self._read(job.pairs), set())
            self._finish(job, look)

    def _read(self, pairs: Sequence[Pair]) -> dict[Pair, RowVerdict]:
        """What cannot be written may still be read."""
        known = self._unwritten.read(pairs)
        if self._store is not None:
            try:
                known = {**self._store.look(pairs).known, **known}
            except sqlite3.Error:
                self._let_go()
        return known

    def _end(self) -> None:
        if len(self._unwritten):
            self._retry_at = 0.0
            self._work(())
        if len(self._unwritten):
            logger.warning("JUDGE_JOURNAL=%s: %d verdicts are not in it", self._path, len(self._unwritten))
        if self._store is not None and not self._failing:
            with contextlib.suppress(sqlite3.Error):  # who waits for us sees our lease end
                self._store.leave()
        self._let_go()

    def _let_go(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _finish(self, job: Job, look: Look) -> None:
        if isinstance(job, Accept):
            for pair, verdict in job.verdicts.items():
                self._tell(pair, verdict)
        job.done.set_result(look)


def _pairs(job: Job) -> Sequence[Pair]:
    return () if isinstance(job, Accept) else job.pairs


def _patiently(work: Callable[[], T], patience: float) -> T:
    """Other processes write too: what found the file locked is tried again."""
    end = time.monotonic() + patience
    while True:
        try:
            return work()
        except sqlite3.Error as error:
            if not is_busy(error) or time.monotonic() >= end:
                raise
        time.sleep(0.02)
