"""What was judged once is not paid for twice (SPEC 7): accepted verdicts by what they were judged on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from rubric_env.engine._journal_file import JournalFile
from rubric_env.engine._journal_jobs import Accept, Look, Pair, Read, Release, Take
from rubric_env.engine._journal_memory import Memory
from rubric_env.engine._journal_store import JournalError
from rubric_env.scoring.judgement import RowVerdict

GRACE_SECONDS = 5.0
"""Who asks has that long after its deadline to say what came of it."""
GLANCE_SECONDS = 5.0
"""Between looks whether the loop of who asks is still there."""

__all__ = ["Journal", "JournalError", "Taken"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of `Journal.take`. Keys that are in neither are asked by somebody else: `wait` for them."""

    known: Mapping[str, RowVerdict]
    mine: Sequence[str]
    """The caller asks these, and must `accept` or `release` each."""


class Journal:
    """Verdicts by key: in memory, or in a SQLite file that processes share. Keys are of one `scope` only.

    The same question is asked once at a time: among the loops and threads of a process, and among the processes that
    share a file. A file is read and written by one thread of its own. When it fails later (disk full), judging goes on
    and a warning says so. Raises JournalError when the file cannot be used to begin with.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._memory = Memory()
        self._lock = threading.Lock()
        self._claims: dict[Pair, _Claim] = {}
        self._file = JournalFile(Path(path), self._tell) if path else None

    async def read(self, scope: str, keys: Sequence[str]) -> dict[str, RowVerdict]:
        """The verdicts that are known already."""
        pairs = [(scope, key) for key in keys]
        if self._file is None:
            known = self._memory.read(pairs)
        else:
            job = Read(pairs)
            self._file.submit(job)
            known = (await asyncio.wrap_future(job.done)).known
        return {key: verdict for (_, key), verdict in known.items()}

    async def take(self, scope: str, keys: Sequence[str], seconds: float) -> Taken:
        """The verdicts that are known, and the keys that are the caller's to ask, which it has `seconds` for.

        Who does not hear from it by then asks itself.
        """
        mine, lost = [], []
        with self._lock:
            for key in keys:
                claim = self._claims.get((scope, key))
                if claim is None or claim.lost:
                    lost += [claim] if claim else []
                    self._claims[scope, key] = _Claim(seconds)
                    mine.append((scope, key))
        for claim in lost:
            claim.verdict.set_result(None)
        try:
            look = await self._look(mine, seconds)
        except BaseException:
            self._release(mine)
            raise
        for pair, verdict in look.known.items():
            self._tell(pair, verdict)
        known = {key: verdict for (_, key), verdict in look.known.items()}
        return Taken(known, [key for _, key in look.open(mine)])

    async def accept(self, scope: str, verdicts: Mapping[str, RowVerdict]) -> None:
        """Keep verdicts, and hand them to whoever waits for the same keys. In the file when this returns."""
        kept = {(scope, key): verdict for key, verdict in verdicts.items()}
        if self._file is None:
            self._memory.put(kept)
            for pair, verdict in kept.items():
                self._tell(pair, verdict)
        else:
            job = Accept(kept)
            self._file.submit(job)
            await asyncio.wrap_future(job.done)

    def release(self, scope: str, keys: Sequence[str]) -> None:
        """Give up the keys that were taken and got no verdict."""
        self._release([(scope, key) for key in keys])

    async def wait(self, scope: str, key: str) -> RowVerdict | None:
        """The verdict of whoever asks; None when they got none, ended before this call, or had their time."""
        claim = self._claims.get((scope, key))
        if claim is None:
            return None
        verdict = asyncio.wrap_future(claim.verdict)
        try:
            while not claim.lost:
                await asyncio.wait([verdict], timeout=min(GLANCE_SECONDS, claim.seconds_left))
                if verdict.done():
                    return verdict.result()
            return None
        finally:
            verdict.cancel()

    def forget(self, scope: str) -> None:
        """Drop what is held in memory for a scope whose rollouts are all scored."""
        self._memory.forget(scope)

    def close(self) -> None:
        """Write what is pending and let go of the file, unless a rollout in another loop still uses it.

        The journal can be used again afterwards.
        """
        if self._file is not None and not self._claims:
            self._file.close()

    async def _look(self, pairs: Sequence[Pair], seconds: float) -> Look:
        if self._file is None or not pairs:
            return Look(self._memory.read(pairs), set())
        job = Take(pairs, seconds + GRACE_SECONDS)
        self._file.submit(job)
        return await asyncio.wrap_future(job.done)

    def _release(self, pairs: Sequence[Pair]) -> None:
        held = [pair for pair in pairs if pair in self._claims]
        if held and self._file is not None:
            # Before others can take them: jobs are done in order.
            self._file.submit(Release(held))
        for pair in held:
            self._tell(pair, None)

    def _tell(self, pair: Pair, verdict: RowVerdict | None) -> None:
        with self._lock:
            claim = self._claims.pop(pair, None)
        if claim is not None:
            claim.verdict.set_result(verdict)


class _Claim:
    """Somebody in this process asks, or watches what another process asks."""

    def __init__(self, seconds: float) -> None:
        self.verdict: Future[RowVerdict | None] = Future()
        # It runs, so that nobody who stops waiting can cancel it for the others.
        self.verdict.set_running_or_notify_cancel()
        self._loop = asyncio.get_running_loop()
        self._until = time.monotonic() + seconds + GRACE_SECONDS

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    @property
    def lost(self) -> bool:
        """Its time is over, or its loop was closed under it."""
        return not self.seconds_left or self._loop.is_closed()
