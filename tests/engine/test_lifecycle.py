"""The breaker, cancellation, the observer and several event loops, with whole rollouts over real HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from rubric_env.engine import Breaker, CallEvent, JudgeAborted, JudgeEngine
from rubric_env.scoring import FaultKind, Outcome
from tests.engine.conftest import Judging, case, faults, rows, until
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS


async def test_section_7_a_dead_endpoint_is_given_up_and_the_rest_is_breaker_open(judging: Judging) -> None:
    engine = judging.engine(breaker=Breaker(3, probes=(0.02, 0.04, 0.08)))
    await engine.judge(case(rows(1)))  # what the endpoint can do is known
    judging.endpoint.default = SCENARIOS["503"]
    outcomes = await asyncio.gather(*(engine.judge(case(rows(32), name=f"r{n}")) for n in range(8)))
    kinds = Counter(kind for outcome in outcomes for kind in faults(outcome).values())
    assert kinds["breaker_open"] > 0.8 * kinds.total() == 0.8 * 8 * 32
    assert len(judging.endpoint.calls) < 80
    assert isinstance(engine.aborted, JudgeAborted)
    assert "judge endpoint given up" in outcomes[-1].exit_reason
    before = len(judging.endpoint.calls)
    assert set(faults(await engine.judge(case(rows(4)))).values()) == {"breaker_open"}
    assert len(judging.endpoint.calls) == before


async def test_section_7_an_endpoint_that_comes_back_costs_nothing(judging: Judging) -> None:
    engine = judging.engine(breaker=Breaker(3, probes=(0.1, 0.2, 0.4)))
    await engine.judge(case(rows(1)))  # what the endpoint can do is known
    judging.endpoint.default = SCENARIOS["503"]
    judged = asyncio.gather(*(engine.judge(case(rows(8))) for _ in range(4)))
    await asyncio.sleep(0.2)
    judging.endpoint.default = SCENARIOS["ok"]
    outcomes = await judged
    assert [outcome.reward for outcome in outcomes] == [1.0] * 4
    assert engine.aborted is None


async def test_section_7_a_poisoned_submission_opens_no_breaker_for_the_others(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: "POISON" in call.text, "503")
    engine = judging.engine(breaker=Breaker(3, probes=(0.02, 0.04, 0.08)), max_tries=3)
    judging.endpoint.default = SCENARIOS["ok"].after(0.02)
    good = [engine.judge(case(rows(16))) for _ in range(5)]
    poisoned = engine.judge(case(rows(16), "POISON"))
    *outcomes, bad = await asyncio.gather(*good, poisoned)
    assert [outcome.reward for outcome in outcomes] == [1.0] * 5
    assert bad.scored is False
    assert (await engine.judge(case(rows(16)))).reward == 1.0


async def test_a_cancelled_rollout_leaves_no_task_and_no_socket(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["hang"]
    engine = judging.engine(concurrency=4)
    before = asyncio.all_tasks()
    task = asyncio.create_task(engine.judge(case(rows(32))))
    await until(lambda: judging.endpoint.in_flight == 4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    assert [event.fault and event.fault.kind for event in judging.events] == [FaultKind.CANCELLED] * 4
    await asyncio.to_thread(judging.endpoint.settle)
    judging.endpoint.default = SCENARIOS["ok"]
    assert (await engine.judge(case(rows(4)))).reward == 1.0


async def test_an_observer_sees_every_call(judging: Judging) -> None:
    judging.endpoint.script("503")
    await judging.engine().judge(case(rows(2), name="rollout 7"))
    failed, answered = judging.events
    assert (failed.question.name, failed.question.ids) == ("rollout 7", ("R01", "R02"))
    assert failed.fault is not None and failed.fault.kind == "server"
    assert answered.fault is None
    assert answered.usage.input_tokens > 0
    assert failed.queued <= failed.start < failed.end <= answered.queued


async def test_an_observer_that_raises_harms_nobody(judging: Judging, caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: CallEvent) -> None:
        raise RuntimeError("observer is broken")

    engine = judging.engine()
    engine.on_call = broken
    assert (await engine.judge(case(rows(1)))).reward == 1.0
    assert "observer is broken" in caplog.text


def test_one_engine_serves_several_loops(endpoint: Endpoint) -> None:
    engine = Judging(endpoint).engine()
    for _ in range(2):
        assert asyncio.run(_judge_and_close(engine)).reward == 1.0


async def _judge_and_close(engine: JudgeEngine) -> Outcome:
    outcome = await engine.judge(case(rows(4)))
    await engine.aclose()
    return outcome


async def test_section_7_rows_that_came_whole_before_the_deadline_are_kept(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["stall"]
    engine = judging.engine(stream="on", deadline=3.0, per_timeout=60, max_uncertainty=None, systemic_fraction=1)
    outcome = await engine.judge(case(rows(4)))
    assert outcome.judgement is not None
    assert outcome.judgement.verdicts
    assert set(faults(outcome).values()) == {"deadline"}
    assert outcome.fields["judge_calls"] == 1
    assert outcome.fields["judge_cost_known"] is False


async def test_section_7_what_the_deadline_cuts_off_is_no_failure_of_the_endpoint(judging: Judging) -> None:
    engine = judging.engine(breaker=Breaker(3, probes=(0.02, 0.04, 0.08)), per_timeout=60)
    judging.endpoint.default = SCENARIOS["hang"]
    outcomes = await asyncio.gather(*(engine.judge(case(rows(4), seconds=1.0)) for _ in range(6)))
    assert {kind for outcome in outcomes for kind in faults(outcome).values()} == {"deadline"}
    judging.endpoint.default = SCENARIOS["ok"]
    assert (await engine.judge(case(rows(4)))).reward == 1.0
    assert engine.aborted is None


async def test_section_7_the_deadline_covers_the_jitter(judging: Judging) -> None:
    outcome = await judging(rows(4), deadline=0.3, start_jitter=3000)
    assert faults(outcome) == dict.fromkeys(["R01", "R02", "R03", "R04"], "deadline")
    assert outcome.fields["judge_seconds"] < 60
    assert judging.endpoint.calls == []
