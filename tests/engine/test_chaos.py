"""SPEC 7 under fire: hundreds of rollouts over real HTTP through scripted sequences of faults, with fixed seeds."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from rubric_env.engine import CallEvent
from rubric_env.harbor import result_json
from rubric_env.scoring import Outcome
from tests.engine.chaos import (
    BLOCKS,
    FOR_EVER,
    KEY,
    RUBRIC,
    TELLS_THE_KEY,
    Weather,
    case,
    is_right,
    judge_all,
    nothing_leaks,
    run_of,
    storm_engine,
)
from tests.engine.conftest import faults
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS


@pytest.mark.parametrize(
    ("seed", "settings"),
    [
        (1, {}),
        (2, {}),
        (3, {"stream": "on"}),
        (4, {"backend": "responses"}),
        (5, {"backend": "responses", "stream": "on"}),
    ],
)
def test_transient_faults_cost_no_verdict_and_no_call_more_than_they_must(
    endpoint: Endpoint, seed: int, settings: dict[str, Any]
) -> None:
    rollouts = 60
    weather = Weather(seed, streamed="stream" in settings).over(endpoint)
    with nothing_leaks(endpoint):
        outcomes = asyncio.run(judge_all(storm_engine(endpoint, **settings), [case(n) for n in range(rollouts)]))
    for run, outcome in enumerate(outcomes):
        assert outcome is not None
        is_right(outcome, weather.truth(run))
    assert weather.faults > 2 * rollouts
    assert len(weather.blocks) == rollouts * BLOCKS
    assert len(endpoint.calls) - weather.resplit <= 1.1 * (rollouts * BLOCKS + weather.faults)
    assert sum(outcome.fields["judge_calls"] for outcome in outcomes if outcome is not None) == len(endpoint.calls)


def test_two_event_loops_at_once_share_an_engine(endpoint: Endpoint) -> None:
    weather = Weather(seed=4).over(endpoint)
    engine = storm_engine(endpoint)
    outcomes: dict[int, Outcome | None] = {}

    def judge(runs: range) -> None:
        outcomes.update(zip(runs, asyncio.run(judge_all(engine, [case(n) for n in runs])), strict=True))

    with nothing_leaks(endpoint):
        threads = [threading.Thread(target=judge, args=(runs,)) for runs in (range(25), range(25, 50))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(outcomes) == 50
    for run, outcome in outcomes.items():
        assert outcome is not None
        is_right(outcome, weather.truth(run))


@pytest.mark.parametrize("seed", [6])
def test_a_third_of_the_rollouts_cancelled_at_random_moments_harms_no_other(endpoint: Endpoint, seed: int) -> None:
    weather = Weather(seed).over(endpoint)
    rng = random.Random(seed)
    rollouts, size = 60, 16

    async def storm() -> list[Outcome | None]:
        engine = storm_engine(endpoint, max_in_flight=size)
        cancel = {n: rng.uniform(0, 0.5) for n in rng.sample(range(rollouts), rollouts // 3)}
        outcomes = await judge_all(engine, [case(n) for n in range(rollouts)], cancel=cancel)
        # Every slot is free again.
        weather.calm = 1.0
        endpoint.max_in_flight = 0
        endpoint.default = SCENARIOS["ok"].after(0.5)
        another = storm_engine(endpoint, max_in_flight=size, model="of another quota")
        await judge_all(another, [case(1000 + n) for n in range(size)])
        return outcomes

    with nothing_leaks(endpoint):
        outcomes = asyncio.run(storm())
    assert 5 < outcomes.count(None) <= rollouts // 3
    for run, outcome in enumerate(outcomes):
        if outcome is not None:
            is_right(outcome, weather.truth(run))
    assert endpoint.max_in_flight == size


def test_equal_submissions_of_a_group_are_asked_once_even_if_who_asked_first_is_cancelled(endpoint: Endpoint) -> None:
    weather = Weather(seed=7).over(endpoint)
    rng = random.Random(7)
    runs = [n // 4 for n in range(80)]
    cancel = {n: rng.uniform(0, 1) for n in range(0, 80, 4)}
    cases = [case(run, group=f"group {run}") for run in runs]
    with nothing_leaks(endpoint):
        outcomes = asyncio.run(judge_all(storm_engine(endpoint), cases, cancel=cancel))
    for run, outcome in zip(runs, outcomes, strict=True):
        if outcome is not None:
            is_right(outcome, weather.truth(run))
    repeated = sum(call.abandoned for call in endpoint.calls)
    assert len(endpoint.calls) - weather.resplit - repeated <= 1.1 * (20 * BLOCKS + weather.faults)


def test_what_a_submission_causes_for_ever_touches_no_other_rollout(endpoint: Endpoint) -> None:
    rollouts = 40
    poisoned = {run: FOR_EVER[run // 10 % len(FOR_EVER)] for run in range(0, rollouts, 10)}
    weather = Weather(seed=8, poisoned=poisoned).over(endpoint)
    engine = storm_engine(endpoint)
    with nothing_leaks(endpoint):
        outcomes = asyncio.run(judge_all(engine, [case(n) for n in range(rollouts)]))
    for run, outcome in enumerate(outcomes):
        assert outcome is not None
        if run not in poisoned:
            is_right(outcome, weather.truth(run))
            continue
        assert (outcome.scored, outcome.reward, str(outcome.exit_code)) == (False, None, "judge:api_error")
        assert set(faults(outcome)) == set(RUBRIC.ids)
        assert outcome.fields["judge_fault_submission"] == len(RUBRIC)


def test_with_the_breaker_on_one_fault_in_ten_costs_nothing(endpoint: Endpoint) -> None:
    weather = Weather(seed=9, calm=0.96).over(endpoint)
    engine = storm_engine(endpoint, max_consecutive_failures=3)
    outcomes = asyncio.run(judge_all(engine, [case(n) for n in range(80)]))
    assert 0.05 < weather.faults / len(endpoint.calls) < 0.2
    assert engine.aborted is None
    for run, outcome in enumerate(outcomes):
        assert outcome is not None
        is_right(outcome, weather.truth(run))


@pytest.mark.parametrize("settings", [{}, {"stream": "on"}, {"backend": "responses"}])
def test_no_output_shows_the_key(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture, tmp_path: Path, settings: dict[str, Any]
) -> None:
    for scenario in TELLS_THE_KEY:
        endpoint.rule(lambda call, s=scenario: run_of(call) % len(TELLS_THE_KEY) == TELLS_THE_KEY.index(s), scenario)
    events: list[CallEvent] = []
    engine = storm_engine(endpoint, max_tries=2, deadline=1, events=str(tmp_path / "events.jsonl"), **settings)
    engine.on_call = events.append
    with caplog.at_level(logging.DEBUG):
        outcomes = asyncio.run(judge_all(engine, [case(n) for n in range(len(TELLS_THE_KEY))]))
    results = []
    for outcome in outcomes:
        assert outcome is not None
        assert not outcome.scored
        results.append(result_json(outcome, engine.settings))
    for call in endpoint.calls:
        assert call.key == KEY
        assert KEY not in json.dumps(call.body)
    written = (tmp_path / "events.jsonl").read_text()
    for output in (caplog.text, repr(outcomes), json.dumps(results), repr(events), written, repr(engine.settings)):
        assert KEY not in output
