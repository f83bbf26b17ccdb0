"""SPEC 7: streams. Whatever way they end, what came whole is kept, and nothing is waited for that will not come."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from typing import Any

import pytest

from rubric_env.judges import CallFault, ChatJudge, Reply, _reading
from rubric_env.judges._sse import Event, EventDecoder
from rubric_env.scoring.faults import FaultKind
from tests.judges.conftest import WAYS, MakeJudge
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario, error

K = FaultKind
PROMPT = make_prompt(*(f"R{n:02}" for n in range(1, 9)))

streamed = pytest.mark.parametrize(
    "way", [WAYS["chat-stream"], WAYS["responses-stream"]], ids=["chat", "responses"], indirect=True
)


async def ask(judge: ChatJudge, timeout: float = 60.0) -> Reply | CallFault:
    return await judge.ask(PROMPT, timeout=timeout)


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def end(reason: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def stream_of(*events: dict[str, Any] | str, **more: Any) -> Scenario:
    """A body of events, word for word."""
    lines = (event if isinstance(event, str) else f"data: {json.dumps(event, ensure_ascii=False)}" for event in events)
    body = "".join(f"{line}\n\n" for line in lines).encode()
    return Scenario("events", headers={"content-type": "text/event-stream"}, body=body, **more)


# The decoder

EVENTS = [Event("", b'{"a": "\xe4\xbd\xa0"}'), Event("ping", b"{}"), Event("", b"one\ntwo"), Event("", b"[DONE]")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_events_are_read_wherever_their_bytes_are_cut(line_end: str, start: str) -> None:
    text = (
        start
        + ': hi\n\ndata: {"a": "你"}\n\nevent: ping\ndata:{}\n\ndata: one\ndata: two\nid: 7\nretry\n\ndata: [DONE]\n\n'
    )
    body = text.replace("\n", line_end).encode()
    for cuts in itertools.combinations(range(len(body)), 2):
        decoder, found = EventDecoder(), []
        for piece in (body[: cuts[0]], body[cuts[0] : cuts[1]], body[cuts[1] :]):
            found += decoder.feed(piece)
        assert found + decoder.end() == EVENTS


def test_an_event_without_its_blank_line_is_read_at_the_end() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: 1\n\ndata: 2\r") == [Event("", b"1")]
    assert decoder.end() == [Event("", b"2")]
    assert decoder.end() == []


# Whole answers


@streamed
@pytest.mark.parametrize("scenario", ["ok", "crlf", "cr", "cut_anywhere", "no_done", "no_finish", "unstreamed"])
async def test_a_streamed_answer_is_like_one_that_came_whole(
    endpoint: Endpoint, make_chat: MakeJudge, scenario: str
) -> None:
    endpoint.truth = {"R02": False}
    endpoint.script("ok", scenario)
    whole = await ask(make_chat(stream="off"))
    reply = await ask(make_chat())
    assert isinstance(whole, Reply)
    assert isinstance(reply, Reply)
    assert [call.streamed for call in endpoint.calls] == [False, True]
    assert (reply.text, reply.usage, reply.mode, reply.cut, reply.truncated) == (
        whole.text,
        whole.usage,
        whole.mode,
        None,
        False,
    )


@streamed
async def test_every_character_arrives_whole_one_byte_at_a_time(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(Scenario("bytes", content="判定：达标。😀\n" * 3, write=1))
    reply = await ask(make_chat())
    assert isinstance(reply, Reply)
    assert reply.text == "判定：达标。😀\n" * 3


async def test_tokens_are_asked_for_and_counted(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    reply = await ask(make_chat(stream="on"))
    assert endpoint.calls[0].body["stream_options"] == {"include_usage": True}
    assert reply.usage.input_tokens > 50
    assert reply.usage.output_tokens > 10


async def test_only_the_first_choice_counts_and_thinking_is_no_part_of_the_text(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    second = {"choices": [{"index": 1, "delta": {"content": "NO"}}]}
    endpoint.script(
        stream_of(chunk(reasoning_content="hm"), chunk(content="y"), second, chunk(content="es"), end(), "data: [DONE]")
    )
    reply = await ask(make_chat(stream="on"))
    assert isinstance(reply, Reply)
    assert reply.text == "yes"


async def test_a_stream_that_was_not_asked_for_is_read(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(stream_of(": hello", chunk(content="yes"), end()))
    reply = await ask(make_chat(stream="off"))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.cut) == ("yes", None)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "text/event-stream"])
async def test_the_body_says_what_it_is_and_not_the_content_type(
    endpoint: Endpoint, make_chat: MakeJudge, content_type: str
) -> None:
    stream, whole = stream_of(chunk(content="yes"), end()), {"choices": [{"message": {"content": "yes"}}]}
    for body in (stream.body, b"\n \n" * 50 + json.dumps(whole).encode()):
        endpoint.script(Scenario("typed", headers={"content-type": content_type}, body=body))
        reply = await ask(make_chat(stream="on"))
        assert isinstance(reply, Reply), reply
        assert reply.text == "yes"


async def test_a_stream_that_stays_open_after_its_last_word_is_not_waited_for(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.script(Scenario("open", wire="stall", share=1.0))
    start = time.monotonic()
    reply = await ask(make_chat(stream="on"), timeout=60)
    assert isinstance(reply, Reply)
    assert (reply.cut, reply.usage.output_tokens > 0) == (None, True)
    assert time.monotonic() - start < 30
    await asyncio.to_thread(endpoint.settle)


async def test_counts_that_never_come_do_not_cost_the_answer(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_reading, "AFTERWORD", 0.2)
    endpoint.script(Scenario("uncounted", wire="stall", share=1.0, done=False, usage={}))
    reply = await ask(make_chat(stream="on", model="gpt-4.1"), timeout=60)
    assert isinstance(reply, Reply)
    assert (reply.cut, reply.usage.cost_usd) == (None, None)
    assert len(json.loads(reply.text)["verdicts"]) == 8
    endpoint.script(Scenario("uncounted", wire="stall", share=1.0, done=False, usage={}))
    monkeypatch.setattr(_reading, "AFTERWORD", 20)
    late = await ask(make_chat(stream="on"), timeout=2.0)
    assert isinstance(late, Reply)
    assert (late.text, late.cut) == (reply.text, None)


# Answers that stop early


@streamed
@pytest.mark.parametrize(
    ("scenario", "kind", "words"),
    [
        ("stall", K.TIMEOUT, "stalled"),
        ("half", K.CONNECTION, "broke"),
        ("500_midway", K.CONNECTION, "upstream model failed"),
    ],
)
async def test_section_7_what_had_come_when_a_stream_stopped_is_kept(
    endpoint: Endpoint,
    make_chat: MakeJudge,
    monkeypatch: pytest.MonkeyPatch,
    scenario: str,
    kind: FaultKind,
    words: str,
) -> None:
    monkeypatch.setattr(_reading, "STALL", 1.0)
    endpoint.script("ok", scenario)
    whole = await ask(make_chat())
    start = time.monotonic()
    reply = await ask(make_chat(model="gpt-4.1"), timeout=60)
    assert isinstance(whole, Reply)
    assert isinstance(reply, Reply)
    assert reply.cut is not None
    assert reply.cut.kind is kind
    assert words in reply.cut.detail
    assert whole.text.startswith(reply.text)
    assert '"id": "R01"' in reply.text
    assert '"id": "R08"' not in reply.text
    assert (reply.usage.calls, reply.usage.cost_usd) == (1, None), "nobody counted its tokens"
    assert time.monotonic() - start < 30
    await asyncio.to_thread(endpoint.wait_idle)


@streamed
async def test_section_7_what_had_come_when_time_ran_out_is_kept(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script("stall")
    reply = await ask(make_chat(model="gpt-4.1"), timeout=2.0)
    assert isinstance(reply, Reply)
    assert reply.cut is not None
    assert reply.cut.kind is K.TIMEOUT
    assert '"id": "R01"' in reply.text
    assert reply.usage.cost_usd is None
    await asyncio.to_thread(endpoint.settle)


async def test_no_end_at_all_is_a_broken_connection(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script("no_end")
    reply = await ask(make_chat(stream="on"))
    assert isinstance(reply, Reply)
    assert reply.cut is not None
    assert (reply.cut.kind, reply.cut.detail) == (K.CONNECTION, "the stream ended before the answer did")


@streamed
@pytest.mark.parametrize("scenario", ["endless_thinking", "keep_alive", "stall_at_once"])
async def test_section_7_before_the_first_words_a_model_may_think_for_all_of_its_time(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    monkeypatch.setattr(_reading, "STALL", 0.05)
    endpoint.script(scenario)
    answer = await ask(make_chat(), timeout=0.5)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is K.TIMEOUT
    assert "stalled" not in answer.fault.detail
    assert answer.seconds >= 0.5
    await asyncio.to_thread(endpoint.settle)


@pytest.mark.parametrize(
    "idle", [": keep-alive", "data:", chunk(content=""), {"type": "ping"}, 'event: ping\ndata: {"n": 1}']
)
async def test_section_7_keep_alives_do_not_hide_a_stall(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch, idle: dict[str, Any] | str
) -> None:
    monkeypatch.setattr(_reading, "STALL", 0.3)
    events = stream_of(chunk(content="half an answer"), *[idle] * 1000)
    endpoint.script(Scenario("idle", body=events.body, wire="trickle", pace=0.001))
    start = time.monotonic()
    reply = await ask(make_chat(stream="on"), timeout=60)
    assert isinstance(reply, Reply)
    assert reply.text == "half an answer"
    assert reply.cut is not None
    assert reply.cut.kind is K.TIMEOUT
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("thought", ["<think>R01 is hit: true, I thi", " <thinking>one</thinking>\n", "◁think▷R01"])
async def test_thinking_alone_is_no_part_of_an_answer(endpoint: Endpoint, make_chat: MakeJudge, thought: str) -> None:
    endpoint.script(stream_of(chunk(content=thought[:5]), chunk(content=thought[5:])))
    answer = await ask(make_chat(stream="on"))
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is K.CONNECTION


@streamed
@pytest.mark.parametrize("scenario", ["429_in_stream", "429_midway"])
async def test_section_7_a_rate_limit_in_a_stream_is_one(
    endpoint: Endpoint, make_chat: MakeJudge, scenario: str
) -> None:
    endpoint.script(scenario)
    answer = await ask(make_chat())
    assert isinstance(answer, CallFault)
    assert (answer.fault.kind, answer.retry_after) == (K.RATE_LIMIT, 0.2)


@pytest.mark.parametrize(
    ("events", "kind", "words"),
    [
        (['event: error\ndata: {"message": "Too many requests", "code": 429}'], K.RATE_LIMIT, "Too many requests"),
        (["event: error\ndata: upstream unavailable"], K.SERVER, "upstream unavailable"),
        ([{"choices": [{"error": {"message": "insufficient_quota"}}]}], K.QUOTA, "insufficient_quota"),
        ([{"success": False, "code": 50501, "message": "System is too busy now"}], K.SERVER, "busy"),
        (["data: [1, 2]"], K.SERVER, "[1, 2]"),
        ([chunk(refusal="No, "), chunk(refusal="thanks."), end()], K.REFUSAL, "No, thanks."),
        ([chunk(content="half"), end("content_filter")], K.CONTENT_FILTER, "filter"),
        ([chunk(reasoning="hm"), end("length")], K.EMPTY, "thinking used it up"),
        ([chunk(tool_calls=[{"id": "1"}]), end("tool_calls")], K.EMPTY, "a tool call"),
        ([chunk(role="assistant"), chunk(reasoning="hm"), end()], K.EMPTY, "only thinking"),
        (["data: [DONE]"], K.EMPTY, "no choices"),
        ([": nothing but a comment"], K.CONNECTION, "ended before"),
        ([chunk(content='{"error": {"message": "Too many requests"}}'), end()], K.RATE_LIMIT, "Too many requests"),
    ],
)
async def test_section_7_what_a_stream_says_is_named(
    endpoint: Endpoint, make_chat: MakeJudge, events: list[Any], kind: FaultKind, words: str
) -> None:
    endpoint.default = stream_of(*events)
    answer = await ask(make_chat(stream="on"))
    assert isinstance(answer, CallFault), answer
    assert answer.fault.kind is kind, answer.fault
    assert words in answer.fault.detail


async def test_an_event_that_cannot_be_read_ends_the_answer_there(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(
        stream_of(chunk(content="one "), 'data: {"choices": [{"delta": {"conte', chunk(content="two"), end())
    )
    reply = await ask(make_chat(stream="on"))
    assert isinstance(reply, Reply)
    assert reply.text == "one "
    assert reply.cut is not None
    assert reply.cut.kind is K.CONNECTION


async def test_words_that_came_in_pieces_are_the_models_even_when_they_look_like_an_error(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.script(stream_of(chunk(content='{"error": {"message": '), chunk(content='"Too many requests"}}'), end()))
    assert isinstance(await ask(make_chat(stream="on")), Reply), "a policy may have a judge say this"


@pytest.mark.parametrize("what", ["text", "one event"])
async def test_a_stream_without_end_does_not_fill_the_memory(
    endpoint: Endpoint, make_chat: MakeJudge, what: str
) -> None:
    megabyte = "x" * 2**20
    events = [chunk(content=megabyte)] * 10 if what == "text" else [f"data: {megabyte * 10}"]
    endpoint.script(stream_of(*events))
    answer = await ask(make_chat(stream="on"), timeout=60)
    fault = answer.fault if isinstance(answer, CallFault) else answer.cut
    assert fault is not None
    assert "larger than 8 MB" in fault.detail


# When to stream


@pytest.mark.parametrize("trouble", ["hang", "half", "drop"])
async def test_auto_streams_from_the_first_call_on_that_broke(
    endpoint: Endpoint, make_chat: MakeJudge, trouble: str
) -> None:
    endpoint.script("ok", trouble)
    judge = make_chat(per_timeout=2.0)
    for _ in range(3):
        await ask(judge, timeout=2.0)
    assert isinstance(await ask(make_chat()), Reply)
    assert isinstance(await ask(make_chat(stream="off")), Reply)
    assert isinstance(await ask(make_chat(model="another")), Reply)
    assert [call.streamed for call in endpoint.calls] == [False, False, True, True, False, False]


@pytest.mark.parametrize("harmless", ["429", "500", "length", "empty", "not_json"])
async def test_auto_does_not_stream_for_what_a_stream_would_not_mend(
    endpoint: Endpoint, make_chat: MakeJudge, harmless: str
) -> None:
    endpoint.script(harmless)
    judge = make_chat()
    await ask(judge)
    await ask(judge)
    assert not any(call.streamed for call in endpoint.calls)


@streamed
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Your organization must be verified to stream this model."),
        (400, "stream=true is not supported"),
        (422, "Extra inputs are not permitted: stream"),
        (501, "streaming is not implemented"),
        (400, "该模型不支持流式输出"),
    ],
)
async def test_a_refused_stream_is_remembered(
    endpoint: Endpoint, make_chat: MakeJudge, status: int, message: str
) -> None:
    endpoint.rule(lambda call: call.streamed, error("no streams", status, message))
    replies = [await ask(make_chat()) for _ in range(2)]
    assert all(isinstance(reply, Reply) for reply in replies)
    assert [reply.usage.calls for reply in replies] == [2, 1]
    assert [call.streamed for call in endpoint.calls] == [True, False, False]


async def test_refused_stream_options_leave_the_stream(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    message = "Unrecognized request argument supplied: stream_options"
    endpoint.rule(lambda call: "stream_options" in call.body, error("no counts", 400, message))
    replies = await asyncio.gather(*(ask(make_chat(stream="on", model="gpt-4.1")) for _ in range(4)))
    assert all(isinstance(reply, Reply) and reply.usage.cost_usd is None for reply in replies)
    assert all(call.streamed for call in endpoint.calls)
    before = len(endpoint.calls)
    await ask(make_chat(stream="on", model="gpt-4.1"))
    assert "stream_options" not in endpoint.calls[before].body


async def test_a_server_that_failed_over_a_stream_of_its_own_is_not_asked_for_less(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.script(error("broken", 502, "stream error: stream ID 5; INTERNAL_ERROR; received from peer"))
    judge = make_chat(stream="on")
    assert isinstance(await ask(judge), CallFault)
    await ask(judge)
    assert [call.streamed for call in endpoint.calls] == [True, True]
