"""SPEC 7: a key that expires in the middle of a run costs no verdict, whoever renews it; a dead one stops quickly."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from rubric_env.judges import CallFault, Credentials, Reply, resolve_credentials
from rubric_env.judges.chat import NEW_KEYS
from rubric_env.scoring.faults import FaultKind
from tests.judges.conftest import MakeJudge
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS, html

PROMPT = make_prompt("R01")


class Renewed:
    """A key that somebody else renews: the file changes first, then the endpoint wants the new one."""

    def __init__(self, endpoint: Endpoint, folder: Path) -> None:
        self.file = folder / "key"
        self.rotations = -1
        self.readings = 0
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self.rotate()

    def rotate(self) -> None:
        self.rotations += 1
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"key-{self.rotations}")
        fresh.replace(self.file)
        self._endpoint.keys = frozenset({f"key-{self.rotations}"})

    def read(self) -> str:
        with self._lock:
            self.readings += 1
        return self.file.read_text()

    async def read_slowly(self) -> str:
        await asyncio.sleep(0.05)
        return self.read()

    def given(self, source: str) -> dict[str, Any]:
        match source:
            case "file":
                return {"api_key_file": self.file}
            case "command":
                return {"api_key_command": f"cat {self.file}"}
            case "function":
                return {"api_key": self.read}
            case _:
                return {"api_key": self.read_slowly}


@pytest.fixture
def renewed(endpoint: Endpoint, tmp_path: Path) -> Renewed:
    return Renewed(endpoint, tmp_path)


def resolve(endpoint: Endpoint, **given: Any) -> Credentials:
    return resolve_credentials(base_url=endpoint.base_url, environ={}, **given)


def refused(endpoint: Endpoint) -> int:
    return sum(call.scenario == "401" for call in endpoint.calls)


@pytest.mark.parametrize("source", ["file", "command", "function", "coroutine"])
async def test_section_7_keys_that_rotate_every_few_calls_cost_no_verdict(
    endpoint: Endpoint, make_chat: MakeJudge, renewed: Renewed, source: str
) -> None:
    endpoint.default = SCENARIOS["ok"].after(0.2)
    judge = make_chat(resolve(endpoint, **renewed.given(source)))
    answered = itertools.count(1)
    blocks = 80

    async def work() -> list[Reply | CallFault]:
        answers = []
        for _ in range(blocks // 20):
            answers.append(await judge.ask(PROMPT, timeout=60))
            if next(answered) % 5 == 0:
                renewed.rotate()
        return answers

    answers = [answer for some in await asyncio.gather(*(work() for _ in range(20))) for answer in some]
    assert [answer for answer in answers if isinstance(answer, CallFault)] == []
    assert renewed.rotations == blocks // 5
    assert endpoint.max_in_flight >= 10
    assert refused(endpoint) > 0
    assert len(endpoint.calls) == blocks + refused(endpoint)
    assert sum(answer.usage.calls for answer in answers) == len(endpoint.calls)
    assert renewed.readings <= renewed.rotations + 1, "each key is read once, not once a refusal"


@pytest.mark.parametrize("source", ["function", "coroutine"])
def test_section_7_a_storm_of_refusals_in_several_loops_and_threads_reads_the_key_once(
    endpoint: Endpoint, make_chat: MakeJudge, renewed: Renewed, source: str
) -> None:
    credentials = resolve(endpoint, **renewed.given(source))
    judge = make_chat(credentials)
    asyncio.run(judge.ask(PROMPT, timeout=60))
    renewed.rotate()
    start = threading.Barrier(3)
    outcomes: list[type] = []

    async def storm() -> None:
        start.wait()
        outcomes.extend(type(a) for a in await asyncio.gather(*(judge.ask(PROMPT, timeout=60) for _ in range(8))))
        await judge.aclose()

    threads = [threading.Thread(target=lambda: asyncio.run(storm())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [Reply] * 24
    assert 1 < refused(endpoint) <= 24, "who comes late has the new key at once"
    assert renewed.readings == 2


async def test_section_7_a_dead_key_is_read_a_few_times_and_not_once_a_call(
    endpoint: Endpoint, make_chat: MakeJudge, renewed: Renewed
) -> None:
    endpoint.keys = frozenset()
    judge = make_chat(resolve(endpoint, api_key=renewed.read))
    answers = await asyncio.gather(*(judge.ask(PROMPT, timeout=60) for _ in range(20)))
    assert {answer.fault.kind for answer in answers if isinstance(answer, CallFault)} == {FaultKind.AUTH}
    assert len(endpoint.calls) == 40, "asked again once each"
    assert renewed.readings <= 15


async def test_section_7_new_keys_that_never_work_stop_too(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.keys = frozenset({"another"})
    minted = itertools.count()
    judge = make_chat(resolve(endpoint, api_key=lambda: f"minted-{next(minted)}"))
    answer = await judge.ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.AUTH
    assert answer.usage.calls == NEW_KEYS + 1


async def test_section_7_a_key_that_is_renewed_a_moment_late_is_waited_for(
    endpoint: Endpoint, make_chat: MakeJudge, renewed: Renewed
) -> None:
    judge = make_chat(resolve(endpoint, api_key_file=renewed.file))
    assert isinstance(await judge.ask(PROMPT, timeout=60), Reply)
    endpoint.keys = frozenset({"key-1"})

    async def rotate_late() -> None:
        while refused(endpoint) < 2:  # noqa: ASYNC110 (the endpoint lives in another loop)
            await asyncio.sleep(0.01)
        renewed.rotate()

    reply, _ = await asyncio.gather(judge.ask(PROMPT, timeout=60), rotate_late())
    assert isinstance(reply, Reply)
    assert reply.usage.calls == 3


async def reading_that_hangs_once(first: asyncio.Event) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        if not first.is_set():
            first.set()
            await asyncio.sleep(3600)
        return "key"

    return read


async def test_who_reads_for_all_and_gives_up_leaves_the_others_a_key(endpoint: Endpoint) -> None:
    first = asyncio.Event()
    credentials = resolve(endpoint, api_key=await reading_that_hangs_once(first))
    reader = asyncio.create_task(credentials.key())
    await first.wait()
    waiting = [asyncio.create_task(credentials.key()) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    reader.cancel()
    assert await asyncio.wait_for(asyncio.gather(*waiting[1:]), 60) == ["key"] * 4
    assert reader.cancelled()
    assert waiting[0].cancelled()


async def test_a_function_that_fails_fails_for_all_who_wait(endpoint: Endpoint) -> None:
    calls = itertools.count()

    def broken() -> str:
        next(calls)
        time.sleep(0.1)
        return ""

    credentials = resolve(endpoint, api_key=broken)
    outcomes = await asyncio.gather(*(credentials.key() for _ in range(6)), return_exceptions=True)
    assert {str(outcome) for outcome in outcomes} == {"api_key: the key is empty"}
    assert next(calls) == 1


# A page of something in front of the endpoint


FORBIDDEN = html("403_html", 403, "403 Forbidden")
FIREWALL = html("firewall", 403, "Sorry, you have been blocked")


@pytest.mark.parametrize("page", [FORBIDDEN, FIREWALL], ids=["bare", "firewall"])
async def test_section_7_a_page_that_refuses_one_question_is_about_that_question(
    endpoint: Endpoint, make_chat: MakeJudge, page: Any
) -> None:
    judge = make_chat()
    assert isinstance(await judge.ask(PROMPT, timeout=60), Reply)
    endpoint.rule(lambda call: "R13" in call.ids, page)
    answer = await judge.ask(make_prompt("R13"), timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.CONTENT_FILTER
    assert isinstance(await judge.ask(PROMPT, timeout=60), Reply)


@pytest.mark.parametrize("page", [FORBIDDEN, FIREWALL], ids=["bare", "firewall"])
async def test_section_7_a_page_that_refuses_everybody_is_the_endpoints(
    endpoint: Endpoint, make_chat: MakeJudge, page: Any
) -> None:
    endpoint.default = page
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.SERVER
    assert answer.fault.detail.startswith("HTTP 403: a web page")


async def test_section_7_a_gateway_that_says_403_for_an_expired_key_costs_no_verdict(
    endpoint: Endpoint, make_chat: MakeJudge, renewed: Renewed
) -> None:
    endpoint.keys = None
    judge = make_chat(resolve(endpoint, api_key_file=renewed.file))
    endpoint.rule(lambda call: call.key == "key-0", FORBIDDEN)
    renewed.rotate()
    reply = await judge.ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert [call.key for call in endpoint.calls] == ["key-0", "key-1"]
