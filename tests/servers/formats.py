"""One chat completion in both wire formats, whole and as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Completion = Mapping[str, Any]

PIECE = 16
"""Characters of text in one event."""

_REASONS = {"length": "max_output_tokens"}


def as_response(completion: Completion) -> dict[str, Any]:
    """The same as an object of `/responses`."""
    choice = completion["choices"][0]
    message, finish = choice["message"], choice["finish_reason"]
    parts = []
    if message.get("content"):
        parts.append({"type": "output_text", "text": message["content"], "annotations": []})
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    output: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        output.append(
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": message["reasoning_content"]}]}
        )
    output.append({"type": "message", "role": "assistant", "status": "completed", "content": parts})
    whole = finish == "stop"
    return {
        "id": completion["id"],
        "object": "response",
        "status": "completed" if whole else "incomplete",
        "error": None,
        "incomplete_details": None if whole else {"reason": _REASONS.get(finish, finish)},
        "model": completion["model"],
        "output": output,
        "usage": {_USAGE.get(name, name): count for name, count in completion["usage"].items()},
    }


_USAGE = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "prompt_tokens_details": "input_tokens_details",
}


def chat_events(completion: Completion, *, counted: bool) -> list[dict[str, Any]]:
    """The chunks; with `counted` the last one holds the usage."""
    choice = completion["choices"][0]
    message = choice["message"]
    base = {"id": completion["id"], "object": "chat.completion.chunk", "model": completion["model"]}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": ""})]
    for field in ("reasoning_content", "content", "refusal"):
        events += [chunk({field: piece}) for piece in pieces(message.get(field))]
    events.append(chunk({}, choice["finish_reason"]))
    if counted:
        events.append({**base, "choices": [], "usage": completion["usage"]})
    return events


def response_events(completion: Completion) -> list[dict[str, Any]]:
    """From `response.created` to the event that holds the whole response."""
    response = as_response(completion)
    message = completion["choices"][0]["message"]
    started = {**response, "status": "in_progress", "output": [], "usage": None}
    names = {
        "reasoning_content": "response.reasoning_summary_text.delta",
        "content": "response.output_text.delta",
        "refusal": "response.refusal.delta",
    }
    events: list[dict[str, Any]] = [
        {"type": name, "response": started} for name in ("response.created", "response.in_progress")
    ]
    for field, name in names.items():
        events += [{"type": name, "output_index": 0, "delta": piece} for piece in pieces(message.get(field))]
    events.append({"type": f"response.{response['status']}", "response": response})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def thinking_event(path: str) -> dict[str, Any]:
    """One more thought."""
    if path.endswith("/responses"):
        return {"type": "response.reasoning_summary_text.delta", "delta": "Hm. "}
    return {"choices": [{"index": 0, "delta": {"reasoning_content": "Hm. "}, "finish_reason": None}]}


def error_event(path: str, error: Mapping[str, Any]) -> dict[str, Any]:
    """How a stream tells of an error."""
    return {**error, "type": "error"} if path.endswith("/responses") else {"error": error}


def pieces(text: str | None) -> list[str]:
    return [text[n : n + PIECE] for n in range(0, len(text), PIECE)] if text else []


def encoded(event: Mapping[str, Any] | str, line_end: str = "\n", encoding: str = "utf-8") -> bytes:
    """One server-sent event; a text is its data as it stands."""
    data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=encoding == "ascii")
    name = f"event: {event['type']}{line_end}" if isinstance(event, Mapping) and "type" in event else ""
    return f"{name}data: {data}{line_end}{line_end}".encode(encoding)
