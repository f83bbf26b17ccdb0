"""Who computes on an event loop, and for how long at a time."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from asyncio import events
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import verdict_parsers
import verifiers

import rubric_env

BEAT = 0.005
LONG = 0.02
"""Seconds of a step from which on it is looked at, every `GLANCE` seconds."""
GLANCE = 0.003

_OURS = tuple(f"{Path(str(module.__file__)).parent}{os.sep}" for module in (rubric_env, verdict_parsers))
_THEIRS = f"{Path(str(verifiers.__file__)).parent}{os.sep}"


@dataclass(frozen=True)
class Step:
    """One that computed for `LONG`. `seconds` are CPU seconds of the loop's thread, without garbage collection."""

    seconds: float
    seen: Counter[str]
    """How often which place was at work; `unseen` where nobody could look, since one call into C held the interpreter.
    """

    def share(self, whose: str) -> float:
        """Seconds of it that were the work of `ours`, `verifiers`, `others` or `unseen`."""
        times = sum(times for place, times in self.seen.items() if place.startswith(whose))
        return self.seconds * times / self.seen.total()


@dataclass
class Watch:
    """What happened on a loop while `watching` it. Times are seconds."""

    steps: list[Step] = field(default_factory=list)
    longest: float = 0.0
    """Of all steps, whoever's."""
    beats: list[tuple[float, float]] = field(default_factory=list)
    """When a task that sleeps `BEAT` was to wake, and how late it did."""
    pause: float = 0.0
    """The longest garbage collection on the loop's thread."""

    def longest_of(self, whose: str) -> float:
        return max((step.share(whose) for step in self.steps), default=0.0)

    def figures(self) -> dict[str, float]:
        """Milliseconds."""
        late = sorted(lateness for _, lateness in self.beats)
        return {
            "late_p50": 1000 * late[len(late) // 2],
            "late_p99": 1000 * late[int(0.99 * len(late))],
            "late_max": 1000 * late[-1],
            "callback": 1000 * self.longest,
            **{whose: 1000 * self.longest_of(whose) for whose in ("ours", "verifiers", "unseen")},
            "gc": 1000 * self.pause,
        }


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch the running loop, whose thread is this one."""
    watch, run, thread = Watch(), events.Handle._run, threading.get_ident()
    number, collected, over = 0, 0.0, threading.Event()
    began: tuple[int, float] | None = None
    seen: dict[int, Counter[str]] = {}

    def timed(handle: events.Handle) -> None:
        nonlocal number, began, collected
        if threading.get_ident() != thread:
            run(handle)
            return
        number, collected = number + 1, 0.0
        began, start = (number, time.perf_counter()), time.thread_time()
        run(handle)
        seconds = time.thread_time() - start - collected
        began = None
        watch.longest = max(watch.longest, seconds)
        if seconds > LONG:
            watch.steps.append(Step(seconds, seen.get(number) or Counter(["unseen"])))

    def look() -> None:
        while not over.wait(GLANCE):
            step = began
            if step is not None and time.perf_counter() - step[1] > LONG:
                frame = sys._current_frames().get(thread)
                seen.setdefault(step[0], Counter())[_place(frame)] += 1

    start = 0.0

    def collecting(phase: str, info: Any) -> None:
        nonlocal start, collected
        if threading.get_ident() == thread:
            if phase == "start":
                start = time.thread_time()
            else:
                pause = time.thread_time() - start
                collected += pause
                watch.pause = max(watch.pause, pause)

    heart = asyncio.get_running_loop().create_task(_beat(watch.beats))
    looker = threading.Thread(target=look, daemon=True)
    events.Handle._run = timed  # type: ignore[method-assign]
    gc.callbacks.append(collecting)
    looker.start()
    try:
        yield watch
    finally:
        over.set()
        looker.join()
        gc.callbacks.remove(collecting)
        events.Handle._run = run  # type: ignore[method-assign]
        heart.cancel()


async def _beat(beats: list[tuple[float, float]]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(BEAT)
        beats.append((began, time.perf_counter() - began - BEAT))


def _place(frame: FrameType | None) -> str:
    """Whose code, rubric-env's or verifiers', had called what is at work; both call each other and many libraries."""
    while frame is not None:
        name = frame.f_code.co_filename
        whose = "ours" if name.startswith(_OURS) else "verifiers" if name.startswith(_THEIRS) else ""
        if whose:
            path = Path(name)
            return f"{whose}: {path.parent.name}/{path.name} {frame.f_code.co_qualname}"
        frame = frame.f_back
    return "others"
