"""Processes that judge under one Redis, and what a test can tell them. The judge is a function: no HTTP here."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import rubric_env.engine.shared._link as link
import rubric_env.engine.shared.breaker as shared_breaker
import rubric_env.engine.shared.throttle as shared_throttle
from rubric_env.engine.calls import Calls
from rubric_env.engine.events import Question
from rubric_env.engine.limiter import Limiter, Seat
from rubric_env.engine.pace import Limits
from rubric_env.engine.shared import RedisThrottle, SharedBreaker
from rubric_env.engine.shared._link import Links
from rubric_env.judges.protocol import CallFault, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage

PROBES = (0.15, 0.3, 0.6)
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__, "pytest"])  # a child imports the main module of the run


@dataclass(frozen=True)
class Job:
    """What one process does: `tasks` rollouts ask again and again for `seconds`."""

    url: str
    seconds: float
    tasks: int = 8
    limits: Limits = field(default_factory=Limits)
    tokens: int = 100
    call: float = 0.02
    """Seconds that a call takes."""
    fails: FaultKind | None = None
    heals: str = ""
    """Calls do not fail any more once there is a file of that name."""
    probes: tuple[float, ...] = PROBES
    answered: float = float("inf")
    """So many calls end; all later ones last for ever."""
    skew: float = 0.0
    """Seconds that this machine's clocks are ahead."""


@dataclass
class Told:
    """What became of it. Times are Unix times, true ones."""

    starts: list[float] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """The fault of each call, or `ok`."""
    fallback: list[tuple[float, bool]] = field(default_factory=list)
    aborted: str = ""


def work(job: Job, tell: Connection, begin: Barrier) -> None:
    """The process: everything that takes minutes in earnest is shorter here."""
    link.RETRY = 0.5
    shared_throttle.OVERTIME = shared_breaker.PROBE = shared_breaker.PRESENT = 1.0
    shared_breaker.HELLO = 0.3
    true, monotonic = time.time, time.monotonic
    time.time = lambda: true() + job.skew
    time.monotonic = lambda: monotonic() + job.skew
    begin.wait(60)
    tell.send(asyncio.run(_work(job, true)))


async def _work(job: Job, now: Callable[[], float]) -> Told:
    links = Links(job.url)
    throttle = RedisThrottle(links, job.limits, job.call, slow=False)
    breaker = SharedBreaker(links, "endpoint", 3, probes=job.probes)
    calls, told, end = Calls(Limiter(64, throttle), breaker), Told(), now() + job.seconds

    def answer() -> Reply | CallFault:
        failing = job.fails is not None and not Path(job.heals).is_file()
        return CallFault(Fault(job.fails, "scripted")) if failing else Reply("yes", Usage(), 0.0)

    async def ask() -> Reply | CallFault:
        told.starts.append(now())
        await asyncio.sleep(job.call if len(told.starts) <= job.answered else 3600.0)
        return answer()

    async def rollout() -> None:
        seat = Seat(asyncio.get_running_loop().time() + 3600)
        with breaker.rollout(seat):
            while now() < end:
                answer = await calls.make(ask, seat, Question(quota="quota", tokens=job.tokens))
                told.ends.append(str(answer.fault.kind) if isinstance(answer, CallFault) else "ok")
                if told.ends[-1] != "ok":
                    await asyncio.sleep(0.05)

    async def watch() -> None:
        while True:
            if not told.fallback or told.fallback[-1][1] != throttle.fallback:
                told.fallback.append((now(), throttle.fallback))
            told.aborted = told.aborted or str(breaker.aborted or "")
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(rollout() for _ in range(job.tasks)))
    watching.cancel()
    await breaker.aclose()
    await links.aclose()
    return told


class Fleet:
    """Processes, one a job."""

    def __init__(self) -> None:
        self._members: list[tuple[BaseProcess, Connection]] = []
        self._barriers: list[Barrier] = []  # they go with what holds them here

    def start(self, *jobs: Job) -> list[BaseProcess]:
        """They begin at the same time."""
        begin = _processes.Barrier(len(jobs))
        self._barriers.append(begin)
        for job in jobs:
            here, there = _processes.Pipe(duplex=False)
            process = _processes.Process(target=work, args=(job, there, begin), daemon=True)
            process.start()
            there.close()
            self._members.append((process, here))
        return [process for process, _ in self._members[-len(jobs) :]]

    def results(self) -> list[Told]:
        """Of the processes that were not killed."""
        told = []
        for process, here in self._members:
            if process.exitcode != -signal.SIGKILL:
                assert here.poll(120), "a process does not end"
                told.append(here.recv())
        return told

    def stop(self) -> None:
        for process, _ in self._members:
            process.kill()
            process.join()


@contextmanager
def fleet() -> Iterator[Fleet]:
    members = Fleet()
    try:
        yield members
    finally:
        members.stop()


def run(*jobs: Job) -> list[Told]:
    with fleet() as members:
        members.start(*jobs)
        return members.results()


def most_within(seconds: float, times: list[float]) -> int:
    """The most of `times` that lie within a span of so many seconds."""
    ordered, first, most = sorted(times), 0, 0
    for last, moment in enumerate(ordered):
        while ordered[first] < moment - seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def seed(links: Links, quota: str, state: Any) -> None:
    """Let Redis know what goes for a quota. In a loop."""
    RedisThrottle(links, Limits(), 0.0)._publish(links.here(), quota, state, "")
