"""Whether an event loop goes on while something takes long beside it: measured so that a busy machine is no failure."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LATE = 0.1
"""Seconds between two beats of a loop that is held up, by us or by the machine."""


@asynccontextmanager
async def the_loop_goes_on(cpu_seconds: float = 0.25) -> AsyncIterator[None]:
    """The block neither works for `cpu_seconds` on end in the loop's thread, nor lets the loop wait half the time."""
    over = False
    held_up = longest = 0.0

    async def beat() -> None:
        nonlocal held_up, longest
        while not over:
            before, spent = time.monotonic(), time.thread_time()
            await asyncio.sleep(0.005)
            late = time.monotonic() - before
            held_up += late if late > LATE else 0.0
            longest = max(longest, time.thread_time() - spent)

    beating, begin = asyncio.create_task(beat()), time.monotonic()
    await asyncio.sleep(0)
    try:
        yield
    finally:
        over = True
        await beating
    assert longest < cpu_seconds, "the work was done in the loop"
    assert held_up < (time.monotonic() - begin) / 2, "the loop waited for it"
