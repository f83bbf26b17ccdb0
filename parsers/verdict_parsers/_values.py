"""What the readers of JSON, XML and tables hand on: values that remember how they were written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TypeAlias

from verdict_parsers._chars import drop_zero_width


class Bare(str):
    """A word without quotes: a number, `NaN`, `true|false`, the text of an XML element or a table cell."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Obj:
    """An object as it was written: pairs in order, duplicates included.

    `spans` are the offsets of the pairs; `start` is that of the opening brace, `end` lies behind the closing one (empty
    and -1 where the standard library read the object). An object that is cut has `closed` False, and in `pending` the
    pair it breaks off in. `breaks` are the strings whose end is a guess, because a quote inside them is not escaped;
    `mended` tells that the row was read all the same.
    """

    pairs: list[tuple[str, Value]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    start: int = -1
    end: int = -1
    closed: bool = True
    pending: list[tuple[str, Value]] = field(default_factory=list)
    breaks: list[tuple[int, int]] = field(default_factory=list)
    mended: bool = False


Value: TypeAlias = "bool | str | Obj | list[Value] | None"
Fields: TypeAlias = "list[tuple[str, Value]]"

_LITERALS: dict[str, bool | None] = {"null": None, "None": None}


def literal(word: str) -> Value:
    """A word without quotes: booleans in any case, `null` and Python's `None`, everything else as it stands."""
    word = drop_zero_width(word).strip()
    folded = word.lower()
    if folded in {"true", "false"}:
        return folded == "true"
    return _LITERALS.get(word, Bare(word))


class StrictReader:
    """Reads what is JSON by the letter, fast. It gives up after a few failures: each costs a pass over the text."""

    def __init__(self) -> None:
        self._failures_left = 16
        self._decoder = json.JSONDecoder(
            object_pairs_hook=lambda pairs: Obj(pairs), parse_float=Bare, parse_int=Bare, parse_constant=Bare
        )

    def read(self, text: str, start: int) -> tuple[Obj | list[Value], int] | None:
        """The object or array at `start`, and the offset behind it."""
        if not self._failures_left:
            return None
        try:
            value, end = self._decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            self._failures_left -= 1
            return None
        if isinstance(value, Obj):
            value.start, value.end = start, end
        return (value, end) if isinstance(value, Obj | list) else None

    def whole(self, text: str) -> tuple[Value] | None:
        """The value of a text that is JSON from end to end, in a tuple: the value may be None."""
        try:
            return (self._decoder.decode(text),)
        except (ValueError, RecursionError):
            return None


_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}


def unescape(body: str) -> str:
    """The text of a JSON string; an escape that JSON does not know stays as it is (`\\alpha`, `C:\\Users`)."""
    if "\\" not in body:
        return body
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return _ESCAPE.sub(lambda m: _code(m[1]) if len(m[1]) > 1 else _ESCAPED.get(m[1], m[0]), body)


def _code(escape: str) -> str:
    return chr(int(escape[1:], 16))
