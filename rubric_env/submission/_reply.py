"""The policy's last words, and the whole conversation as text.

Messages are dicts, or objects that behave like them (`verifiers` messages, pydantic models); nothing of those libraries
is imported. Content is text, a list of parts, or None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

Messages = str | Iterable[Any]

_OPENING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_ANY_OPENING = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
# A closing tag in backticks is a text about thinking tags, not the end of a thinking section.
_CLOSING = re.compile(r"(?<!`)</think(?:ing)?>(?!`)", re.IGNORECASE)
_POLICY_ROLES = frozenset({"assistant", "text"})
_RESULT_ROLES = frozenset({"tool", "function"})
_THINKING_PARTS = frozenset({"thinking", "reasoning"})
_CALL_PARTS = frozenset({"tool_use", "tool_call", "function_call"})


def reply_text(messages: Messages) -> str:
    """The last non-empty assistant text after the last tool call, without its leading thinking section.

    `messages` is a rollout's completion (not its prompt, whose examples are not the policy's), or plain text. Text in a
    message that itself calls a tool comes before the call and is no reply. Empty when there is none.
    """
    if isinstance(messages, str):
        return _without_thinking(messages)
    reply = ""
    for message in messages:
        role = _field(message, "role")
        if role in _RESULT_ROLES or _calls(message):
            reply = ""
        elif role in _POLICY_ROLES:
            reply = _without_thinking(message_text(message)) or reply
    return reply


def _without_thinking(text: str) -> str:
    opened = _OPENING.match(text)
    closed = _CLOSING.search(text, opened.end() if opened else 0)
    if opened and not closed:
        return ""
    if closed and (opened or not _ANY_OPENING.search(text, 0, closed.start())):
        text = text[closed.end() :]
    return text.strip()


def message_text(message: Any) -> str:
    """The text of one message: its text parts, one a line. Reasoning that travels beside the content is left out."""
    return "\n".join(text for kind, text in _parts(message) if kind == "text")


def conversation_text(messages: Messages) -> str:
    """All messages with their roles, tool calls and results, for rows about conduct (`judge_view = conversation`).

    A message begins with `[message N] role` at the margin; what it says is indented, so that no text can pose as one.
    """
    if isinstance(messages, str):
        messages = [{"role": "assistant", "content": messages}]
    return "\n".join(_entry(number, message) for number, message in enumerate(messages, 1))


def _entry(number: int, message: Any) -> str:
    shown = [text if kind == "text" else f"({kind} not shown)" for kind, text in _parts(message)]
    shown += [f"calls {name}: {arguments}" for name, arguments in _calls(message)]
    lines = [line for text in shown for line in re.split(r"\r\n|\r|\n", text)]
    return "\n".join([f"[message {number}] {_field(message, 'role')}", *(f"  {line}" for line in lines)])


def _parts(message: Any) -> Iterator[tuple[str, str]]:
    content = _field(message, "content")
    if isinstance(content, str):
        yield "text", content
        return
    for part in content if isinstance(content, list | tuple) else ():
        kind = _field(part, "type") or "text"
        text = part if isinstance(part, str) else _field(part, "text")
        if isinstance(text, str) and kind not in _THINKING_PARTS:
            yield "text", text
        elif kind not in _CALL_PARTS:
            yield str(kind), ""


def _calls(message: Any) -> list[tuple[str, str]]:
    """Name and arguments of every tool call, in the shapes of the chat format, its predecessor, and content parts."""
    calls = list(_field(message, "tool_calls") or ())
    if legacy := _field(message, "function_call"):
        calls.append(legacy)
    content = _field(message, "content")
    if isinstance(content, list | tuple):
        calls += [part for part in content if _field(part, "type") in _CALL_PARTS]
    return [_call(call) for call in calls]


def _call(call: Any) -> tuple[str, str]:
    if isinstance(call, str):
        return "tool", call
    function = _field(call, "function") or call
    arguments = _field(function, "arguments")
    if arguments is None:
        arguments = _field(function, "input")
    shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return str(_field(function, "name") or "tool"), shown


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if hasattr(thing, "get") else getattr(thing, name, None)
