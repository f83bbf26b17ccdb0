"""Parsers with the interface of verifiers' `Parser` and `XMLParser`, by duck typing, for judges and policies.

The parts of the format reward are those of verifiers 0.3.1 (`XMLParser.get_format_reward_func`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from verdict_parsers._parse import parse_verdicts
from verdict_parsers._types import Parsed
from verdict_parsers._values import Obj, StrictReader, Value

Field = str | tuple[str, ...]
"""A field's name, or its name and its aliases, the name first."""

FIELDS: tuple[Field, ...] = ("reason", "evidence", ("hit", "met", "verdict"))
"""What a row says, in the order in which a judge has to say it."""

_BRACKET = re.compile(r"[\[{]")

PRESENT, SPACING, STARTS, ENDS = 0.4, 0.2, 0.2, 0.2


@dataclass(frozen=True, slots=True)
class _Form:
    """How well one message keeps the format: the share of fields, and the three yes-or-no parts."""

    present: float
    spacing: bool
    starts: bool
    ends: bool

    @property
    def reward(self) -> float:
        return PRESENT * self.present + SPACING * self.spacing + STARTS * self.starts + ENDS * self.ends


class VerdictParser(ABC):
    """Reads verdicts for `ids`, whatever the notation; a subclass says which notation it asks for and rewards.

    `texts` and `marker` as in `parse_verdicts`. `fields` are the fields of a row in order. Raises ValueError when they
    are empty or repeated, TypeError when they are no strings.
    """

    def __init__(
        self,
        ids: Sequence[str],
        *,
        texts: Mapping[str, str] | None = None,
        marker: str | None = None,
        fields: Sequence[Field] = FIELDS,
    ):
        self.ids, self.texts, self.marker = tuple(ids), texts, marker
        self.fields = _names(fields)

    def parse(self, text: str) -> Parsed:
        """The verdicts of a text; see `parse_verdicts`."""
        return parse_verdicts(text, self.ids, self.texts, self.marker)

    def parse_answer(self, completion: Any) -> Parsed | None:
        """The verdicts of the last assistant message, or of a plain text. None without such a message."""
        contents = _contents(completion)
        return self.parse(contents[-1]) if contents else None

    @abstractmethod
    def parse_fields(self, text: str, last: bool = False) -> SimpleNamespace:
        """The text of every field of the first (or `last`) row, each alias an attribute; None where it is missing."""

    @abstractmethod
    def get_format_str(self) -> str:
        """The format in words, to be put into a prompt."""

    @abstractmethod
    def _form(self, content: str) -> _Form: ...

    def get_format_reward_func(self) -> Callable[..., float]:
        """A reward from 0 to 1, the mean over the assistant messages: 0.4 × the share of fields that are there, 0.2 for
        the spacing, 0.2 if the message starts with the first field, 0.2 if it ends with the last."""

        def format_reward_func(completion: Any, **_: Any) -> float:
            rewards = [self._form(content).reward for content in _contents(completion)]
            return sum(rewards) / len(rewards) if rewards else 0.0

        return format_reward_func


class XmlVerdictParser(VerdictParser):
    """One row as XML elements. `parse_fields`, the format and its reward are those of `XMLParser`.

    The spacing part is always earned, as it is there: what its strict reading finds, its lenient reading finds too.
    """

    def parse_fields(self, text: str, last: bool = False) -> SimpleNamespace:
        return SimpleNamespace(**{alias: _element(text, alias, last) for names in self.fields for alias in names})

    def get_format_str(self) -> str:
        tags = (names[0] if len(names) == 1 else f"[ {' | '.join(names)} ]" for names in self.fields)
        return "\n".join(f"<{tag}>\n...\n</{tag}>" for tag in tags)

    def _form(self, content: str) -> _Form:
        found = vars(self.parse_fields(content))
        read = any(value is not None for value in found.values())
        seen = [any(f"<{a}>" in content or f"</{a}>" in content for a in names) for names in self.fields]
        stripped = content.strip()
        return _Form(
            present=sum(seen) / len(seen) if read else 0.0,
            spacing=True,
            starts=any(stripped.startswith(f"<{alias}>") for alias in self.fields[0]),
            ends=any(stripped.endswith(f"</{alias}>") for alias in self.fields[-1]),
        )


class JsonVerdictParser(VerdictParser):
    """Rows as JSON objects. Only what is JSON by the letter counts for the format; `parse` is as lenient as ever.

    The parts of the reward: fields that are there, as a mean over the rows; the message is one JSON value and nothing
    else; it starts with a bracket and its first row with the first field; it ends with a bracket and its last row with
    the last field (keys that are no fields, like `id`, stand anywhere).
    """

    def parse_fields(self, text: str, last: bool = False) -> SimpleNamespace:
        rows = self._rows(_values(text))
        row = {} if not rows else rows[-1 if last else 0]
        return SimpleNamespace(**{alias: _scalar(row.get(alias)) for names in self.fields for alias in names})

    def get_format_str(self) -> str:
        keys = (names[0] if len(names) == 1 else f"[ {' | '.join(names)} ]" for names in self.fields)
        return "{" + ", ".join(f'"{key}": ...' for key in keys) + "}"

    def _form(self, content: str) -> _Form:
        stripped = content.strip()
        rows = self._rows(_values(stripped))
        if not rows:
            return _Form(0.0, False, False, False)
        known = {alias: n for n, names in enumerate(self.fields) for alias in names}
        order = [[known[key] for key in row if key in known] for row in rows]
        whole = StrictReader().whole(stripped)
        return _Form(
            present=sum(len(set(fields)) for fields in order) / (len(rows) * len(self.fields)),
            spacing=whole is not None,
            starts=stripped[0] in "{[" and order[0][0] == 0,
            ends=stripped[-1] in "}]" and order[-1][-1] == len(self.fields) - 1,
        )

    def _rows(self, values: Sequence[Value]) -> list[dict[str, Value]]:
        """The objects with a field, in the order of the text."""
        names = {alias for names in self.fields for alias in names}
        rows, waiting = [], list(reversed(values))
        while waiting:
            value = waiting.pop()
            if isinstance(value, list):
                waiting.extend(reversed(value))
            elif isinstance(value, Obj):
                if names & {key for key, _ in value.pairs}:
                    rows.append(dict(value.pairs))
                else:
                    waiting.extend(item for _, item in reversed(value.pairs))
        return rows


def _names(fields: Sequence[Field]) -> tuple[tuple[str, ...], ...]:
    names: list[tuple[str, ...]] = []
    for field in fields:
        aliases = (field,) if isinstance(field, str) else field
        if not isinstance(aliases, tuple) or not all(isinstance(alias, str) for alias in aliases):
            raise TypeError(f"a field is a string or a tuple of strings, not {field!r}")
        if not aliases:
            raise ValueError("a field without a name")
        names.append(aliases)
    firsts = [aliases[0] for aliases in names]
    if not names or len(set(firsts)) < len(firsts):
        raise ValueError(f"fields must be named, and each only once: {firsts}")
    return tuple(names)


def _contents(completion: Any) -> list[str]:
    """The text of every assistant message (dicts or objects, content a string or parts). A plain text is a message."""
    if isinstance(completion, str):
        return [completion]
    return [_text(_get(message, "content")) for message in completion or () if _get(message, "role") == "assistant"]


def _get(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [_part(part) for part in content] if isinstance(content, list) else []
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def _part(part: Any) -> Any:
    if isinstance(part, Mapping):
        return part.get("text") if part.get("type") == "text" else None
    return getattr(part, "text", None)


def _element(text: str, name: str, last: bool) -> str | None:
    """The text of the first (or last) element of that name, stripped."""
    opening, closing = f"<{name}>", f"</{name}>"
    value, position = None, 0
    while (start := text.find(opening, position)) >= 0:
        start += len(opening)
        end = text.find(closing, start)
        if end < 0:
            break
        value, position = text[start:end].strip(), end + len(closing)
        if not last:
            break
    return value


def _values(text: str) -> list[Value]:
    """Every JSON object and array that is JSON by the letter."""
    values: list[Value] = []
    reader, position = StrictReader(), 0
    while bracket := _BRACKET.search(text, position):
        if read := reader.read(text, bracket.start()):
            values.append(read[0])
        position = read[1] if read else bracket.end()
    return values


def _scalar(value: Value) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str) else None
