"""SPEC 11: the `/responses` format. What it shares with chat is tested there, in both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric_env.judges import CallFault, Reply, ResponsesJudge, make_judge, resolve_credentials
from rubric_env.judges._completion import Answer, Tokens, read_completion
from rubric_env.judges._responses import as_completion
from rubric_env.judges.classify import Problem
from rubric_env.scoring.faults import FaultKind
from rubric_env.settings import JudgeSettings
from tests.judges.conftest import WAYS, MakeJudge
from tests.judges.prompts import MARKER, make_prompt
from tests.judges.test_stream import stream_of
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario, error

K = FaultKind
PROMPT = make_prompt("R01", "R02")

pytestmark = pytest.mark.parametrize(
    "way", [WAYS["responses"], WAYS["responses-stream"]], ids=["whole", "stream"], indirect=True
)


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


def said(text: str) -> dict[str, Any]:
    return message({"type": "output_text", "text": text})


def read(**fields: Any) -> tuple[Answer | Problem, Tokens | None]:
    body = {"object": "response", "status": "completed", "error": None, "output": [], **fields}
    return read_completion(200, {}, json.dumps(body).encode(), [], as_completion)


async def test_section_11_the_question_in_this_format(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    sampling = {"reasoning_effort": "low", "temperature": 0.0, "seed": 7, "max_tokens": 900}
    reply = await make_chat(**sampling).ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert reply.mode == "json_schema"
    call = endpoint.calls[0]
    body = dict(call.body)
    assert body.pop("stream", False) is call.streamed
    assert call.path.endswith("/v1/responses")
    assert body == {
        "model": "judge-model",
        "instructions": PROMPT.system,
        "input": "\n".join((PROMPT.shared, PROMPT.rows, PROMPT.contract_json)),
        "text": {"format": {"type": "json_schema", "name": "verdicts", "strict": True, "schema": PROMPT.schema}},
        "reasoning": {"effort": "low"},
        "temperature": 0.0,
        "max_output_tokens": 900,
        "store": False,
    }


async def test_section_4_steps_down_to_plain_text(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.reject("json_schema", message="Invalid value: 'json_schema'. Supported values are: 'text'.")
    endpoint.reject("json_object", message="Unsupported parameter: 'text.format.type' = json_object")
    reply = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert (reply.mode, reply.marker) == ("plain", MARKER)
    assert [call.format for call in endpoint.calls] == ["json_schema", "json_object", "text"]
    assert "text" not in endpoint.calls[-1].body


async def test_what_one_format_cannot_do_says_nothing_of_the_other(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.rule(lambda call: call.responses and call.format == "json_schema", error("no", 400, "no json_schema here"))
    await make_chat().ask(PROMPT, timeout=60)
    reply = await make_chat(backend="chat").ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert reply.mode == "json_schema"


def test_section_11_the_judge_is_chosen_by_its_backend_and_its_identity_says_so(way: dict[str, Any]) -> None:
    pair = resolve_credentials("s3cret-key", "http://127.0.0.1:9/v1/responses", environ={})
    judge = make_judge(JudgeSettings(model="m", temperature=0.0, seed=3, **way), pair)
    assert isinstance(judge, ResponsesJudge)
    assert judge.identity == "responses http://127.0.0.1:9/v1 m temperature=0.0", "a seed is not sent"
    assert judge.endpoint == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("fields", "text", "truncated"),
    [
        ({"output": [said("yes")]}, "yes", False),
        ({"output": [{"type": "reasoning", "summary": [{"text": "no"}]}, said("y"), said("es")]}, "yes", False),
        (
            {"output": [message({"type": "output_text", "text": "y"}, {"type": "output_text", "text": "es"})]},
            "yes",
            False,
        ),
        (
            {"output": [said("ye")], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "ye",
            True,
        ),
        ({"output": [said("ye")], "status": "incomplete", "incomplete_details": None}, "ye", True),
        ({"output": [said("yes")], "error": None, "incomplete_details": None}, "yes", False),
    ],
)
def test_the_text_of_a_response(fields: dict[str, Any], text: str, truncated: bool, way: dict[str, Any]) -> None:
    assert read(**fields)[0] == Answer(text, truncated)


@pytest.mark.parametrize(
    ("fields", "kind", "words"),
    [
        ({}, K.EMPTY, "no text"),
        ({"output": [{"type": "reasoning", "summary": []}]}, K.EMPTY, "only thinking"),
        ({"output": [{"type": "function_call", "name": "f"}]}, K.EMPTY, "a tool call"),
        (
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            K.EMPTY,
            "thinking used it up",
        ),
        (
            {"output": [said("half a")], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            K.CONTENT_FILTER,
            "filter",
        ),
        ({"output": [message({"type": "refusal", "refusal": "No."})]}, K.REFUSAL, "No."),
        ({"status": "failed", "error": {"code": "server_error", "message": "It failed."}}, K.SERVER, "It failed."),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Slow down"}}, K.RATE_LIMIT, "Slow"),
        ({"status": "cancelled", "output": [said("half a")]}, K.SERVER, "broke"),
        ({"status": "in_progress", "output": [said("half a")]}, K.SERVER, "broke"),
    ],
)
def test_a_response_without_a_text_is_a_fault_that_says_why(
    fields: dict[str, Any], kind: FaultKind, words: str, way: dict[str, Any]
) -> None:
    outcome = read(**fields)[0]
    assert isinstance(outcome, Problem)
    assert outcome.fault.kind is kind
    assert words in outcome.fault.detail


def test_section_7_tokens_of_a_response(way: dict[str, Any]) -> None:
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}
    assert read(output=[said("yes")], usage=usage)[1] == Tokens(10, 4, 3)


@pytest.mark.parametrize(
    "value", [{"choices": [{"message": {"content": "yes"}}]}, {"detail": "Not Found"}, {"output": "x"}]
)
def test_what_is_no_response_is_read_as_it_is(value: dict[str, Any], way: dict[str, Any]) -> None:
    assert as_completion(value) is value


async def test_an_endpoint_without_this_format_is_named(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(Scenario("404", status=404, body=b'{"detail": "Not Found"}'))
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert (answer.fault.kind, answer.usage.calls) == (K.SERVER, 1)
    assert "404" in answer.fault.detail


# Streams


def delta(text: str, kind: str = "output_text") -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "delta": text}


def ended(status: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"object": "response", "status": status, "output": [], **fields}}


USAGE = {"input_tokens": 10, "output_tokens": 3}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([delta("y"), delta("es"), ended("completed", output=[said("yes")], usage=USAGE)], "yes"),
        ([delta("y"), delta("es"), ended("completed", usage=USAGE)], "yes"),
        (
            [
                delta("hm", "reasoning_text"),
                delta("yes"),
                {"type": "response.output_text.done", "text": "yes"},
                ended("completed", usage=USAGE),
            ],
            "yes",
        ),
        ([ended("completed", output=[said("yes")], usage=USAGE)], "yes"),
    ],
)
async def test_the_last_event_holds_the_answer_or_else_the_deltas_do(
    endpoint: Endpoint, make_chat: MakeJudge, events: list[dict[str, Any]], text: str
) -> None:
    endpoint.script(stream_of({"type": "response.created", "response": {"status": "in_progress"}}, *events))
    reply = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.cut, reply.usage.input_tokens, reply.usage.output_tokens) == (text, None, 10, 3)


@pytest.mark.parametrize(
    ("events", "kind", "words"),
    [
        ([ended("failed", error={"code": "server_error", "message": "It failed."})], K.SERVER, "It failed."),
        ([ended("failed", error={"code": "rate_limit_exceeded", "message": "Slow"})], K.RATE_LIMIT, "Slow"),
        ([{"type": "error", "code": "insufficient_quota", "message": "No money"}], K.QUOTA, "No money"),
        ([{"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow"}}], K.RATE_LIMIT, "Slow"),
        ([{"error": {"message": "Too many requests"}}], K.RATE_LIMIT, "Too many"),
        ([delta("No.", "refusal"), ended("completed")], K.REFUSAL, "No."),
        ([ended("incomplete", incomplete_details={"reason": "max_output_tokens"})], K.EMPTY, "thinking used it up"),
        (
            [delta("half"), ended("incomplete", incomplete_details={"reason": "content_filter"})],
            K.CONTENT_FILTER,
            "filter",
        ),
        ([delta("hm", "reasoning_summary_text"), ended("completed")], K.EMPTY, "only thinking"),
    ],
)
async def test_what_a_stream_of_this_format_says_is_named(
    endpoint: Endpoint, make_chat: MakeJudge, events: list[dict[str, Any]], kind: FaultKind, words: str
) -> None:
    endpoint.default = stream_of(*events)
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault), answer
    assert answer.fault.kind is kind, answer.fault
    assert words in answer.fault.detail


async def test_a_response_that_fails_midway_leaves_what_came(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(stream_of(delta("one "), delta("two"), ended("failed", error={"message": "server error"})))
    reply = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply), reply
    assert reply.text == "one two"
    assert reply.cut is not None
    assert reply.cut.kind is K.CONNECTION
