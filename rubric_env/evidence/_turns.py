"""Who may use one of few processes next, where nobody knows beforehand how long a file takes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

MOST = 8
"""Processes of a kind, however many cores there are: each may take hundreds of megabytes."""


def processes() -> int:
    """How many of a kind suit the cores that this process may use: half of them, two at least where there are two."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, max(2, cores // 2), MOST)


class Turns:
    """At most `size` at a time; others wait, in threads.

    Whatever did not end within a first short try is tried again as `long`, and waits for all that come for the first
    time. While there are two, one is never taken by what is long. So files that take for ever, delivered by many at
    once, keep those of others waiting for one short try, not for all of theirs (a feedback queue of two levels).
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._changed = Condition()
        self._short: deque[object] = deque()
        self._long: deque[object] = deque()
        self._taken = self._taken_long = 0

    @contextmanager
    def turn(self, *, long: bool) -> Iterator[None]:
        """Wait for a turn, first come first served among equals, and hold it."""
        ticket, waiting = object(), self._long if long else self._short
        with self._changed:
            waiting.append(ticket)
            try:
                self._changed.wait_for(lambda: waiting[0] is ticket and self._free(long))
                self._taken += 1
                self._taken_long += long
            finally:
                waiting.remove(ticket)
                # Who is first now may have been passed over.
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._taken_long -= long
                self._changed.notify_all()

    def _free(self, long: bool) -> bool:
        if self._taken == self._size:
            return False
        return not long or (not self._short and self._taken_long < max(1, self._size - 1))
