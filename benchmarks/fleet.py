"""A fleet of jobs that share one quota, in virtual time.

    python benchmarks/fleet.py [--quick] [--json] [--plot FILE.svg]

4,312 jobs of 40 rows, at most 1,350 of them judging at once, the first of those within a minute. A block of 4 rows is
one call of 100 s + 3 s a row (lognormal, sigma 0.1), which makes 1 request, or 10 over its time; a request that is
refused ends the call after 0.3 s. The quota: 20,000 requests in any minute. It punishes growth: more than twice the
requests of the 10 s before (400 in 10 s are always allowed) shut it for 5 s; nothing is said in headers or waits.

Jobs run the engine's own queue, tries and back-off under the settings' own numbers (150 s a call, two calls' time and
6 tries a block, resplit, 1,800 s a job, 2 blocks at a time), each in a process of its own: with no control, with the
start jitter of 180 s, and with a limiter that all of them share. Goal, for the shared limiter: coverage of at least
0.999, in at most 1.05 times the larger of two bounds: all requests at the quota, and the same jobs without any quota.
The second is simulated, because jobs of five rounds of calls do not divide evenly: 4,312 of them on 1,350 places take
four turns. `--quick`: a quarter of the jobs and of the quota.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from _lines import line_chart

from rubric_env.engine.limiter import Limiter, Seat
from rubric_env.engine.pace import LocalThrottle, Permit
from rubric_env.engine.tries import Backoff, Tries
from rubric_env.judges.protocol import CallFault, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import HARBOR_DEFAULTS, JudgeSettings
from tests.engine.virtual_time import run

COVERAGE_GOAL = 0.999
TIME_GOAL = 1.05
QUICK = 4


@dataclass(frozen=True)
class Field:
    """What the field's case is made of; seconds."""

    jobs: int = 4312
    at_once: int = 1350
    rows: int = 40
    requests: int = 1
    a_minute: int = 20_000
    arrival: float = 60.0
    fixed: float = 100.0
    a_row: float = 3.0
    sigma: float = 0.1
    refusal: float = 0.3
    growth: float = 2.0
    growth_seconds: int = 10
    growth_free: int = 400
    penalty: float = 5.0

    def shrunk(self, by: int) -> Field:
        return replace(
            self,
            jobs=self.jobs // by,
            at_once=self.at_once // by,
            a_minute=self.a_minute // by,
            growth_free=self.growth_free // by,
        )


class Quota:
    """The endpoint's: counts by the second."""

    def __init__(self, field: Field) -> None:
        self.came: Counter[int] = Counter()
        self.refused: Counter[int] = Counter()
        self._field = field
        self._shut = 0.0
        self._minute = self._last = self._before = 0
        self._second = 0

    def accepts(self, now: float) -> bool:
        second = int(now)
        while self._second < second:
            self._second += 1
            self._roll(self._second)
        field = self._field
        self.came[second] += 1
        allowed = max(field.growth_free, field.growth * self._before)
        if now >= self._shut and self._last >= allowed:
            self._shut = now + field.penalty
        if now < self._shut or self._minute >= field.a_minute:
            self.refused[second] += 1
            return False
        self._minute += 1
        self._last += 1
        return True

    def _roll(self, second: int) -> None:
        """The sums of accepted requests over the last minute, the last seconds, and those before them."""
        span = self._field.growth_seconds
        self._minute -= self._accepted(second - 60)
        self._last -= self._accepted(second - span)
        self._before += self._accepted(second - span) - self._accepted(second - 2 * span)

    def _accepted(self, second: int) -> int:
        return self.came[second] - self.refused[second] if second in self.came else 0


class Unlimited:
    """A quota without limits."""

    def __init__(self) -> None:
        self.came: Counter[int] = Counter()
        self.refused: Counter[int] = Counter()

    def accepts(self, now: float) -> bool:
        self.came[int(now)] += 1
        return True


class NoControl:
    """A throttle that lets everything out."""

    fallback = False

    def take(self, quota: str, tokens: int) -> Permit:
        return Permit(quota, tokens)

    async def reserve(self, quota: str, tokens: int) -> Permit:
        return Permit(quota, tokens)

    def settle(self, permit: Permit, answer: Reply | CallFault) -> None: ...

    def refund(self, permit: Permit) -> None: ...


class Judge:
    """Answers blocks of rows, a call as so many requests over its time."""

    def __init__(self, field: Field, quota: Quota | Unlimited, seed: int) -> None:
        self.calls = self.refused = 0
        self._field = field
        self._quota = quota
        self._random = random.Random(seed)

    async def ask(self, rows: int, timeout: float) -> Reply | CallFault:
        field, clock = self._field, asyncio.get_running_loop().time
        self.calls += 1
        seconds = (field.fixed + field.a_row * rows) * self._random.lognormvariate(0, field.sigma)
        end = clock() + min(seconds, timeout)
        for left in range(field.requests, 0, -1):
            if not self._quota.accepts(clock()):
                self.refused += 1
                await asyncio.sleep(field.refusal)
                return CallFault(Fault(FaultKind.RATE_LIMIT))
            await asyncio.sleep((end - clock()) / left)
        if seconds > timeout:
            return CallFault(Fault(FaultKind.TIMEOUT))
        return Reply("{}", Usage(), seconds)


class Job:
    """The rows of one rollout: in blocks, then what is left of a block row by row."""

    def __init__(self, judge: Judge, limiter: Limiter, settings: JudgeSettings, backoff: Backoff, rows: int) -> None:
        self.judged = 0
        self._judge, self._limiter, self._settings, self._backoff, self._rows = judge, limiter, settings, backoff, rows

    async def run(self) -> None:
        self._seat = Seat(asyncio.get_running_loop().time() + self._settings.deadline)
        self._gate = asyncio.Semaphore(self._settings.concurrency)
        blocks = [min(self._settings.batch, self._rows - start) for start in range(0, self._rows, self._settings.batch)]
        try:
            async with asyncio.timeout_at(self._seat.deadline), asyncio.TaskGroup() as tasks:
                for number, rows in enumerate(blocks):
                    first_wave = number < self._settings.concurrency
                    jitter = self._settings.start_jitter if first_wave else 0.0
                    tasks.create_task(self._block(rows, jitter, tasks))
        except TimeoutError:
            pass

    async def _block(self, rows: int, jitter: float, tasks: asyncio.TaskGroup) -> None:
        if jitter:
            async with self._gate:
                await asyncio.sleep(random.uniform(0, jitter))
        if not await self._try(rows) and rows > 1 and self._settings.resplit:
            for _ in range(rows):
                tasks.create_task(self._try(1))

    async def _try(self, rows: int) -> bool:
        tries = Tries(self._settings, self._backoff, self._seat.deadline)
        while True:
            async with self._gate, self._limiter.slot(self._seat, "judge") as turn:
                turn.answer = answer = await self._judge.ask(rows, tries.timeout)
            if isinstance(answer, Reply):
                self.judged += rows
                return True
            if not await tries.again(answer):
                return False


@dataclass(frozen=True)
class Result:
    """What became of the fleet."""

    control: str
    requests_a_block: int
    coverage: float
    calls: int
    refused_calls: int
    requests: int
    refused_requests: int
    peak_a_minute: int
    seconds: float
    by_second: tuple[int, ...]

    def figures(self) -> dict[str, object]:
        return {name: value for name, value in asdict(self).items() if name != "by_second"}


async def fleet(field: Field, control: str) -> Result:
    """All jobs under one control: `none`, `jitter`, `shared`, or `no quota` for the bound."""
    random.seed(5)
    loop = asyncio.get_running_loop()
    quota = Unlimited() if control == "no quota" else Quota(field)
    judge = Judge(field, quota, seed=11)
    jitter = HARBOR_DEFAULTS["start_jitter"] if control == "jitter" else 0.0
    settings = JudgeSettings(start_jitter=jitter)
    throttle = LocalThrottle(slow=True, clock=loop.time) if control == "shared" else NoControl()
    backoff = Backoff(settings.retry_backoff_max)
    places = asyncio.Semaphore(field.at_once)
    jobs = []

    async def one(number: int) -> None:
        await asyncio.sleep(number * field.arrival / field.at_once)
        async with places:
            # A process of its own: its own queue, and what it shares with the others is the throttle alone.
            job = Job(judge, Limiter(settings.max_in_flight, throttle), settings, backoff, field.rows)
            jobs.append(job)
            await job.run()

    async with asyncio.TaskGroup() as tasks:
        for number in range(field.jobs):
            tasks.create_task(one(number))
    seconds = loop.time()
    by_second = [quota.came[second] for second in range(int(seconds) + 1)]
    return Result(
        control,
        field.requests,
        sum(job.judged for job in jobs) / (field.jobs * field.rows),
        judge.calls,
        judge.refused,
        sum(by_second),
        sum(quota.refused.values()),
        max(sum(by_second[start : start + 60]) for start in range(len(by_second))),
        seconds,
        tuple(by_second),
    )


def measure(field: Field) -> tuple[list[Result], dict[str, float]]:
    """All controls in one field, and its bounds in seconds."""
    calls = field.jobs * -(-field.rows // JudgeSettings().batch)
    bounds = {
        "quota": calls * field.requests / field.a_minute * 60,
        "concurrency": run(fleet(field, "no quota")).seconds,
    }
    return [run(fleet(field, control)) for control in ("none", "jitter", "shared")], bounds


def report(field: Field, results: Sequence[Result], bounds: dict[str, float]) -> None:
    print(
        f"\n{field.jobs:,} jobs of {field.rows} rows, {field.at_once:,} at once, requests a block: {field.requests}; "
        f"quota {field.a_minute:,} a minute,\nshut for {field.penalty:g} s by more than {field.growth:g} times the "
        f"{field.growth_seconds} s before (and than {field.growth_free}). "
        f"Bounds: quota {bounds['quota']:,.0f} s, concurrency {bounds['concurrency']:,.0f} s"
    )
    print("control  peak/min coverage      calls    refused   requests     time  x bound")
    for result in results:
        print(
            f"{result.control:<8}{result.peak_a_minute:>9,}{result.coverage:>9.4f}{result.calls:>11,}"
            f"{result.refused_calls:>11,}{result.requests:>11,}{result.seconds:>7,.0f} s"
            f"{result.seconds / max(bounds.values()):>9.3f}"
        )


def plot(field: Field, results: Sequence[Result]) -> str:
    """Requests a minute over time, from the counts of 10 seconds each."""
    lines = {
        result.control: [
            (second, 6.0 * sum(result.by_second[second : second + 10])) for second in range(0, int(result.seconds), 10)
        ]
        for result in results
    }
    title = f"Requests a minute of {field.jobs:,} jobs, {field.requests} a block"
    return line_chart(title, lines, level=field.a_minute, level_name="quota")


def good(shared: Result, bounds: dict[str, float]) -> bool:
    return shared.coverage >= COVERAGE_GOAL and shared.seconds <= TIME_GOAL * max(bounds.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a quarter of the jobs and of the quota")
    parser.add_argument("--json", action="store_true", help="the figures as one JSON object on stdout")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="requests a minute, 10 a block, as SVG")
    options = parser.parse_args()
    figures, reached = [], True
    for requests in (1, 10):
        field = replace(Field().shrunk(QUICK) if options.quick else Field(), requests=requests)
        results, bounds = measure(field)
        reached = reached and good(results[-1], bounds)
        if not options.json:
            report(field, results, bounds)
        figures.append({"field": asdict(field), "bounds": bounds, "results": [result.figures() for result in results]})
    if options.plot is not None:
        options.plot.write_text(plot(field, results), "utf-8")
    if options.json:
        print(json.dumps({"cases": figures, "goal_reached": reached}))
    else:
        goal = f"shared limiter: coverage >= {COVERAGE_GOAL}, time <= {TIME_GOAL} x the larger bound"
        print(f"\n{goal}: {'yes' if reached else 'NO'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
