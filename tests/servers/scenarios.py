"""What the scripted judge endpoint can do to a caller, as data. `SCENARIOS` names every one of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Answer = Literal[
    "verdicts",
    "fenced",
    "prose",
    "missing_row",
    "wrong_ids",
    "contradiction",
    "no_level",
    "wrong_scale",
    "quality_words",
    "null_hits",
    "cut",
]
"""How the right verdicts are written down; all but the first three are a judge's mistakes."""

Wire = Literal[
    "whole",
    "hang",
    "trickle",
    "half",
    "drop",
    "reset",
    "too_long",
    "too_short",
    "endless",
    "stall",
    "thinking",
    "keep_alive",
    "error_midway",
]
"""How the bytes travel: `half` closes in the middle, `drop` before the first byte, `reset` with a TCP reset;
`too_long` promises more bytes than come and keeps the socket open, `too_short` promises fewer. In a stream `stall`
stops in the middle and keeps the socket open, `thinking` thinks and `keep_alive` sends comments for ever, and
`error_midway` tells of `in_stream` in the middle; an answer that is to come whole hangs in their place."""


@dataclass(frozen=True)
class Scenario:
    """One reply. `content` replaces the message text, `message` more of the message, `body` the whole HTTP body."""

    name: str
    status: int = 200
    latency: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: Answer = "verdicts"
    content: str | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    finish: str = "stop"
    usage: Mapping[str, Any] | None = None
    body: bytes | None = None
    encoding: str = "utf-8"
    wire: Wire = "whole"
    pace: float = 0.05
    """Seconds between the bytes of `trickle`, the thoughts of `thinking` and the comments of `keep_alive`."""
    in_stream: Mapping[str, Any] = field(default_factory=dict)
    """The error of `error_midway`."""
    share: float = 0.5
    """Of a stream's events, those that come before its trouble."""
    line_end: str = "\n"
    """Of the lines of a stream."""
    write: int | None = None
    """Bytes that are sent at a time; None: an event each, or the whole body."""
    done: bool = True
    """The stream of a chat ends with `[DONE]`."""
    finished: bool = True
    """The stream of a chat says why it ended."""
    unstreamed: bool = False
    """A request for a stream gets the answer whole."""

    def after(self, latency: float) -> Scenario:
        """The same, `latency` seconds later."""
        return replace(self, latency=latency)


def error(name: str, status: int, message: str, *, headers: Mapping[str, str] | None = None, **fields: Any) -> Scenario:
    """An OpenAI-style error object under an HTTP status."""
    body = json.dumps({"error": {"message": message, **fields}}, ensure_ascii=False).encode()
    return Scenario(name, status=status, headers=headers or {}, body=body)


def html(name: str, status: int, title: str) -> Scenario:
    """A page from a proxy."""
    page = f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>"
    return Scenario(name, status=status, headers={"content-type": "text/html; charset=utf-8"}, body=page.encode())


BOMB_BYTES = 200_000_000
"""What the gzip bomb unpacks to."""


def _bomb() -> bytes:
    return gzip.compress(b" " * BOMB_BYTES, compresslevel=9)


def gzip_bomb() -> Scenario:
    """Not in the table, because making it takes half a second."""
    return Scenario("gzip_bomb", headers={"content-encoding": "gzip"}, body=_bomb())


_TOO_FAST = "Request rate increased too quickly. To ensure system stability, please scale requests more smoothly."
_LIMITED: dict[str, Any] = {"type": "requests", "code": "rate_limit_exceeded"}

_STREAM_LIMITED: dict[str, Any] = {"message": "Rate limit reached. Please try again in 200ms.", **_LIMITED}
_STREAM_FAILED: dict[str, Any] = {"message": "The upstream model failed", "type": "server_error"}

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("ok"),
        Scenario("slow", latency=1.0),
        # the socket
        Scenario("hang", wire="hang"),
        Scenario("trickle", wire="trickle"),
        Scenario("half", wire="half"),
        Scenario("drop", wire="drop"),
        Scenario("reset", wire="reset"),
        Scenario("too_long", wire="too_long"),
        Scenario("too_short", wire="too_short"),
        Scenario("endless", wire="endless"),
        # streams
        Scenario("stall", wire="stall"),
        Scenario("stall_at_once", wire="stall", share=0.02),
        Scenario("endless_thinking", wire="thinking"),
        Scenario("keep_alive", wire="keep_alive"),
        Scenario("429_in_stream", wire="error_midway", share=0.0, in_stream=_STREAM_LIMITED),
        Scenario("429_midway", wire="error_midway", in_stream=_STREAM_LIMITED),
        Scenario("500_midway", wire="error_midway", in_stream=_STREAM_FAILED),
        Scenario("crlf", line_end="\r\n"),
        Scenario("cr", line_end="\r"),
        Scenario("cut_anywhere", write=7),
        Scenario("no_done", done=False),
        Scenario("no_finish", finished=False),
        Scenario("no_end", done=False, finished=False),
        Scenario("unstreamed", unstreamed=True),
        # limits, in the three ways they are told
        error("429", 429, "Rate limit reached for requests", headers={"retry-after": "0.2"}, **_LIMITED),
        error("429_bare", 429, "Rate limit reached for requests", **_LIMITED),
        error("429_in_200", 200, "Rate limit reached. Please try again in 200ms.", **_LIMITED),
        error("429_in_words", 400, _TOO_FAST, type="invalid_request_error"),
        error("quota_window", 429, "Quota exceeded for requests per minute. Try again in 1.5s."),
        error("quota", 429, "You exceeded your current quota, please check your plan.", code="insufficient_quota"),
        # refusals of the caller
        error("401", 401, "Incorrect API key provided: sk-abcd1234efgh5678.", code="invalid_api_key"),
        error("403", 403, "You are not allowed to sample from this model", type="permission_error"),
        error("unknown_model", 404, "The model `judge-x` does not exist", code="model_not_found"),
        error("bad_request", 400, "Unsupported value: 'temperature' does not support 0.7", code="unsupported_value"),
        error("context_length", 400, "maximum context length is 8192 tokens", code="context_length_exceeded"),
        error("blocked", 400, "Input data may contain inappropriate content.", code="data_inspection_failed"),
        # servers and what stands before them
        error("500", 500, "The server had an error while processing your request", type="server_error"),
        error("503", 503, "The model is overloaded", headers={"retry-after": "1"}),
        html("502_html", 502, "502 Bad Gateway"),
        html("html", 200, "Sign in"),
        Scenario("redirect", status=302, headers={"location": "https://login.example.com/sso"}, body=b""),
        # bodies
        Scenario("garbage", body=bytes(range(256)) * 4),
        Scenario("not_json", body=b'{"id": "x", "choices": [{"message": {"content": "cut'),
        Scenario("no_choices", body=b'{"id": "x", "object": "chat.completion", "choices": []}'),
        Scenario("gb18030", encoding="gb18030", content="中文：达标"),
        # messages
        Scenario("empty", content=""),
        Scenario("null_content", message={"content": None}),
        Scenario("thought_only", message={"content": "", "reasoning_content": "First, ..."}, finish="length"),
        Scenario("refusal", message={"content": None, "refusal": "I cannot help with that."}),
        Scenario("content_filter", content="", finish="content_filter"),
        Scenario("error_in_content", content='{"error": {"message": "Too many requests", "code": 429}}', usage={}),
        # answers
        Scenario("fenced", answer="fenced"),
        Scenario("prose", answer="prose"),
        Scenario("missing_row", answer="missing_row"),
        Scenario("wrong_ids", answer="wrong_ids"),
        Scenario("contradiction", answer="contradiction"),
        Scenario("no_level", answer="no_level"),
        Scenario("wrong_scale", answer="wrong_scale"),
        Scenario("quality_words", answer="quality_words"),
        Scenario("null_hits", answer="null_hits"),
        Scenario("length", answer="cut", finish="length"),
    )
}
