"""SPEC 7 and 11: one bounded call to a chat endpoint, and what became of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import threading
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import openai
import pytest

from rubric_env.judges import CallFault, ChatJudge, Reply, _reading, resolve_credentials
from rubric_env.scoring.faults import FaultKind
from rubric_env.settings import JudgeSettings
from tests.judges.conftest import WAYS, MakeJudge, in_every_way
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import BOMB_BYTES, SCENARIOS, Scenario, gzip_bomb

K = FaultKind
STREAMS = (WAYS["chat-stream"], WAYS["responses-stream"])
PROMPT = make_prompt("R01", "R02")


async def fault_of(judge: ChatJudge, *, timeout: float = 60.0) -> CallFault:
    answer = await judge.ask(PROMPT, timeout=timeout)
    assert isinstance(answer, CallFault), answer
    return answer


async def reply_of(judge: ChatJudge, *, timeout: float = 60.0) -> Reply:
    answer = await judge.ask(PROMPT, timeout=timeout)
    assert isinstance(answer, Reply), answer
    return answer


@in_every_way
async def test_section_11_a_reply_carries_text_usage_and_mode(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.truth = {"R02": False}
    reply = await reply_of(make_chat())
    assert {v["id"]: v["hit"] for v in json.loads(reply.text)["verdicts"]} == {"R01": True, "R02": False}
    assert (reply.mode, reply.marker, reply.truncated) == ("json_schema", None, False)
    assert reply.usage.calls == 1
    assert reply.usage.input_tokens > 50
    assert reply.usage.output_tokens > 10
    assert 0 < reply.seconds < 5


async def test_section_4_the_shared_part_comes_first_and_the_contract_last(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    await reply_of(make_chat())
    system, user = endpoint.calls[0].body["messages"]
    assert system == {"role": "system", "content": PROMPT.system}
    assert user["content"] == "\n".join((PROMPT.shared, PROMPT.rows, PROMPT.contract_json))


async def test_section_11_sampling_is_sent_only_when_set(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    await reply_of(make_chat())
    await reply_of(make_chat(reasoning_effort="low", temperature=0.0, seed=7, max_tokens=900))
    plain, sampled = (set(call.body) for call in endpoint.calls)
    assert plain == {"model", "messages", "response_format"}
    assert sampled - plain == {"reasoning_effort", "temperature", "seed", "max_tokens"}


async def test_max_tokens_takes_its_other_name_where_the_endpoint_wants_it(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    body = json.dumps({"error": {"message": message, "code": "unsupported_parameter", "param": "max_tokens"}}).encode()
    endpoint.rule(lambda call: "max_tokens" in call.body, Scenario("renamed", status=400, body=body))
    judge = make_chat(max_tokens=500)
    assert (await reply_of(judge)).usage.calls == 2
    assert (await reply_of(judge)).usage.calls == 1
    assert endpoint.calls[-1].body["max_completion_tokens"] == 500


@in_every_way
async def test_complete_asks_a_free_question(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.prose = "yes"
    reply = await make_chat(temperature=0.5).complete([{"role": "user", "content": "Is it right?"}])
    assert isinstance(reply, Reply)
    assert (reply.text, reply.marker, reply.usage.calls) == ("yes", None, 1)
    assert endpoint.calls[0].texts == ["Is it right?"]
    assert endpoint.calls[0].format == "text"


async def test_the_client_is_there_for_questions_of_ones_own(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    judge = make_chat(per_timeout=3.0)
    question: Any = [{"role": "user", "content": "Is it right?"}]
    reply = await judge.client().chat.completions.create(model=judge.model, messages=question)
    assert reply.choices[0].message.content == endpoint.prose
    assert endpoint.calls[0].key == "test-key-1234"
    endpoint.script("hang")
    with pytest.raises(openai.APITimeoutError):
        await judge.client().chat.completions.create(model=judge.model, messages=question)
    assert len(endpoint.calls) == 2


@pytest.mark.parametrize(
    ("scenario", "kind", "words"),
    [
        ("drop", K.CONNECTION, "broke"),
        ("reset", K.CONNECTION, "broke"),
        ("not_json", K.SERVER, "HTTP 200"),
        ("garbage", K.SERVER, "no text"),
        ("html", K.SERVER, "Sign in"),
        ("502_html", K.SERVER, "502 Bad Gateway"),
        ("redirect", K.SERVER, "login.example.com"),
        ("500", K.SERVER, "HTTP 500"),
        ("503", K.SERVER, "overloaded"),
        ("429", K.RATE_LIMIT, "Rate limit reached"),
        ("429_in_200", K.RATE_LIMIT, "HTTP 200"),
        ("429_in_words", K.RATE_LIMIT, "too quickly"),
        ("quota_window", K.RATE_LIMIT, "per minute"),
        ("quota", K.QUOTA, "insufficient_quota"),
        ("403", K.AUTH, "HTTP 403"),
        ("unknown_model", K.UNKNOWN_MODEL, "judge-x"),
        ("bad_request", K.BAD_REQUEST, "temperature"),
        ("context_length", K.CONTEXT_LENGTH, "8192"),
        ("blocked", K.CONTENT_FILTER, "data_inspection_failed"),
        ("no_choices", K.EMPTY, "no choices"),
        ("null_content", K.EMPTY, "no text"),
        ("thought_only", K.EMPTY, "thinking used it up"),
        ("refusal", K.REFUSAL, "cannot help"),
        ("content_filter", K.CONTENT_FILTER, "filter"),
    ],
)
@in_every_way
async def test_section_7_what_an_endpoint_does_is_named(
    endpoint: Endpoint, make_chat: MakeJudge, scenario: str, kind: FaultKind, words: str
) -> None:
    endpoint.default = SCENARIOS[scenario]
    answer = await fault_of(make_chat())
    assert answer.fault.kind is kind, answer.fault
    assert words in answer.fault.detail
    assert "\n" not in answer.fault.detail
    assert answer.usage.calls >= 1


@pytest.mark.parametrize(
    ("scenario", "kind", "words"),
    [
        ("half", K.CONNECTION, "broke"),
        ("too_short", K.SERVER, "no valid HTTP"),
        ("error_in_content", K.RATE_LIMIT, "Too many requests"),
    ],
)
@pytest.mark.parametrize("way", [WAYS["chat"], WAYS["responses"]], ids=["chat", "responses"], indirect=True)
async def test_section_7_what_befalls_an_answer_that_comes_whole_is_named(
    endpoint: Endpoint, make_chat: MakeJudge, scenario: str, kind: FaultKind, words: str
) -> None:
    endpoint.default = SCENARIOS[scenario]
    answer = await fault_of(make_chat())
    assert answer.fault.kind is kind, answer.fault
    assert words in answer.fault.detail


@pytest.mark.parametrize(
    ("scenario", "seconds"),
    [("429", 0.2), ("429_in_200", 0.2), ("quota_window", 1.5), ("503", 1.0), ("429_bare", None)],
)
@in_every_way
async def test_section_7_the_wait_that_an_endpoint_names_is_passed_on(
    endpoint: Endpoint, make_chat: MakeJudge, scenario: str, seconds: float | None
) -> None:
    endpoint.script(scenario)
    assert (await fault_of(make_chat())).retry_after == seconds


@in_every_way
async def test_section_7_a_refusal_whose_words_do_not_come_is_told_by_its_status(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reading, "REFUSAL", 0.2)
    for wire in ("half", "too_long"):
        endpoint.script(replace(SCENARIOS["429"], wire=wire))
        answer = await fault_of(make_chat())
        assert (answer.fault.kind, answer.retry_after) == (K.RATE_LIMIT, 0.2)


@in_every_way
async def test_section_7_a_cut_answer_is_a_reply_that_says_so(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script("length")
    assert (await reply_of(make_chat())).truncated


@pytest.mark.parametrize(
    ("scenario", "way"),
    [
        *((scenario, WAYS["chat"]) for scenario in ("hang", "trickle", "too_long")),
        *((scenario, way) for scenario in ("hang", "trickle", "endless_thinking", "keep_alive") for way in STREAMS),
    ],
    indirect=["way"],
)
async def test_section_7_a_call_is_bounded_in_wall_time_whatever_the_bytes_do(
    endpoint: Endpoint, make_chat: MakeJudge, scenario: str
) -> None:
    judge = make_chat()
    await reply_of(judge)
    endpoint.script(scenario)
    start = time.monotonic()
    answer = await fault_of(judge, timeout=1.0)
    assert answer.fault.kind is K.TIMEOUT
    assert answer.usage.calls == 1
    assert 0.95 < time.monotonic() - start < 10  # the bytes go on for longer
    assert endpoint.calls[-1].scenario == scenario
    await asyncio.to_thread(endpoint.settle)
    assert (await reply_of(judge)).text


@in_every_way
async def test_section_7_cancellation_leaves_no_socket(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.default = SCENARIOS["hang"]
    judge = make_chat()
    tasks = [asyncio.create_task(judge.ask(PROMPT, timeout=60)) for _ in range(20)]
    await asyncio.to_thread(endpoint.wait_in_flight, 20)
    for task in tasks:
        task.cancel()
    assert all(isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*tasks, return_exceptions=True))
    await asyncio.to_thread(endpoint.settle)
    endpoint.default = SCENARIOS["ok"]
    assert (await reply_of(judge)).text


@in_every_way
async def test_section_7_the_client_itself_never_retries(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    for name in ("500", "429", "drop", "503"):
        endpoint.script(name)
        await fault_of(make_chat())
    assert len(endpoint.calls) == 4


@in_every_way
async def test_connections_are_kept_and_no_more_than_calls_in_flight(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.default = SCENARIOS["ok"].after(0.3)
    judge = make_chat(max_in_flight=8)
    await reply_of(judge)
    await asyncio.gather(*(reply_of(judge) for _ in range(40)))
    assert endpoint.max_in_flight == 8
    assert endpoint.connections == 8


@pytest.mark.parametrize("packing", ["bomb", "endless"])
async def test_a_body_without_end_does_not_fill_the_memory(
    endpoint: Endpoint, make_chat: MakeJudge, packing: str
) -> None:
    endpoint.script(gzip_bomb() if packing == "bomb" else packing)
    judge = make_chat()
    tracemalloc.start()
    try:
        answer = await fault_of(judge, timeout=60)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.fault.kind is K.SERVER
    assert "larger than 8 MB" in answer.fault.detail
    assert peak < BOMB_BYTES / 4


async def test_a_gzipped_reply_is_read_although_none_was_asked_for(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    body = json.dumps({"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}).encode()
    endpoint.script(Scenario("gzip", headers={"content-encoding": "gzip"}, body=gzip.compress(body)))
    assert (await reply_of(make_chat())).text == "fine"
    assert endpoint.calls[0].headers["accept-encoding"] == "identity"
    endpoint.script(Scenario("br", headers={"content-encoding": "br"}, body=b"\x0b\x02\x80"))
    assert "packed as br" in (await fault_of(make_chat())).fault.detail


@in_every_way
async def test_section_4_gb18030_bodies_are_read(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script("gb18030")
    assert (await reply_of(make_chat())).text == "中文：达标"


@in_every_way
async def test_half_a_surrogate_pair_in_the_evidence_can_be_sent(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    answer = await make_chat().ask(make_prompt("R01", evidence="cut \ud83d here"), timeout=60)
    assert isinstance(answer, Reply)
    assert "cut ? here" in endpoint.calls[0].text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9/v1", "refused"),
        ("http://no-such-host.invalid/v1", "host name"),
    ],
)
async def test_an_endpoint_that_is_not_there_is_named(url: str, words: str) -> None:
    judge = ChatJudge(JudgeSettings(model="m"), resolve_credentials("k", url, environ={}))
    answer = await fault_of(judge, timeout=60)
    assert answer.fault.kind is K.CONNECTION
    assert words in answer.fault.detail
    await judge.aclose()


async def test_https_to_a_plain_port_is_named(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    pair = resolve_credentials("k", endpoint.base_url.replace("http:", "https:"), environ={})
    answer = await fault_of(make_chat(pair))
    assert answer.fault.kind is K.CONNECTION
    assert "TLS" in answer.fault.detail


@in_every_way
async def test_the_key_is_never_shown(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    key = "my-odd-key/0123456789"
    pair = resolve_credentials(key, endpoint.base_url, environ={})
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {key}. Header was Bearer {key}"}}).encode()
    endpoint.default = Scenario("echo", status=401, body=body)
    judge = make_chat(pair)
    answer = await fault_of(judge)
    assert answer.fault.kind is K.AUTH
    assert "0123456789" not in repr((answer, judge.identity, pair, vars(judge)))
    assert "Incorrect API key" in answer.fault.detail


async def test_variables_of_another_source_do_not_travel(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    before = dict(os.environ)
    await reply_of(make_chat())
    assert "private" not in json.dumps(dict(endpoint.calls[0].headers))
    assert dict(os.environ) == before


def test_one_judge_serves_several_loops_and_threads(endpoint: Endpoint) -> None:
    endpoint.default = SCENARIOS["ok"].after(0.02)
    judge = ChatJudge(JudgeSettings(model="m"), resolve_credentials("k", endpoint.base_url, environ={}))
    answers: list[Any] = []

    async def several() -> None:
        answers.extend(await asyncio.gather(*(judge.ask(PROMPT, timeout=60) for _ in range(5))))
        await judge.aclose()
        await judge.aclose()
        answers.append(await judge.ask(PROMPT, timeout=60))
        await judge.aclose()

    asyncio.run(several())
    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 24
    assert all(isinstance(answer, Reply) for answer in answers)
    endpoint.settle()
