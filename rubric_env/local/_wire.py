"""The chat-completions wire as the loopback servers speak it: requests, answers, errors, estimated usage."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_env.evidence import estimate_tokens

_DELTA = 400
"""Characters of content in one event of a stream."""


class ApiError(Exception):
    """A request that gets an error object in OpenAI's form instead of an answer."""

    def __init__(self, status: int, message: str, *, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param

    def body(self) -> dict[str, Any]:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What is used of a request. `response_format` is its type: text, json_object or json_schema."""

    model: str
    messages: tuple[Mapping[str, Any], ...]
    stream: bool
    stream_usage: bool
    response_format: str

    @classmethod
    def parse(cls, raw: bytes) -> ChatRequest:
        """Raises ApiError 400 naming the field that is wrong."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise ApiError(400, f"the body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise ApiError(400, "the body must be a JSON object")
        model, options = body.get("model"), body.get("stream_options") or {}
        if not isinstance(model, str) or not model:
            raise ApiError(400, "`model` must be a non-empty string", param="model")
        if body.get("n") not in (None, 1):
            raise ApiError(400, "this server gives one choice a request", param="n")
        if not isinstance(options, dict):
            raise ApiError(400, "`stream_options` must be an object", param="stream_options")
        return cls(
            model=model,
            messages=_messages(body.get("messages")),
            stream=body.get("stream") is True,
            stream_usage=options.get("include_usage") is True,
            response_format=_response_format(body.get("response_format")),
        )

    @property
    def text(self) -> str:
        """The whole prompt, for counting."""
        return "\n".join(f"{message['role']}: {content_text(message)}" for message in self.messages)


def _messages(given: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(given, list) or not given:
        raise ApiError(400, "`messages` must be a non-empty list", param="messages")
    for n, message in enumerate(given):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ApiError(400, f"messages[{n}] must be an object with a `role`", param="messages")
        if not isinstance(message.get("content"), str | list | None):
            raise ApiError(400, f"messages[{n}].content must be text, a list of parts or null", param="messages")
        if not isinstance(message.get("tool_calls"), list | None):
            raise ApiError(400, f"messages[{n}].tool_calls must be a list", param="messages")
    return tuple(given)


def _response_format(given: Any) -> str:
    if given is None:
        return "text"
    kind = given.get("type") if isinstance(given, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        raise ApiError(400, "its type must be text, json_object or json_schema", param="response_format")
    spec = given.get("json_schema")
    named = isinstance(spec, dict) and isinstance(spec.get("name"), str) and isinstance(spec.get("schema"), dict)
    if kind == "json_schema" and not named:
        raise ApiError(400, "its `json_schema` must have `name` and `schema`", param="response_format")
    return str(kind)


def content_text(message: Mapping[str, Any]) -> str:
    """The text of one message; parts that are no text are left out."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content or ""


@dataclass(frozen=True, slots=True)
class Completion:
    """A server's answer; `tool_calls` in OpenAI's form, arguments as JSON text."""

    content: str
    tool_calls: Sequence[Mapping[str, Any]] = ()

    @property
    def finish_reason(self) -> str:
        return "tool_calls" if self.tool_calls else "stop"

    @property
    def tokens(self) -> int:
        called = (json.dumps(call["function"], ensure_ascii=False) for call in self.tool_calls)
        return sum(map(estimate_tokens, (self.content, *called)))

    def usage(self, prompt: str, cached: int) -> dict[str, Any]:
        """OpenAI's usage object. All counts are estimates, and `estimated` says so."""
        prompt_tokens, tokens = estimate_tokens(prompt), self.tokens
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": prompt_tokens + tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
            "estimated": True,
        }


def whole(completion: Completion, frame: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as one object; `frame` holds id, created, model and usage."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.content}
    if completion.tool_calls:
        message["tool_calls"] = list(completion.tool_calls)
    choice = {"index": 0, "message": message, "finish_reason": completion.finish_reason, "logprobs": None}
    return {**frame, "object": "chat.completion", "choices": [choice]}


def events(completion: Completion, frame: Mapping[str, Any], with_usage: bool) -> Iterator[str]:
    """The answer as the data of server-sent events, `[DONE]` last."""
    base = {**frame, "object": "chat.completion.chunk"}
    usage = base.pop("usage")

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return json.dumps({**base, "choices": [choice]}, ensure_ascii=False)

    yield chunk({"role": "assistant", "content": ""})
    for start in range(0, len(completion.content), _DELTA):
        yield chunk({"content": completion.content[start : start + _DELTA]})
    for index, call in enumerate(completion.tool_calls):
        yield chunk({"tool_calls": [{"index": index, **call}]})
    yield chunk({}, completion.finish_reason)
    if with_usage:
        yield json.dumps({**base, "choices": [], "usage": usage})
    yield "[DONE]"


class PrefixMemory:
    """An estimate of what an endpoint's prefix cache would hold: the longest prefix shared with the last prompts."""

    _STEP = 1024

    def __init__(self, prompts: int = 64) -> None:
        self._seen: deque[str] = deque(maxlen=prompts)
        self._lock = threading.Lock()

    def cached_tokens(self, prompt: str) -> int:
        """Estimated tokens of the prefix seen before, in whole steps of 1,024 characters; remembers `prompt`."""
        with self._lock:
            seen = tuple(self._seen)
            self._seen.append(prompt)
        longest = max((self._shared(prompt, other) for other in seen), default=0)
        return estimate_tokens(prompt[:longest])

    def _shared(self, prompt: str, other: str) -> int:
        whole_steps = len(prompt) // self._STEP * self._STEP
        for start in range(0, whole_steps, self._STEP):
            if not other.startswith(prompt[start : start + self._STEP], start):
                return start
        return whole_steps
