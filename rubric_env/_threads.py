"""Threads that work beside event loops."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from queue import SimpleQueue
from typing import Any, TypeVar

from rubric_env._computing import computing

T = TypeVar("T")
Order = tuple[ThreadPoolExecutor, "Future[Any]", Callable[[], Any]]


class Threads:
    """At most `size` threads of this process, called `name`."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """What `asyncio.to_thread` does, but that the loop does not start the thread.

        Whoever starts one waits until it runs, with a lock that all executors share: a loop that starts a hundred at
        once stands still for as long as they all compute (measured).
        """
        process, future = os.getpid(), Future[T]()
        call = partial(copy_context().run, work, *arguments)
        _orders(process).put((_pool(process, self._size, self._name), future, call))
        return await asyncio.wrap_future(future)

    async def compute(self, work: Callable[..., T], *arguments: object) -> T:
        """The same for what is Python's own work all the while: see `computing`."""
        return await self.run(_alone, work, *arguments)


@cache
def _pool(process: int, size: int, name: str) -> ThreadPoolExecutor:
    """Of this process: threads do not live on in a fork."""
    return ThreadPoolExecutor(size, thread_name_prefix=name)


@cache
def _orders(process: int) -> SimpleQueue[Order]:
    """To the thread of this process that starts the others."""
    orders = SimpleQueue[Order]()
    threading.Thread(target=_start, args=(orders,), name="rubric-env-starter", daemon=True).start()
    return orders


def _start(orders: SimpleQueue[Order]) -> None:
    while True:
        pool, future, call = orders.get()
        try:
            pool.submit(_do, future, call)
        except RuntimeError as error:  # the interpreter ends, or has no thread left
            if future.set_running_or_notify_cancel():
                future.set_exception(error)


def _do(future: Future[Any], call: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)


aside = Threads(8, "rubric-env")
"""For what computes, or looks at files, for a while."""

waiting = Threads(128, "rubric-env-waiting")
"""For what may wait for a worker process that reads a file."""


def _alone(work: Callable[..., T], *arguments: object) -> T:
    with computing():
        return work(*arguments)
