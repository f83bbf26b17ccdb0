"""Text → verdicts for exactly the ids of a block (SPEC 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from verdict_parsers._chars import BLANK, drop_zero_width, flatten
from verdict_parsers._document import read_document
from verdict_parsers._ids import IdBook
from verdict_parsers._limits import MAX_REPLY_BYTES, TooMuch
from verdict_parsers._pool import pool
from verdict_parsers._region import Region
from verdict_parsers._rows import TreeReader
from verdict_parsers._think import sections
from verdict_parsers._types import Parsed
from verdict_parsers._values import Obj, StrictReader, Value
from verdict_parsers._words import squash

_ENCODED_KEYS = frozenset({"output", "result", "response", "answer", "content"})
_EMPHASIS = " \t\r*`#_"
_MARGIN = 16


def parse_verdicts(
    text: str, ids: Sequence[str], texts: Mapping[str, str] | None = None, marker: str | None = None
) -> Parsed:
    """Read a judge's reply. Never raises on a text; takes time linear in its length.

    `ids` are the rows of the block; `texts` ({id: text}) lets an answer name a row by its text. With a `marker`, only
    what follows the last line that holds it counts, or, without such a line, a reply that is one whole JSON value.
    """
    book = IdBook(ids, texts)
    if len(text) > MAX_REPLY_BYTES or len(text.encode("utf-8", "replace")) > MAX_REPLY_BYTES:
        return _nothing(book, "truncated", f"the reply has more than {MAX_REPLY_BYTES} bytes")
    try:
        return _parse(text, book, marker)
    except TooMuch as limit:
        return _nothing(book, "unreadable", f"no answer has that much of it: {limit}")


def _nothing(book: IdBook, why: str, warning: str) -> Parsed:
    return Parsed({}, dict.fromkeys(book.order, why), {}, (warning,))


def _parse(text: str, book: IdBook, marker: str | None) -> Parsed:
    marked = _after_marker(text, marker) if marker else None
    reply = _behind_thinking(text if marked is None else marked)
    if value := StrictReader().whole(reply.strip(BLANK)):
        rows, _ = TreeReader(book).rows(_decoded(value[0]))
        return pool([Region("json", 0, len(reply), tuple(rows), level="whole", alone=True)], reply, book)
    document = read_document(reply, book)
    if marker and (marked is None or document.visible) and not _is_json(reply[document.visible :]):
        return _nothing(book, "unreadable", "no marker line, and the reply is not one whole JSON value")
    return pool(document.regions, reply, book, document.spoken)


def _after_marker(text: str, marker: str) -> str | None:
    """What follows the last line, outside thinking, that holds nothing but the marker."""
    flat, wanted = flatten(text), flatten(marker).strip(BLANK)
    if not wanted:
        raise ValueError("the marker is blank")
    thinking = sections(flat)
    section = next(thinking, None)
    after = None
    for found in re.finditer(re.escape(wanted), flat):
        while section and section[1] <= found.start():
            section = next(thinking, None)
        before = flat[max(found.start() - _MARGIN, 0) : found.start()]
        behind, _, _ = flat[found.end() : found.end() + _MARGIN].partition("\n")
        opens = not before.rpartition("\n")[2].strip(_EMPHASIS) and ("\n" in before or len(before) < _MARGIN)
        ends = not behind.strip(_EMPHASIS) and len(behind) < _MARGIN
        if opens and ends and not (section and section[0] < found.start()):
            after = found.end() + len(behind)
    return None if after is None else text[after:]


def _behind_thinking(text: str) -> str:
    """The text less the thinking sections it starts with."""
    start = 0
    for begin, end in sections(text):
        if text[start:begin].strip(BLANK):
            break
        start = end
    return text[start:]


def _decoded(value: Value) -> Value:
    """A reply that is a JSON string, or an object with nothing but one under a known key, holds JSON: decoded once."""
    if isinstance(value, Obj) and len(value.pairs) == 1 and squash(value.pairs[0][0]) in _ENCODED_KEYS:
        inner = value.pairs[0][1]
        value = inner if isinstance(inner, str) else value
    if not isinstance(value, str):
        return value
    decoded = StrictReader().whole(value)
    return decoded[0] if decoded and isinstance(decoded[0], Obj | list) else None


def _is_json(text: str) -> bool:
    """Whether a text is one JSON value, by the letter but for what SPEC 5 drops or reads as ASCII."""
    return StrictReader().whole(drop_zero_width(flatten(text)).strip(BLANK)) is not None
