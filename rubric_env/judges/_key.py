"""A key that changes: where it is read from, and when it is read again (SPEC 7). Never exported, never shown."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import math
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

COMMAND_SECONDS = 30.0
"""How long a key command may take."""

PAUSE = 1.0
"""Least seconds between a reading that gave the refused key again and the next: whoever renews it may be late."""

KeyFunction = Callable[[], str | Awaitable[str]]


class NoCredential(ValueError):
    """There is no usable pair of key and base URL. The message is one line and says how to give one."""


class NothingGiven(NoCredential):
    """No source gives anything; what is given and not right is a plain NoCredential."""


class Credentials:
    """One pair. `base_url` and `source` may be shown; the key is handed out by `key()` and `refresh()` alone.

    Serves any number of event loops and threads.
    """

    __slots__ = ("_key", "_lock", "_origin", "_reading", "_unchanged_at", "_worked", "base_url", "source")

    def __init__(self, base_url: str, source: str, origin: Origin) -> None:
        self.base_url = base_url
        self.source = source
        self._origin = origin
        self._key = None if callable(origin.value) else origin.read()
        self._worked: dict[str, float] = {}
        self._unchanged_at = -math.inf
        self._reading: Future[str | NoCredential | None] | None = None
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> str:
        """Tells keys apart and shows nothing of them: a short hash of the value, or of where it is read from."""
        origin = self._origin
        told = origin.value if isinstance(origin.value, str) else (origin.name, str(origin.file), origin.command)
        return hashlib.sha256(repr(told).encode()).hexdigest()[:8]

    async def key(self) -> str:
        """The key as it was last read. Raises NoCredential when its function fails."""
        return self._key or await self.refresh(None)

    def worked(self, key: str) -> None:
        """The endpoint took this key."""
        self._worked[key] = time.monotonic()

    def has_worked(self, key: str, within: float = math.inf) -> bool:
        """Was it taken in the last so many seconds? A key that ever was, and is refused now, has expired."""
        return time.monotonic() - self._worked.get(key, -math.inf) < within

    async def refresh(self, refused: str | None) -> str:
        """The key to use instead of `refused`: read again, unless that was done since `refused` was handed out.

        It may be the same again; then the next reading is at least `PAUSE` later. Those who ask meanwhile, in whatever
        loop or thread, share the one reading. Raises NoCredential when the file, command or function gives no key.
        """
        if self._key is not None and not self._origin.changes:
            return self._key
        while True:
            with self._lock:
                if self._key is not None and self._key != refused:
                    return self._key
                reading = self._reading
                if reading is None:
                    mine = self._reading = Future()
                    # Who gives up waiting for it cannot cancel it.
                    mine.set_running_or_notify_cancel()
                    break
            shared = await asyncio.wrap_future(reading)
            if isinstance(shared, NoCredential):
                raise NoCredential(str(shared))
            if shared is not None:
                return shared
        outcome: str | NoCredential | None = None
        try:
            await asyncio.sleep(max(0.0, self._unchanged_at + PAUSE - time.monotonic()))
            outcome = key = await self._origin.fresh()
            return key
        except NoCredential as error:
            outcome = error
            raise
        finally:
            # Without an outcome this call was cancelled, and one of those who wait reads in its place.
            with self._lock:
                if isinstance(outcome, str):
                    self._unchanged_at = time.monotonic() if outcome == refused else -math.inf
                    self._key = outcome
                self._reading = None
            mine.set_result(outcome)

    def __repr__(self) -> str:
        return f"Credentials({self.base_url}, from {self.source})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials are not sent to other processes: resolve them there")


@dataclass(frozen=True, slots=True, repr=False)
class Origin:
    """Where a key is read from: one of value or function, file, command. `name` is how a user calls it."""

    name: str
    value: str | KeyFunction | None = None
    file: Path | None = None
    command: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """Can another reading give another key?"""
        return callable(self.value) or self.file is not None or bool(self.command)

    def read(self) -> str:
        """The key of a value, file or command."""
        if self.file is not None:
            try:
                return self._checked(self.file.read_text("utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not text"
                raise NoCredential(f"{self.name}: {self.file} cannot be read: {reason}") from None
        if self.command:
            return self._checked(self._run())
        return self._checked(self.value)

    async def fresh(self) -> str:
        """The key, read again without blocking the event loop."""
        if not callable(self.value):
            return await asyncio.to_thread(self.read)
        try:
            # A synchronous function may ask the network.
            result = self.value() if inspect.iscoroutinefunction(self.value) else await asyncio.to_thread(self.value)
            return self._checked(await result if inspect.isawaitable(result) else result)
        except NoCredential:
            raise
        except Exception as error:
            # Its message may hold what it tried to read.
            raise NoCredential(f"{self.name}: the function raised {type(error).__name__}") from error

    def _run(self) -> str:
        program = self.command[0]
        try:
            done = subprocess.run(
                self.command, capture_output=True, timeout=COMMAND_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise NoCredential(f"{self.name}: {program} gave no key within {COMMAND_SECONDS:g} s") from None
        except OSError as error:
            raise NoCredential(f"{self.name}: {program} cannot be run: {error.strerror}") from None
        if done.returncode:
            raise NoCredential(f"{self.name}: {program} ended with exit code {done.returncode}")
        return done.stdout.decode("utf-8", "replace")

    def _checked(self, key: Any) -> str:
        text = key.strip() if isinstance(key, str) else ""
        if not text:
            raise NoCredential(f"{self.name}: the key is empty")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise NoCredential(f"{self.name}: the key holds a space or a character that no HTTP header can carry")
        return text
