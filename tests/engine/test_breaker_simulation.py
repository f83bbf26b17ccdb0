"""SPEC 7, runaway guard, over whole runs in virtual time: who opens it, how fast, and who never does."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat

import pytest

from rubric_env.engine import Breaker, JudgeAborted
from rubric_env.scoring.faults import ENDPOINT_FAULTS, Fault, FaultKind
from tests.engine import virtual_time

K = FaultKind
PER_TIMEOUT = 150.0
BLOCKS = 8

Behaviour = Callable[[random.Random, int, float], FaultKind | None]
"""What becomes of a call, by rollout and time; None: an answer."""

ENDPOINT = sorted(ENDPOINT_FAULTS)
MIXED = [*ENDPOINT, K.RATE_LIMIT, K.REFUSAL, K.CONTENT_FILTER, K.UNPARSEABLE]


def independent(rate: float, *kinds: FaultKind) -> Behaviour:
    return lambda rng, rollout, now: rng.choice(kinds) if rng.random() < rate else None


def seconds(rng: random.Random, kind: FaultKind | None) -> float:
    """A time-out takes all of its time, an answer seconds, a refusal less than one."""
    if kind is K.TIMEOUT:
        return PER_TIMEOUT
    return rng.lognormvariate(0.7, 0.5) if kind in (None, K.EMPTY, K.UNPARSEABLE) else rng.random()


@dataclass
class Fleet:
    """Rollouts of eight blocks, `at_once` of them in flight, `concurrency` blocks of each; tries are a second apart."""

    behaviour: Behaviour
    at_once: int
    concurrency: int = 2
    rollouts: int = 500
    tries: int = 6
    pause: float = 0.0
    """Between the rollouts of one worker."""
    seed: int = 1
    breaker: Breaker = field(default_factory=lambda: Breaker(3))
    calls: int = 0
    finished: int = 0
    failures_before_opening: int = 0
    waited: float = 0.0
    lost: int = 0
    refused: int = 0
    opened_after: int | None = None
    """Calls that had finished when the breaker opened first."""
    probes: int = 0

    def run(self) -> Fleet:
        self._rng = random.Random(self.seed)
        virtual_time.run(self._all())
        return self

    async def _all(self) -> None:
        queue = iter(range(self.rollouts))

        async def worker() -> None:
            for rollout in queue:
                await self._rollout(rollout)
                await asyncio.sleep(self.pause)

        await asyncio.gather(*(worker() for _ in range(self.at_once)))

    async def _rollout(self, rollout: int) -> None:
        gate = asyncio.Semaphore(self.concurrency)
        with self.breaker.rollout(rollout):
            await asyncio.gather(*(self._block(rollout, gate) for _ in range(BLOCKS)))

    async def _block(self, rollout: int, gate: asyncio.Semaphore) -> None:
        for _ in repeat(None, self.tries):
            async with gate:
                try:
                    kind = await self._call(rollout)
                except JudgeAborted:
                    self.refused += 1
                    return
            if kind is None:
                return
            await asyncio.sleep(1)
        self.lost += 1

    async def _call(self, rollout: int) -> FaultKind | None:
        clock = asyncio.get_running_loop().time
        queued = clock()
        while True:
            await self.breaker.ready(rollout)
            with self.breaker.call(rollout) as call:
                if call is None:
                    continue
                self.waited += clock() - queued
                self.calls += 1
                self.probes += self.opened_after is not None
                kind = self.behaviour(self._rng, rollout, clock())
                await asyncio.sleep(seconds(self._rng, kind))
                call.report(Fault(kind, "scripted") if kind else None)
            self._note_end(kind)
            return kind

    def _note_end(self, kind: FaultKind | None) -> None:
        self.finished += 1
        if self.opened_after is None:
            self.failures_before_opening += kind is not None
        with self.breaker.call(object()) as extra:
            if extra is None and self.opened_after is None:
                self.opened_after = self.finished


def failing(kind: FaultKind, *, start: float = 0.0, end: float = math.inf) -> Behaviour:
    """An endpoint that is ill from `start` to `end`."""
    return lambda rng, rollout, now: kind if start <= now < end else None


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", [[K.TIMEOUT], ENDPOINT, MIXED], ids=["timeout", "all", "mixed"])
@pytest.mark.parametrize("in_flight", [8, 64, 200])
def test_independent_faults_at_10_percent_over_4000_blocks_never_open_it(
    in_flight: int, kinds: list[FaultKind], seed: int
) -> None:
    fleet = Fleet(independent(0.1, *kinds), at_once=in_flight // 2, seed=seed).run()
    assert fleet.calls >= 4000
    assert (fleet.opened_after, fleet.waited, fleet.refused, fleet.lost) == (None, 0.0, 0, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_flight", [1, 3])
def test_with_three_calls_in_flight_or_fewer_chance_may_open_it_for_a_second_and_costs_nothing(
    in_flight: int, seed: int
) -> None:
    """Three failures in a row are all that a window of three can see: 1 in 1,000 at 10 %."""
    fleet = Fleet(independent(0.1, *ENDPOINT), at_once=in_flight, concurrency=1, seed=seed).run()
    assert (fleet.refused, fleet.lost, fleet.breaker.aborted) == (0, 0, None)
    assert fleet.waited < 60


@pytest.mark.parametrize("kind", ENDPOINT)
@pytest.mark.parametrize("rollouts", [1, 2, 3, 4, 32, 100])
def test_an_endpoint_that_fails_always_is_given_up_within_20_calls_and_three_probes(
    rollouts: int, kind: FaultKind
) -> None:
    fleet = Fleet(failing(kind), at_once=rollouts, rollouts=120).run()
    assert fleet.opened_after is not None and fleet.opened_after <= 20
    assert isinstance(fleet.breaker.aborted, JudgeAborted)
    # Each of the first three rollouts may look for itself, however few are in flight.
    assert fleet.probes <= 3 + max(0, 3 - rollouts)
    assert fleet.refused + fleet.lost == 120 * BLOCKS


@pytest.mark.parametrize("kind", ENDPOINT)
@pytest.mark.parametrize("rollouts", [1, 2, 3, 32, 100])
def test_an_endpoint_that_dies_in_mid_run_is_given_up_within_20_failures(rollouts: int, kind: FaultKind) -> None:
    fleet = Fleet(failing(kind, start=10.0), at_once=rollouts, rollouts=200).run()
    assert fleet.opened_after is not None
    assert 0 < fleet.failures_before_opening <= 20
    assert isinstance(fleet.breaker.aborted, JudgeAborted)


@pytest.mark.parametrize("kind", ENDPOINT)
@pytest.mark.parametrize("bad", [1, 2])
def test_bad_submissions_among_others_never_open_it(bad: int, kind: FaultKind) -> None:
    def behaviour(rng: random.Random, rollout: int, now: float) -> FaultKind | None:
        return kind if rollout in range(5, 5 + bad) else None

    # The others outlast the bad ones, which are never alone in flight.
    fleet = Fleet(behaviour, at_once=8, rollouts=1500 if kind is K.TIMEOUT else 300, tries=2).run()
    assert fleet.opened_after is None
    assert fleet.lost == bad * BLOCKS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("in_flight", [2, 6, 64, 200])
def test_an_outage_shorter_than_the_probes_costs_no_block(in_flight: int, seed: int) -> None:
    fleet = Fleet(failing(K.CONNECTION, start=10.0, end=14.0), at_once=in_flight // 2, rollouts=100, seed=seed).run()
    assert fleet.opened_after is not None
    assert (fleet.refused, fleet.lost, fleet.breaker.aborted) == (0, 0, None)


def test_after_a_long_outage_a_run_goes_on_by_itself() -> None:
    """Rollouts that meanwhile are refused at once are spread over time here, as those of a trainer are."""
    fleet = Fleet(failing(K.SERVER, start=10.0, end=60.0), at_once=4, rollouts=400, pause=2.0).run()
    assert fleet.breaker.aborted is None
    assert fleet.finished > 100
    assert 0 < fleet.refused < 400 * BLOCKS / 2
