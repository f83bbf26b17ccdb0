"""A judge endpoint on loopback that does what a test tells it: an OpenAI-compatible server on raw sockets, with
`/chat/completions` and `/responses`, whole and streamed as the request asks.

    with Endpoint() as endpoint:
        endpoint.truth = {"R01": True, "R02": 0.5, "R03": False}
        endpoint.script("429", "ok")                                # the first call, the second, then `default`
        endpoint.rule(lambda call: "R03" in call.ids, "hang")       # before the script, whenever it fits
        endpoint.reject("json_schema")                              # 400 for that kind of response_format
        ...
        assert endpoint.calls[0].ids == ("R01", "R02", "R03")

It runs in a thread with a loop of its own, so that callers in any loop, thread or process can use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.servers.answers import Truth, answer_text, marker_of, rows_of
from tests.servers.formats import as_response, chat_events, encoded, response_events
from tests.servers.scenarios import SCENARIOS, Scenario, error
from tests.servers.transfer import Transfer, left_within, write

_numbers = itertools.count()
_TLS_HELLO = b"\x16"
PATIENCE = 60.0
"""Seconds after which what a test waits for does not come any more, on any machine."""


@dataclass
class Call:
    """One request as it came, and what became of it."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float
    in_flight: int
    """This call included."""
    scenario: str = ""
    seconds: float = 0.0
    abandoned: bool = False
    """The caller closed its socket before the answer was written."""

    @property
    def responses(self) -> bool:
        """Asked in the `/responses` format."""
        return self.path.endswith("/responses")

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def texts(self) -> list[str]:
        """Of all messages of the request."""
        given = self.body["input"] if self.responses else self.body["messages"]
        texts = [given] if isinstance(given, str) else [_words(message["content"]) for message in given]
        return [str(self.body["instructions"]), *texts] if "instructions" in self.body else texts

    @property
    def pictures(self) -> list[str]:
        """Data URLs of the pictures in the question."""
        message = (self.body.get("messages") or self.body["input"])[-1]
        content = message["content"] if isinstance(message, dict) else ""
        urls = [part.get("image_url") for part in content if isinstance(part, dict)]
        return [url["url"] if isinstance(url, dict) else url for url in urls if url]

    @property
    def text(self) -> str:
        """The last message of the request."""
        return self.texts[-1]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return rows_of(self.text)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(row["id"] for row in self.rows)

    @property
    def format(self) -> str:
        """`json_schema`, `json_object`, or `text` where no JSON is asked for."""
        return str(self.asked_format.get("type", "text"))

    @property
    def asked_format(self) -> Mapping[str, Any]:
        """`response_format`, or `text.format` of `/responses`; empty where no JSON is asked for."""
        given: Mapping[str, Any] = self.body.get("text" if self.responses else "response_format", {})
        return given.get("format", {}) if self.responses else given

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class _Rule:
    fits: Callable[[Call], bool]
    scenario: Scenario
    times: int | None


class Endpoint:
    """Answers right until told otherwise. Attributes may be set between calls; the rest is methods."""

    def __init__(self) -> None:
        self.truth: Truth | Callable[[Call], Truth] = {}
        """Row id to hit, level (graded rows) or None (`hit: null`), or what gives that for a call; rows that are not
        named are hit."""
        self.default = SCENARIOS["ok"]
        self.keys: frozenset[str] | None = None
        """Keys that are accepted; None: any."""
        self.grammar_budget: int | None = None
        """Distinct JSON schemas that are accepted."""
        self.prose = "Hello."
        """Content for requests that hold no rows."""
        self.calls: list[Call] = []
        self.connections = 0
        """Sockets that are open now."""
        self.max_in_flight = 0
        self._rules: list[_Rule] = []
        self._script: deque[Scenario] = deque()
        self._rejected: dict[str, Scenario] = {}
        self._schemas: set[str] = set()
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge-endpoint", daemon=True)
        self.port = 0
        self._number = next(_numbers)

    # What a test says

    def script(self, *scenarios: str | Scenario) -> None:
        """One scenario per call, in order of arrival; `default` after the last."""
        self._script.extend(_scenario(s) for s in scenarios)

    def rule(self, fits: Callable[[Call], bool], scenario: str | Scenario, *, times: int | None = None) -> None:
        """`scenario` for calls that fit, at most `times` of them. Earlier rules go first, all before the script."""
        self._rules.append(_Rule(fits, _scenario(scenario), times))

    def reject(self, *formats: str, message: str = "", status: int = 400) -> None:
        """Refuse these kinds of response_format from now on."""
        for kind in formats:
            text = message or f"response_format of type '{kind}' is not supported by this model"
            self._rejected[kind] = error(f"rejects {kind}", status, text, type="invalid_request_error")

    @property
    def base_url(self) -> str:
        """One of a kind: judges remember what an endpoint can do, and ports come round again."""
        return f"http://127.0.0.1:{self.port}/{self._number}/v1"

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def settle(self, seconds: float = PATIENCE) -> None:
        """Wait until no socket is open; AssertionError when some still are."""
        end = time.monotonic() + seconds
        while self.connections:
            assert time.monotonic() < end, f"{self.connections} sockets still open"
            time.sleep(0.005)

    def wait_in_flight(self, calls: int, seconds: float = PATIENCE) -> None:
        """Wait until that many calls are in flight; AssertionError when they do not come."""
        end = time.monotonic() + seconds
        while self._in_flight < calls:
            assert time.monotonic() < end, f"{self._in_flight} calls in flight"
            time.sleep(0.005)

    def wait_idle(self, seconds: float = PATIENCE) -> None:
        """Wait until no call is in flight; AssertionError when some still are."""
        end = time.monotonic() + seconds
        while self._in_flight:
            assert time.monotonic() < end, f"{self._in_flight} calls in flight"
            time.sleep(0.005)

    # Life

    def __enter__(self) -> Endpoint:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._connected, "127.0.0.1", 0, limit=2**20, backlog=1024), self._loop
        ).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # HTTP

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._serve(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller left, or the test is over
        finally:
            self.connections -= 1
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; False when the connection is finished."""
        first = await reader.readexactly(1)
        if first == _TLS_HELLO:
            await write(writer, 400, {}, b"plain HTTP is spoken here")
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, *lines = head.split("\r\n")
        method, path, _ = request.split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        if method == "GET" and path.endswith("/models"):
            await write(writer, 200, {}, b'{"object": "list", "data": [{"id": "scripted", "object": "model"}]}')
            return True
        if not path.endswith(("/chat/completions", "/responses")):
            await write(writer, 404, {}, b'{"error": {"message": "Unknown request URL", "code": "unknown_url"}}')
            return True
        self._in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight)
        call = Call(len(self.calls), path, headers, json.loads(data), time.monotonic(), self._in_flight)
        self.calls.append(call)
        try:
            scenario = self._choose(call)
            call.scenario = scenario.name
            if await left_within(reader, scenario.latency):
                call.abandoned = True
                return False
            return await self._answer(call, scenario, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            call.abandoned = True
            raise
        finally:
            self._in_flight -= 1
            call.seconds = time.monotonic() - call.at

    def _choose(self, call: Call) -> Scenario:
        if self.keys is not None and call.key not in self.keys:
            return SCENARIOS["401"]
        if call.format in self._rejected:
            return self._rejected[call.format]
        if self.grammar_budget is not None and call.format == "json_schema":
            self._schemas.add(json.dumps(call.asked_format, sort_keys=True))
            if len(self._schemas) > self.grammar_budget:
                return error("grammar budget", 400, "Too many distinct grammars compiled, limit is 20 per minute")
        for rule in self._rules:
            if rule.times != 0 and rule.fits(call):
                rule.times = None if rule.times is None else rule.times - 1
                return rule.scenario
        return self._script.popleft() if self._script else self.default

    async def _answer(
        self, call: Call, scenario: Scenario, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        transfer = Transfer(reader, writer, scenario)
        try:
            if scenario.body is not None:
                return await transfer.whole(scenario.body)
            if call.streamed and not scenario.unstreamed:
                return await transfer.stream(self._events(call, scenario), call.path)
            return await transfer.whole(self._whole(call, scenario))
        finally:
            call.abandoned |= transfer.abandoned

    def _events(self, call: Call, scenario: Scenario) -> list[bytes]:
        completion = self._completion(call, scenario)
        if call.responses:
            return [encoded(event, scenario.line_end, scenario.encoding) for event in response_events(completion)]
        counted = bool(call.body.get("stream_options", {}).get("include_usage"))
        events = chat_events(completion, counted=counted)
        if not scenario.finished:
            events = [event for event in events if not event["choices"] or not event["choices"][0]["finish_reason"]]
        found = [encoded(event, scenario.line_end, scenario.encoding) for event in events]
        return [*found, encoded("[DONE]", scenario.line_end)] if scenario.done else found

    def _whole(self, call: Call, scenario: Scenario) -> bytes:
        completion = self._completion(call, scenario)
        value = as_response(completion) if call.responses else completion
        return json.dumps(value, ensure_ascii=scenario.encoding == "utf-8").encode(scenario.encoding)

    def _completion(self, call: Call, scenario: Scenario) -> dict[str, Any]:
        prompt = "\n".join(call.texts)
        if scenario.content is not None:
            content = scenario.content
        elif rows := call.rows:
            content = answer_text(scenario.answer, rows, self.truth(call) if callable(self.truth) else self.truth)
            if call.format == "text" and (marker := marker_of(call.text)):
                content = f"Let me see.\n{marker}\n{content}"
        else:
            content = self.prose
        tokens = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(content) // 4}
        tokens["total_tokens"] = sum(tokens.values())
        return {
            "id": f"call-{call.number}",
            "object": "chat.completion",
            "created": 0,
            "model": call.body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": scenario.finish,
                    "message": {"role": "assistant", "content": content, **scenario.message},
                }
            ],
            "usage": tokens if scenario.usage is None else scenario.usage,
        }


def _words(content: Any) -> str:
    """The text of a message, whose content may be parts."""
    if not isinstance(content, list):
        return str(content)
    return "\n".join(part["text"] for part in content if "text" in part)


def _scenario(scenario: str | Scenario) -> Scenario:
    return SCENARIOS[scenario] if isinstance(scenario, str) else scenario
