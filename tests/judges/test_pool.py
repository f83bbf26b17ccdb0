"""SPEC 7: several endpoints with weights and failover; a rollout stays with one of them as long as that is well."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rubric_env.engine import Backoff, JudgeEngine
from rubric_env.judges import (
    CallFault,
    ChatJudge,
    LocalJudge,
    Prompt,
    Reply,
    make_judge,
    resolve_credentials,
    resolve_endpoints,
)
from rubric_env.judges.pool import DOWN, LIMITED, LONGEST, REFUSED, TRIAL, JudgePool
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import JudgeSettings
from tests.engine.conftest import case, faults, rows
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS, error

K = FaultKind
ANSWER = Reply("{}", Usage(calls=1), 0.1)


class Named:
    """A judge of a name, which answers nothing."""

    def __init__(self, name: str, model: str = "m") -> None:
        self.model = model
        self.identity = name
        self.closed = 0

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault:
        return fault(K.SERVER)

    async def aclose(self) -> None:
        self.closed += 1


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fault(kind: FaultKind, retry_after: float | None = None, seconds: float = 0.1) -> CallFault:
    return CallFault(Fault(kind), Usage(calls=1), seconds, retry_after)


def prompts(count: int) -> list[Prompt]:
    return [make_prompt("R01", evidence=f"evidence {n}") for n in range(count)]


def pool_of(*names: str, weights: Sequence[float] = ()) -> tuple[JudgePool, Clock, dict[str, Any]]:
    clock = Clock()
    judges = {name: Named(name) for name in names}
    members = list(zip(judges.values(), weights or [1.0] * len(names), strict=True))
    return JudgePool(members, clock=clock), clock, judges


def shares(pool: JudgePool, count: int = 300) -> Counter[str]:
    return Counter(pool.pick(prompt).identity for prompt in prompts(count))


def prompt_for(pool: JudgePool, name: str) -> Prompt:
    return next(prompt for prompt in prompts(100) if pool.pick(prompt).identity == name)


# Who is asked


def test_all_blocks_of_a_rollout_go_to_one_member() -> None:
    pool, _, _ = pool_of("a", "b", "c")
    for n in range(30):
        picked = {pool.pick(make_prompt(row, evidence=f"evidence {n}")).identity for row in ("R01", "R02", "R03")}
        assert len(picked) == 1


def test_shares_follow_the_weights() -> None:
    pool, _, _ = pool_of("a", "b", "c", weights=(1, 1, 2))
    found = shares(pool, 2000)
    assert found["a"] == pytest.approx(500, abs=80)
    assert found["b"] == pytest.approx(500, abs=80)
    assert found["c"] == pytest.approx(1000, abs=100)


def test_a_rollout_keeps_its_member_in_any_order_and_when_another_is_gone() -> None:
    three, _, _ = pool_of("a", "b", "c")
    turned, _, _ = pool_of("c", "a", "b")
    two, _, _ = pool_of("a", "c")
    for prompt in prompts(200):
        picked = three.pick(prompt).identity
        assert turned.pick(prompt).identity == picked
        assert picked == "b" or two.pick(prompt).identity == picked


def test_section_7_identity_is_of_all_members_in_any_order_and_keys_do_not_count() -> None:
    assert pool_of("a", "b")[0].identity == pool_of("b", "a")[0].identity == "a + b"
    same = JudgePool([(Named("a"), 1.0), (Named("a"), 3.0)])
    assert same.identity == "a"
    assert {id(same.pick(prompt)) for prompt in prompts(50)} == {id(member.judge) for member in same._members}
    assert JudgePool([(Named("a", "x"), 1.0), (Named("b", "m"), 1.0)]).model == "m + x"


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_a_weight_is_a_number_above_0(weight: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        JudgePool([(Named("a"), 1.0), (Named("b"), weight)])
    with pytest.raises(ValueError, match="at least one"):
        JudgePool([])


# A single member


def test_a_single_judge_is_passed_through() -> None:
    judge = Named("a")
    pool = JudgePool.of(judge)
    assert JudgePool.of(pool) is pool
    assert (pool.model, pool.identity) == ("m", "a")
    for kind in (*FaultKind,) * 3:
        answer = fault(kind)
        assert pool.noted(judge, answer) is answer
        assert pool.pick(make_prompt("R01")) is judge
    assert pool.complete is None
    assert pool.client() is judge


# Failures


@pytest.mark.parametrize("kind", [K.CONNECTION, K.SERVER, K.EMPTY])
def test_two_failures_in_a_row_of_a_silent_member_move_its_rollouts(kind: FaultKind) -> None:
    pool, clock, judges = pool_of("a", "b")
    prompt = prompt_for(pool, "a")
    assert pool.noted(judges["a"], fault(kind)) == fault(kind)
    assert pool.pick(prompt) is judges["a"]
    clock.now += 1
    answer = pool.noted(judges["a"], fault(kind))
    assert isinstance(answer, CallFault)
    assert answer.elsewhere
    assert pool.pick(prompt) is judges["b"]
    clock.now += DOWN[0] - 0.1
    assert shares(pool)["a"] == 0
    clock.now += 0.2
    assert pool.pick(prompt) is judges["a"]


def test_one_time_out_moves_a_rollout_unless_others_were_answered_meanwhile() -> None:
    pool, clock, judges = pool_of("a", "b")
    clock.now += 150
    pool.noted(judges["a"], ANSWER)
    clock.now += 10
    assert not pool.noted(judges["a"], fault(K.TIMEOUT, seconds=150)).elsewhere
    pool.noted(judges["a"], ANSWER)
    clock.now += 150
    assert pool.noted(judges["a"], fault(K.TIMEOUT, seconds=150)).elsewhere
    assert shares(pool)["a"] == 0


def test_what_is_not_of_the_endpoint_shows_nothing() -> None:
    pool, clock, judges = pool_of("a", "b")
    for _ in range(2):
        pool.noted(judges["a"], fault(K.CONNECTION))
    clock.now += 1
    for kind in (K.BREAKER_OPEN, K.DEADLINE, K.CANCELLED, K.INTERNAL):
        assert not pool.noted(judges["b"], fault(kind)).elsewhere
        assert not pool.noted(judges["a"], fault(kind)).elsewhere
    assert shares(pool)["a"] == 0


def test_a_member_that_answers_others_is_not_set_aside_for_scattered_failures() -> None:
    pool, clock, judges = pool_of("a", "b")
    for _ in range(50):
        for answer in (ANSWER, fault(K.SERVER), fault(K.CONNECTION)):
            clock.now += 0.05
            noted = pool.noted(judges["a"], answer)
            assert isinstance(noted, Reply) or not noted.elsewhere
    pool.noted(judges["a"], ANSWER)
    told = [pool.noted(judges["a"], fault(K.SERVER)) for _ in range(5)]
    assert [answer.elsewhere for answer in told] == [False] * 4 + [True]


def test_a_broken_stream_counts_as_a_failure_and_keeps_its_text() -> None:
    pool, _, judges = pool_of("a", "b")
    cut = Reply("{}", Usage(calls=1), 0.1, cut=Fault(K.CONNECTION))
    assert pool.noted(judges["a"], cut) is cut
    assert pool.noted(judges["a"], cut) is cut
    assert shares(pool)["a"] == 0


def test_pauses_double_to_two_minutes_and_one_rollout_tries_first() -> None:
    pool, clock, judges = pool_of("a", "b")
    first, *others = [prompt for prompt in prompts(60) if pool.pick(prompt) is judges["a"]]
    pool.noted(judges["a"], fault(K.CONNECTION))
    pool.noted(judges["a"], fault(K.CONNECTION))
    for pause in (10, 20, 40, 80, 120, 120):
        clock.now += pause - 0.1
        assert shares(pool)["a"] == 0
        clock.now += 0.2
        assert pool.pick(first) is judges["a"]
        assert pool.pick(first) is judges["a"], "the other blocks of that rollout"
        assert all(pool.pick(prompt) is judges["b"] for prompt in others)
        clock.now += 0.2
        assert pool.noted(judges["a"], fault(K.CONNECTION)).elsewhere
    clock.now += 121
    assert pool.pick(first) is judges["a"]
    pool.noted(judges["a"], ANSWER)
    assert all(pool.pick(prompt) is judges["a"] for prompt in others)
    pool.noted(judges["a"], fault(K.CONNECTION))
    clock.now += 1
    pool.noted(judges["a"], fault(K.CONNECTION))
    clock.now += DOWN[0] + 0.1
    assert pool.pick(first) is judges["a"], "short again after an answer"


def test_a_trial_that_never_ends_is_followed_by_another() -> None:
    pool, clock, judges = pool_of("a", "b")
    first, other, *_ = [prompt for prompt in prompts(60) if pool.pick(prompt) is judges["a"]]
    pool.noted(judges["a"], fault(K.AUTH))
    clock.now += REFUSED + 1
    assert pool.pick(first) is judges["a"]
    assert pool.pick(other) is judges["b"]
    clock.now += TRIAL + 1
    assert pool.pick(other) is judges["a"]
    assert pool.pick(first) is judges["b"]


def test_calls_that_went_out_before_their_member_was_set_aside_tell_nothing_new() -> None:
    pool, clock, judges = pool_of("a", "b")
    clock.now += 20
    for _ in range(20):
        pool.noted(judges["a"], fault(K.TIMEOUT, seconds=15))
    clock.now += DOWN[0] + 0.1
    assert shares(pool, 20)["a"] == 1, "ten seconds, not two minutes"


def test_a_submissions_own_faults_set_nobody_aside() -> None:
    pool, _, judges = pool_of("a", "b")
    for kind in (K.CONTEXT_LENGTH, K.CONTENT_FILTER, K.REFUSAL, K.BAD_REQUEST):
        for _ in range(6):
            assert not pool.noted(judges["a"], fault(kind)).elsewhere
    assert shares(pool)["a"] > 0


# Limits


def test_a_rate_limit_sets_aside_for_as_long_as_it_names_and_all_return() -> None:
    pool, clock, judges = pool_of("a", "b")
    before = shares(pool)
    assert pool.noted(judges["a"], fault(K.RATE_LIMIT, 5.0)).elsewhere
    clock.now += 4.9
    assert shares(pool)["a"] == 0
    clock.now += 0.2
    assert shares(pool) == before


def test_rate_limits_in_a_row_without_a_named_wait_last_longer_each() -> None:
    pool, clock, judges = pool_of("a", "b")
    for pause in (1, 2, 4, 8, 16, 30, 30):
        pool.noted(judges["a"], fault(K.RATE_LIMIT, 0.0))
        clock.now += pause - 0.01
        assert shares(pool, 30)["a"] == 0
        clock.now += 0.12
        assert shares(pool, 30)["a"] > 0
    pool.noted(judges["a"], ANSWER)
    pool.noted(judges["a"], fault(K.RATE_LIMIT))
    clock.now += LIMITED[0] + 0.01
    assert shares(pool, 30)["a"] > 0


def test_an_absurd_wait_is_not_kept() -> None:
    pool, clock, judges = pool_of("a", "b")
    pool.noted(judges["a"], fault(K.RATE_LIMIT, 1e9))
    clock.now += LONGEST + 1
    assert shares(pool)["a"] > 0


# Refusals and the last one left


@pytest.mark.parametrize("kind", [K.AUTH, K.QUOTA, K.UNKNOWN_MODEL, K.NO_CREDENTIAL])
def test_a_refused_member_is_left_alone_for_a_minute(kind: FaultKind) -> None:
    pool, clock, judges = pool_of("a", "b")
    assert pool.noted(judges["a"], fault(kind)).elsewhere
    clock.now += REFUSED - 1
    assert shares(pool)["a"] == 0
    clock.now += 2
    assert shares(pool)["a"] == 1, "one rollout tries it"


def test_the_fault_stands_when_nobody_is_left() -> None:
    pool, _, judges = pool_of("a", "b")
    assert pool.noted(judges["a"], fault(K.AUTH)).elsewhere
    assert not pool.noted(judges["b"], fault(K.AUTH)).elsewhere


def test_a_key_that_is_refused_does_not_stop_a_rollout_while_another_member_only_rests() -> None:
    pool, clock, judges = pool_of("a", "b")
    assert pool.noted(judges["b"], fault(K.RATE_LIMIT, 500.0)).elsewhere
    assert pool.noted(judges["a"], fault(K.QUOTA)).elsewhere
    assert {pool.pick(prompt).identity for prompt in prompts(20)} == {"b"}
    clock.now += 0.2
    assert not pool.noted(judges["b"], fault(K.RATE_LIMIT, 500.0)).elsewhere, "back-off, not a hunt in a circle"


def test_who_waits_for_a_member_that_is_set_aside_goes_elsewhere_when_another_is_well() -> None:
    pool, clock, judges = pool_of("a", "b")
    prompt = prompt_for(pool, "a")
    stays = pool.staying(judges["a"], prompt)
    assert stays is not None and stays()
    pool.noted(judges["a"], fault(K.RATE_LIMIT, 20.0))
    assert not stays()
    pool.noted(judges["b"], fault(K.RATE_LIMIT, 10.0))
    assert stays(), "nobody else is well"
    clock.now += 10.0
    assert not stays()
    clock.now += 10.0
    assert stays()


def test_the_rollout_that_tries_a_member_waits_for_it() -> None:
    pool, clock, judges = pool_of("a", "b")
    prompt = prompt_for(pool, "a")
    pool.noted(judges["a"], fault(K.AUTH))
    clock.now += REFUSED
    assert pool.pick(prompt) is judges["a"]
    stays = pool.staying(judges["a"], prompt)
    assert stays is not None and stays()
    others = [other for other in prompts(50) if other.shared != prompt.shared]
    assert not any(stays() for other in others if (stays := pool.staying(judges["a"], other)))


def test_when_all_are_down_the_first_that_answers_is_well_at_once() -> None:
    pool, clock, judges = pool_of("a", "b")
    for judge in judges.values():
        for _ in range(2):
            pool.noted(judge, fault(K.CONNECTION))
    clock.now += 1
    picked = pool.pick(make_prompt("R01"))
    pool.noted(picked, ANSWER)
    assert shares(pool) == {picked.identity: 300}


def test_refusals_never_send_a_question_round_in_a_circle() -> None:
    pool, clock, _ = pool_of("a", "b", "c")
    answers = {"a": fault(K.AUTH), "b": fault(K.RATE_LIMIT, 0.0), "c": fault(K.CONNECTION)}
    moves = 0
    for _ in range(100):
        judge = pool.pick(make_prompt("R01"))
        clock.now += 0.1
        moves += pool.noted(judge, answers[judge.identity]).elsewhere
    assert moves <= 12


# As a judge


async def test_a_pool_is_a_judge_and_closes_its_members() -> None:
    pool, _, judges = pool_of("a", "b")
    first = await pool.ask(make_prompt("R01"), timeout=1)
    second = await pool.ask(make_prompt("R01"), timeout=1)
    assert isinstance(first, CallFault)
    assert isinstance(second, CallFault)
    assert (first.elsewhere, second.elsewhere) == (False, True)
    await pool.aclose()
    assert [judge.closed for judge in judges.values()] == [1, 1]


async def test_a_free_question_goes_to_a_member_that_can_answer_it(endpoint: Endpoint) -> None:
    pair = resolve_credentials("k", endpoint.base_url, environ={})
    chat = ChatJudge(JudgeSettings(model="m", per_timeout=60), pair)
    pool = JudgePool([(LocalJudge(), 5.0), (chat, 1.0)])
    assert pool.complete is not None
    reply = await pool.complete([{"role": "user", "content": "Hello?"}])
    assert isinstance(reply, Reply)
    assert reply.text == endpoint.prose
    heaviest = JudgePool([(LocalJudge(), 1.0), (chat, 2.0)])
    assert heaviest.client() is chat.client()
    await pool.aclose()


def test_threads_share_one_pool() -> None:
    pool, clock, judges = pool_of("a", "b", "c")
    barrier = threading.Barrier(4)

    def work(n: int) -> None:
        barrier.wait()
        for prompt in prompts(200):
            judge = pool.pick(prompt)
            pool.noted(judge, (ANSWER, fault(K.SERVER), fault(K.RATE_LIMIT, 0.0))[(n + len(prompt.shared)) % 3])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    clock.now += 1
    for judge in judges.values():
        pool.noted(judge, ANSWER)
    assert set(shares(pool)) == {"a", "b", "c"}


async def test_two_loops_share_one_pool(endpoint: Endpoint) -> None:
    pair = resolve_credentials("k", endpoint.base_url, environ={})
    settings = JudgeSettings(per_timeout=60)
    pool = JudgePool([(ChatJudge(settings.model_copy(update={"model": name}), pair), 1.0) for name in ("x", "y")])

    async def work() -> set[type]:
        answers = await asyncio.gather(*(pool.ask(prompt, timeout=60) for prompt in prompts(40)))
        await pool.aclose()
        return {type(answer) for answer in answers}

    found = await asyncio.gather(*(asyncio.to_thread(asyncio.run, work()) for _ in range(2)))
    assert found == [{Reply}, {Reply}]
    assert {call.body["model"] for call in endpoint.calls} == {"x", "y"}


@pytest.mark.parametrize("trouble", ["401", "quota", "unknown_model", "429", "500", "reset", "hang", "empty"])
async def test_section_7_one_endpoint_of_two_that_fails_costs_no_verdict(trouble: str) -> None:
    with Endpoint() as good, Endpoint() as bad:
        good.default, bad.default = SCENARIOS["ok"].after(0.02), SCENARIOS[trouble]
        settings = JudgeSettings(model="m", per_timeout=5.0 if trouble == "hang" else 60.0)
        entries = [{"base_url": each.base_url, "api_key": "key"} for each in (good, bad)]
        judge = make_judge(settings, resolve_endpoints(entries, environ={}))
        engine = JudgeEngine(settings, judge, backoff=Backoff(settings.retry_backoff_max, 0.05))
        cases = [case(rows(8), f"The profit of plant {n} rose.") for n in range(12)]
        outcomes = await asyncio.gather(*(engine.judge(each) for each in cases))
        await engine.aclose()
        assert [faults(outcome) for outcome in outcomes] == [{}] * 12
        assert len(good.calls) == 24
        assert 0 < len(bad.calls) <= 60, "what was in flight, and not much more"
        assert engine.aborted is None


async def test_section_7_who_waits_for_the_quota_of_a_limited_endpoint_is_answered_by_another() -> None:
    with Endpoint() as limited, Endpoint() as well:
        limited.default = error("limited", 429, "Rate limit reached", headers={"retry-after": "60"}).after(0.05)
        well.default = SCENARIOS["ok"].after(0.05)
        pairs = [{"base_url": endpoint.base_url, "api_key": "key"} for endpoint in (limited, well)]
        settings = JudgeSettings(model="scripted", max_in_flight=5)
        engine = JudgeEngine(settings, make_judge(settings, resolve_endpoints(pairs, environ={})))
        async with asyncio.timeout(45):  # less than the wait that the endpoint names
            outcomes = await asyncio.gather(*(engine.judge(case(rows(12), f"Reply {n}.")) for n in range(40)))
        await engine.aclose()
    assert [outcome.reward for outcome in outcomes] == [1.0] * 40
    assert len(well.calls) == 120
