"""The endpoint is itself tested, with the bare client of the library that judges use."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import openai
import pytest

from tests.servers.answers import rows_of
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS

ROWS = [{"id": "R01", "description": "says `# Rows`"}, {"id": "R02", "level_choices": [0.0, 0.5, 1.0]}, {"id": "R03"}]
PROMPT = f"# Evidence\n# Rows\nnone\n# Rows\n```json\n{json.dumps(ROWS)}\n```\n# Answer\n=== VERDICTS n0nce ===\n"


async def ask(endpoint: Endpoint, **more: Any) -> Any:
    async with openai.AsyncOpenAI(api_key="k", base_url=endpoint.base_url, max_retries=0) as client:
        reply: Any = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": PROMPT}], timeout=60, **more
        )
        return [part async for part in reply] if more.get("stream") else reply


def content(reply: Any) -> str:
    return str(reply.choices[0].message.content)


def test_rows_are_read_from_the_last_heading() -> None:
    assert [row["id"] for row in rows_of(PROMPT)] == ["R01", "R02", "R03"]
    assert rows_of("# Rows\nnone") == []


async def test_verdicts_follow_the_truth(endpoint: Endpoint) -> None:
    endpoint.truth = {"R02": 0.5, "R03": False}
    reply = await ask(endpoint, response_format={"type": "json_object"})
    found = {v["id"]: (v["hit"], v.get("level")) for v in json.loads(content(reply))["verdicts"]}
    assert found == {"R01": (True, None), "R02": (True, 0.5), "R03": (False, None)}
    assert reply.usage.prompt_tokens == len(PROMPT) // 4
    call = endpoint.calls[0]
    assert (call.ids, call.format, call.key, call.in_flight) == (("R01", "R02", "R03"), "json_object", "k", 1)


async def test_plain_answers_follow_the_marker(endpoint: Endpoint) -> None:
    assert content(await ask(endpoint)).startswith("Let me see.\n=== VERDICTS n0nce ===\n{")


async def test_answers_come_as_streams_that_the_vendors_client_reads(endpoint: Endpoint) -> None:
    endpoint.default = SCENARIOS["crlf"]
    whole = content(await ask(endpoint))
    chunks = await ask(endpoint, stream=True, stream_options={"include_usage": True})
    assert "".join(part.choices[0].delta.content or "" for part in chunks if part.choices) == whole
    assert chunks[-1].usage.completion_tokens == len(whole) // 4
    assert endpoint.calls[1].streamed


async def test_the_responses_format_is_what_the_vendors_client_reads(endpoint: Endpoint) -> None:
    endpoint.truth = {"R03": False}
    text: Any = {"format": {"type": "json_object"}}
    async with openai.AsyncOpenAI(api_key="k", base_url=endpoint.base_url, max_retries=0) as client:
        reply = await client.responses.create(model="m", instructions="Judge.", input=PROMPT, text=text)
        stream = await client.responses.create(model="m", input=PROMPT, text=text, stream=True)
        events = [event async for event in stream]
    assert [v["hit"] for v in json.loads(reply.output_text)["verdicts"]] == [True, True, False]
    assert (reply.status, reply.usage and reply.usage.input_tokens) == ("completed", (len(PROMPT) + 8) // 4)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == reply.output_text
    assert isinstance(events[-1], openai.types.responses.ResponseCompletedEvent)
    assert events[-1].response.output_text == reply.output_text
    call = endpoint.calls[0]
    assert (call.responses, call.ids, call.format, call.texts[0]) == (
        True,
        ("R01", "R02", "R03"),
        "json_object",
        "Judge.",
    )


async def test_scripts_rules_and_rejections(endpoint: Endpoint) -> None:
    endpoint.reject("json_schema")
    endpoint.script("500", "ok")
    endpoint.rule(lambda call: call.format == "json_object", "429", times=1)
    with pytest.raises(openai.BadRequestError):
        await ask(endpoint, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {}}})
    with pytest.raises(openai.RateLimitError):
        await ask(endpoint, response_format={"type": "json_object"})
    with pytest.raises(openai.InternalServerError):
        await ask(endpoint)
    assert content(await ask(endpoint))
    assert [call.scenario for call in endpoint.calls] == ["rejects json_schema", "429", "500", "ok"]
    endpoint.settle()


@pytest.mark.parametrize("name", [n for n, s in SCENARIOS.items() if s.wire == "whole" and not s.latency])
async def test_every_whole_reply_reaches_the_caller(endpoint: Endpoint, name: str) -> None:
    endpoint.default = SCENARIOS[name]
    with contextlib.suppress(openai.APIError, json.JSONDecodeError, UnicodeDecodeError):
        await ask(endpoint)
    with contextlib.suppress(openai.APIError, json.JSONDecodeError, UnicodeDecodeError):
        await ask(endpoint, stream=True)
    assert [call.scenario for call in endpoint.calls] == [name, name]


@pytest.mark.parametrize("name", ["half", "drop", "reset"])
async def test_broken_sockets_are_connection_errors(endpoint: Endpoint, name: str) -> None:
    endpoint.script(name)
    with pytest.raises(openai.APIConnectionError):
        await ask(endpoint)
    assert content(await ask(endpoint))


@pytest.mark.parametrize("name", ["hang", "trickle", "too_long"])
async def test_slow_sockets_see_their_caller_leave(endpoint: Endpoint, name: str) -> None:
    endpoint.script(name)
    asking = asyncio.create_task(ask(endpoint))
    await asyncio.to_thread(endpoint.wait_in_flight, 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.to_thread(endpoint.settle)
    assert endpoint.calls[0].abandoned
    assert endpoint.in_flight == 0
