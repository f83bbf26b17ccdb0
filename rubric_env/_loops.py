"""One state per running event loop: verifiers runs several loops in one process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes a value on first use in a loop, and forgets those of closed loops. Safe in several threads."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[asyncio.AbstractEventLoop, T] = {}
        self._lock = threading.Lock()

    def here(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._values:
                self._values = {known: value for known, value in self._values.items() if not known.is_closed()}
                self._values[loop] = self._make()
            return self._values[loop]

    def take(self) -> T | None:
        """The running loop's value, which is forgotten here; None when there is none."""
        with self._lock:
            return self._values.pop(asyncio.get_running_loop(), None)
