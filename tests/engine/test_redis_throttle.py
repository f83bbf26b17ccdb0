"""SPEC 7, fleet: limits that processes share, on a real redis-server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

import rubric_env.engine.shared._link as link
import rubric_env.engine.shared.throttle as shared_throttle
from rubric_env.engine.pace import Limits, PaceState, Permit
from rubric_env.engine.shared import RedisThrottle, Shared, open_shared
from rubric_env.engine.shared._link import Links
from rubric_env.engine.shared._scripts import EXPIRE, keys
from rubric_env.judges.protocol import CallFault, RateHints, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import JudgeSettings, SettingsError
from tests.engine.redis_fleet import Job, fleet, most_within, run, seed
from tests.servers.redis import RedisServer

ANSWER = Reply("yes", Usage(), 0.0)
LIMITED = CallFault(Fault(FaultKind.RATE_LIMIT))


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes seconds takes tenths."""
    monkeypatch.setattr(link, "RETRY", 0.1)
    monkeypatch.setattr(link, "TIMEOUT", 30.0)
    monkeypatch.setattr(shared_throttle, "TICK", 0.3)


@pytest.fixture
async def links(redis: RedisServer, quick: None) -> AsyncIterator[Links]:
    links = Links(redis.url)
    yield links
    await links.aclose()


def throttle(links: Links, requests: float | None = None, tokens: float | None = None, **how: bool) -> RedisThrottle:
    return RedisThrottle(links, Limits(requests, tokens), 10.0, **{"slow": False, **how})


async def permit(throttle: RedisThrottle, tokens: int = 0) -> Permit:
    """The next permit, when its time has come."""
    async with asyncio.timeout(20):
        while True:
            permit = await throttle.reserve("quota", tokens)
            await asyncio.sleep(permit.wait)
            if permit.granted:
                return permit


async def reserved(throttle: RedisThrottle) -> Permit:
    """The next permit, before its time."""
    async with asyncio.timeout(20):
        while not (permit := await throttle.reserve("quota", 0)).granted:  # noqa: ASYNC110
            await asyncio.sleep(permit.wait)
        return permit


async def until_back(throttle: RedisThrottle) -> None:
    async with asyncio.timeout(60):
        while not (await permit(throttle)).key:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def test_section_7_four_processes_share_a_limit_of_requests_evenly_whatever_their_clocks_say(
    redis: RedisServer,
) -> None:
    job = Job(redis.url, seconds=2.2, tasks=16, limits=Limits(requests_per_minute=6000))
    told = run(job, job, replace(job, skew=3600.0), replace(job, skew=-5.0))
    starts = [start for process in told for start in process.starts]
    # A process that is held up sends late what it was allowed, and others do not send more for that.
    assert most_within(2.0, starts) <= 1.5 * 2.0 * 100
    assert len(starts) >= 0.4 * 2.2 * 100
    shares = [len(process.starts) for process in told]
    assert min(shares) >= 0.4 * max(shares), shares


def test_section_7_four_processes_share_a_limit_of_tokens(redis: RedisServer) -> None:
    costs = (50, 50, 200, 700)
    job = Job(redis.url, seconds=1.5, tasks=2, limits=Limits(tokens_per_minute=120_000))
    told = run(*(replace(job, tokens=tokens) for tokens in costs))
    starts = [start for process in told for start in process.starts]
    seconds = max(starts) - min(starts)
    sent = sum(tokens * len(process.starts) for process, tokens in zip(told, costs, strict=True))
    assert 0.3 * 2000 * seconds <= sent <= 2000 * (seconds + 1.0) + 700
    assert all(process.starts for process in told)


def test_section_7_calls_of_a_killed_process_are_in_flight_no_longer_than_they_can_last(redis: RedisServer) -> None:
    async def only_two() -> None:
        links = Links(redis.url)
        seed(links, "quota", replace(PaceState.begin(Limits(), time.time()), window=2.0))
        await links.aclose()

    asyncio.run(only_two())
    with fleet() as members:
        (holder,) = members.start(Job(redis.url, seconds=60.0, answered=0))
        redis.wait_for("ZCARD", keys("pace", "quota", "calls")[0], answer="2")
        members.start(Job(redis.url, seconds=0.5, tasks=1))
        holder.kill()
        holder.join()
        killed = time.time()
        (told,) = members.results()
    assert set(told.ends) == {"ok"}
    assert 0 < told.starts[0] - killed < 60


def test_section_7_no_call_is_lost_when_redis_is_killed_and_started_again(redis: RedisServer) -> None:
    job = Job(redis.url, seconds=8.0, limits=Limits(requests_per_minute=3000))
    with fleet() as members:
        members.start(*[job] * 4)
        redis.wait_for("ZCARD", keys("pace", "quota", "processes")[0], answer="4")
        time.sleep(0.2)
        redis.kill()
        killed = time.time()
        time.sleep(1.6)
        redis.start()
        started = time.time()
        told = members.results()
    assert {end for process in told for end in process.ends} == {"ok"}
    for process in told:
        assert [fallback for _, fallback in process.fallback] == [False, True, False]
        gone, back = (at for at, _ in process.fallback[1:])
        assert killed <= gone < started <= back
    starts = [start for process in told for start in process.starts]
    alone = [start for start in starts if killed + 0.3 < start < started]
    assert len(alone) > 10, "nobody went on"
    assert most_within(1.0, alone) <= 2 * 50, "each took more than its share"
    again = [start for start in starts if start > started + 0.8]
    assert again and most_within(1.0, again) <= 2 * 50


async def test_section_7_what_one_process_is_refused_slows_all(links: Links) -> None:
    one, other = throttle(links), throttle(links)
    permits = [await permit(one) for _ in range(30)]
    for number, given in enumerate(permits):
        one.settle(given, LIMITED if number < 20 else ANSWER)
    await asyncio.sleep(0.4)
    await permit(one)  # adjusts
    waits = [(await other.reserve("quota", 0)).wait for _ in range(30)]
    assert max(waits) > 0.2


async def test_limits_that_the_endpoint_names_go_for_all(links: Links) -> None:
    one, other = throttle(links), throttle(links)
    one.settle(await permit(one), replace(ANSWER, hints=RateHints(requests_per_minute=120.0, tokens_per_minute=9e6)))
    await asyncio.sleep(0.4)
    await permit(one)  # adjusts
    await permit(other)
    first, second = [(await reserved(other)).at for _ in range(2)]
    assert 60 / (0.98 * 120) - 0.2 < second - first < 5


async def test_a_wait_that_the_endpoint_names_ends_when_it_said(links: Links) -> None:
    one, other = throttle(links), throttle(links)
    empty = RateHints(requests_per_minute=6000.0, requests_left=0.0, requests_reset=1.5)
    given = await permit(one)
    said = time.monotonic()
    one.settle(given, replace(ANSWER, hints=empty))
    await asyncio.sleep(0.4)
    await permit(one)  # goes still, and adjusts
    await permit(other)
    assert time.monotonic() - said >= 1.4


async def test_crowded_refusals_cut_the_calls_in_flight_of_all_to_what_there_was_room_for(links: Links) -> None:
    one, other = throttle(links), throttle(links)
    held = [await permit(one) for _ in range(2)] + [await permit(other)]
    one.settle(await permit(one), replace(LIMITED, hints=RateHints(crowded=True)))
    await asyncio.sleep(0.4)
    one.settle(await permit(one), ANSWER)  # adjusts
    assert not (await other.reserve("quota", 0)).granted
    other.settle(held.pop(), ANSWER)
    assert (await other.reserve("quota", 0)).granted


async def test_a_refund_gives_the_turn_back(links: Links) -> None:
    one = throttle(links, 60.0)
    await permit(one)
    given = await reserved(one)
    one.refund(given)
    assert (await reserved(one)).at == pytest.approx(given.at, abs=0.7), "the next one is a second later"


async def test_tokens_that_were_not_used_are_given_back(links: Links) -> None:
    one = throttle(links, tokens=60_000.0)
    given = await permit(one, 2000)
    one.settle(given, replace(ANSWER, usage=Usage(input_tokens=100)))
    assert (await permit(one, 100)).at - given.at < 1.5


async def test_who_is_cancelled_while_it_asks_has_taken_nothing(links: Links) -> None:
    one = throttle(links, 40.0)
    first = await permit(one)
    asking = asyncio.create_task(one.reserve("quota", 0))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert (await permit(one)).at - first.at < 2.7


async def test_a_shared_quota_starts_slowly(links: Links) -> None:
    slow = throttle(links, slow=True)
    waits = [(await slow.reserve("quota", 0)).wait for _ in range(4)]
    assert max(waits) > 0.2


async def test_section_7_it_goes_on_alone_with_what_was_known_and_tells_a_redis_without_memory(
    redis: RedisServer, links: Links
) -> None:
    one, other = throttle(links), throttle(links)
    limits = Limits(requests_per_minute=600.0)
    seed(links, "quota", PaceState.begin(limits, time.time()))
    for member in (one, other):
        member._limits = limits
        await permit(member)
    await permit(one)  # knows of the other
    redis.kill()
    alone = await permit(one)
    assert one.fallback and alone.key == ""
    share = one._alone.state("quota").pace
    assert share == pytest.approx(0.98 * 10 / 2)
    redis.start()
    await until_back(one)
    assert not one.fallback
    one.settle(alone, ANSWER)
    newcomer = throttle(links)
    await permit(newcomer)
    assert newcomer._known["quota"].state.configured == limits


async def test_a_redis_that_hangs_is_one_that_is_gone(
    redis: RedisServer, links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "TIMEOUT", 1.0)
    one = throttle(links)
    given = await permit(one)
    redis.freeze()
    start = time.monotonic()
    assert (await permit(one)).key == ""
    assert time.monotonic() - start < 25
    assert (await permit(one)).key == ""
    one.settle(given, ANSWER)
    redis.thaw()
    await until_back(one)


async def test_forgotten_scripts_and_keys_are_no_failure(redis: RedisServer, links: Links) -> None:
    one = throttle(links)
    await permit(one)
    for command in (("SCRIPT", "FLUSH"), ("FLUSHALL",)):
        await links.here().ask(*command)
        assert (await permit(one)).key
    assert not one.fallback


async def test_nothing_stays_behind_for_ever_and_no_name_is_told(redis: RedisServer, links: Links) -> None:
    one = throttle(links)
    one.settle(await permit(one), LIMITED)
    await permit(one)
    names = await links.here().ask("KEYS", "*")
    assert len(names) >= 4
    for name in names:
        assert name.startswith("rubric-env:") and "quota" not in name
        assert 0 < await links.here().ask("TTL", name) <= EXPIRE + 40


async def test_a_thousand_ask_at_once_on_one_connection(links: Links) -> None:
    one = throttle(links, 6e6)
    await asyncio.gather(*(one.reserve("quota", 0) for _ in range(1000)))
    assert not one.fallback
    clients = await links.here().ask("CLIENT", "LIST")
    assert len(clients.splitlines()) == 1


async def test_every_loop_has_its_own_connection(redis: RedisServer) -> None:
    one = throttle(Links(redis.url))

    async def once() -> Permit:
        given = await permit(one)
        one.settle(given, ANSWER)
        await one._links.aclose()
        return given

    assert all([(await asyncio.to_thread(asyncio.run, once())).key for _ in range(3)])


@pytest.mark.parametrize(
    "url", ["", "http://127.0.0.1", "redis", "redis://:se/cret@127.0.0.1:6379", "redis://127.0.0.1?se=cret"]
)
def test_a_url_that_is_none_is_a_settings_error_without_secrets(url: str) -> None:
    with pytest.raises(SettingsError, match="limiter: not a Redis URL") as raised:
        open_shared(url, JudgeSettings())
    assert "cret" not in str(raised.value)


def test_without_redis_py_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "redis.asyncio", None)
    with pytest.raises(SettingsError, match=r"pip install 'rubric-env\[redis\]'"):
        open_shared("redis://127.0.0.1", JudgeSettings())


async def test_a_redis_that_is_not_there_is_one_warning_and_the_fallback(
    quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer() as gone:
        url = gone.url.replace("//", "//user:secret@")
    shared: Shared = open_shared(url, JudgeSettings())
    for _ in range(5):
        given = await permit(shared.throttle)
        shared.throttle.settle(given, ANSWER)
        await asyncio.sleep(0.1)
    with shared.breaker.rollout("rollout"):
        await shared.breaker.ready("rollout")
        with shared.breaker.call("rollout") as call:
            assert call is not None
    assert shared.throttle.fallback
    await shared.aclose()
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1 and gone.url.rpartition("@")[2].removeprefix("redis://") in warnings[0]
    assert "secret" not in caplog.text


async def test_a_wrong_password_is_a_warning_that_does_not_say_it(
    quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer(password="right") as server:
        wrong = open_shared(server.url.replace("right", "wr0ng"), JudgeSettings())
        assert (await permit(wrong.throttle)).key == ""
        await wrong.aclose()
        right = open_shared(server.url, JudgeSettings())
        assert (await permit(right.throttle)).key
        await right.aclose()
    assert "password" in caplog.text and "wr0ng" not in caplog.text


async def test_who_closes_leaves_the_connection_to_rollouts_of_another_engine_in_the_loop(redis: RedisServer) -> None:
    shared = open_shared(redis.url, JudgeSettings())
    with shared.breaker.rollout("rollout"):
        await shared.breaker.ready("rollout")
        link = shared.links.here()
        async with asyncio.timeout(60):
            await shared.aclose()
        assert await link.ask("PING")
    await shared.aclose()
    assert link.down
