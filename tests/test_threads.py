"""Work beside an event loop: what the loop does not wait for."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextvars import ContextVar
from typing import Any

import pytest

from rubric_env._computing import computing
from rubric_env._threads import Threads

name: ContextVar[str] = ContextVar("name", default="")


async def test_a_loop_starts_none_of_the_threads_that_work_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, starters, start = Threads(8, "a"), list[tuple[str, str]](), threading.Thread.start

    def started(thread: threading.Thread) -> None:
        starters.append((threading.current_thread().name, thread.name))
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)
    here = threading.current_thread().name
    await asyncio.gather(*(threads.run(time.sleep, 0.05) for _ in range(20)))
    assert sum(thread.startswith("a_") for _, thread in starters) == 8
    assert {thread for starter, thread in starters if starter == here} <= {"rubric-env-starter"}


async def test_work_gives_its_result_or_its_error_and_sees_the_callers_context() -> None:
    threads = Threads(2, "b")
    name.set("the caller's")
    assert await threads.run(name.get) == "the caller's"
    with pytest.raises(ValueError, match="no number"):
        await threads.run(_fail)


def _fail() -> None:
    raise ValueError("no number")


async def test_work_that_nobody_waits_for_any_more_is_not_begun() -> None:
    threads, go, done = Threads(1, "c"), threading.Event(), list[str]()
    first = asyncio.create_task(threads.run(go.wait, 10))
    await asyncio.sleep(0)
    second = asyncio.create_task(threads.run(done.append, "second"))
    await asyncio.sleep(0.05)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go.set()
    assert await first
    await threads.run(done.append, "third")
    assert done == ["third"]


async def test_one_thread_computes_at_a_time() -> None:
    threads, lock, now, most = Threads(8, "d"), threading.Lock(), [0], [0]

    def work() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1

    await asyncio.gather(*(threads.compute(work) for _ in range(8)))
    assert most == [1]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_fork_works_with_threads_of_its_own_although_one_computed_when_it_was_made() -> None:
    threads, go, inside = Threads(1, "e"), threading.Event(), threading.Event()

    def compute() -> None:
        inside.set()
        go.wait(10)

    computed = asyncio.create_task(threads.compute(compute))
    await asyncio.to_thread(inside.wait, 10)
    child = os.fork()
    if child == 0:
        os._exit(_computes_in_time())
    go.set()
    await computed
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def _computes_in_time() -> int:
    def work() -> Any:
        with computing():
            return asyncio.run(Threads(1, "e").run(int, "7"))

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(20)
    return 0 if found == [7] else 1
