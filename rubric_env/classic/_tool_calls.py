"""A policy's tool calls: what they ask for, what is wrong with them, and how they can stand in the history."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

CALLS = 32
"""Of one message that are run; more stand neither in the history nor get an answer each."""

DEPTH = 64
"""Levels of arguments. Endpoints parse them again, and some stop at 128."""

LARGE = 16_000
"""Characters of the arguments in one message above which they are read off the event loop."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character that UTF-16 writes in two: JSON can spell it, and nothing can send it on."""
_SPELLED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""As JSON spells it, where it also stands for half of a whole one."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `id`, `name` and `text`, the arguments, can stand in the history.

    `asked` is the name as it was written. `problem` says what is wrong with the arguments, which are empty then.
    """

    id: str
    name: str
    asked: str
    arguments: dict[str, Any]
    text: str
    problem: str = ""


def read_calls(said: Any, before: Sequence[Any]) -> list[Call]:
    """The calls of a message that follows `before`, at most `CALLS`; ids are unique in the whole conversation."""
    taken = {call.id for message in before for call in message.get("tool_calls") or ()}
    calls = []
    for number, call in enumerate((said.get("tool_calls") or ())[:CALLS]):
        ids = chain([call.id], (f"call-{len(before)}-{number}-{n}" for n in count()))
        id = next(id for id in ids if id.strip() and id not in taken)
        taken.add(id)
        name = call.name if _NAME.fullmatch(call.name) else re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "_"
        text = call.arguments if call.arguments.strip() else "{}"
        try:
            arguments = read = _read(text)
            if _SPELLED_HALF.search(text):
                arguments = whole_characters(read)
                text = text if arguments == read else json.dumps(arguments, ensure_ascii=False)
            calls.append(Call(id, name, call.name, arguments, text))
        except (ValueError, RecursionError) as error:
            calls.append(Call(id, name, call.name, {}, "{}", f"the arguments are no JSON object ({error})"))
    return calls


def is_large(said: Any) -> bool:
    """Whether it takes milliseconds to read the calls of a message."""
    return sum(len(call.arguments) for call in said.get("tool_calls") or ()) > LARGE


def replayable(said: Any, read: Sequence[Call]) -> Any:
    """The message as it can go back to an endpoint: its calls have ids of their own and JSON objects as arguments.

    `read` are its calls as `read_calls` gives them. The message itself, where all is well with it.
    """
    calls = said.get("tool_calls")
    if not calls:
        return said
    kept = [
        call.model_copy(update={"id": one.id, "name": one.name, "arguments": one.text})
        for call, one in zip(calls, read, strict=False)
    ]
    return said if kept == calls else said.model_copy(update={"tool_calls": kept})


def whole_characters(value: Any) -> Any:
    """The same message, text or list without half characters; the value itself where there are none."""
    if isinstance(value, str):
        try:
            value.encode()  # three times as fast as to look for them
        except UnicodeEncodeError:
            return _HALF.sub("\ufffd", value)
        return value
    if isinstance(value, list):
        return [whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(key): whole_characters(item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        fields = {**value.__dict__, **(value.model_extra or {})}
        return value.model_copy(update={name: whole_characters(field) for name, field in fields.items()})
    return value


class Signature:
    """What a tool takes: its parameters but `workspace`, by their annotations."""

    def __init__(self, tool: Callable[..., Any]) -> None:
        hints = get_type_hints(tool, include_extras=True)
        self._parameters = [p for p in inspect.signature(tool).parameters.values() if p.name != "workspace"]
        fields: dict[str, Any] = {
            p.name: (hints.get(p.name, Any), ... if p.default is p.empty else p.default) for p in self._parameters
        }
        self._name = tool.__name__
        self._optional = {p.name for p in self._parameters if p.default is not p.empty}
        self._model = create_model(tool.__name__, __config__=ConfigDict(extra="forbid"), **fields)

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the tool takes them. Raises ValueError, whose message is for the policy."""
        # Endpoints with strict schemas have policies name every argument.
        given = {name: v for name, v in arguments.items() if v is not None or name not in self._optional}
        try:
            read = self._model.model_validate(given)
        except ValidationError as error:
            raise ValueError(f"{'; '.join(self._wrong(error))}. {self}") from None
        return {name: getattr(read, name) for name in given}

    def __str__(self) -> str:
        return f"{self._name} takes {', '.join(p.name for p in self._parameters) or 'no arguments'}"

    def _wrong(self, error: ValidationError) -> Iterator[str]:
        for item in error.errors(include_url=False)[:5]:
            where = ".".join(map(str, item["loc"]))
            yield f"{where[:100]}: {'unknown argument' if item['type'] == 'extra_forbidden' else item['msg'][:300]}"


def _read(text: str) -> dict[str, Any]:
    """Raises ValueError, or RecursionError for what is nested without end."""
    value = json.loads(text, parse_constant=_no_constant)
    if not isinstance(value, dict):
        raise ValueError(f"they are a {type(value).__name__}")
    if text.count("{") + text.count("[") > DEPTH and _is_deep(value):
        raise ValueError(f"more than {DEPTH} levels deep")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _is_deep(value: Any) -> bool:
    """Whether it has more than `DEPTH` levels; from level to level, since there may be a hundred thousand items."""
    level = [value]
    for _ in range(DEPTH):
        inner = (item for item in level if isinstance(item, dict | list))
        level = [item for one in inner for item in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)
