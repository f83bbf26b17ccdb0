"""Threads that compute take turns, so that the event loops of their process get theirs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()


@contextmanager
def computing() -> Iterator[None]:
    """One thread of the process at a time; inside it waits for no other thread, and enters no second time.

    Python runs one thread at a time anyway, for 5 ms, and then any of those that wait: among a hundred that compute an
    event loop waits seconds for its turn (measured), beside one it waits those 5 ms. Nothing gets slower by it.
    """
    with _lock:
        yield


def _renew() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew)
