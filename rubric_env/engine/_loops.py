"""One state per running event loop: verifiers runs several loops in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Makes a value on first use in a loop, and forgets those of closed loops."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """The value of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values = {known: value for known, value in self._values.items() if not known.is_closed()}
            self._values[loop] = self._make()
        return self._values[loop]
