"""As much of markdown as telling prose, code and blocks apart takes. Places are offsets in the text as it came."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

_INLINE = re.compile(
    r"(?<!`)`[^`\n]{1,500}`(?!`)|<!--[^<>]{0,2000}-->|</?(?!a[\s>])[a-zA-Z][a-zA-Z0-9]{0,20}(?:\s[^<>\n]{0,500})?>"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})\s*([\w-]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})\s")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)、])\s")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a heading, an item of a list, a row of a table, or lines of a block quote."""

    start: int
    end: int
    kind: str


def without_code(text: str) -> str:
    """The text with blanks in place of code, comments and HTML tags but links: every offset stays.

    A fence that calls itself markdown is none, since many a report is delivered in one, nor is one that never closes.
    """
    lines = text.splitlines(keepends=True)
    opened, fence = -1, ""
    for number, line in enumerate(lines):
        if not (match := _FENCE.match(line)):
            continue
        if opened < 0:
            if match[2].lower() not in ("markdown", "md"):
                opened, fence = number, match[1]
        elif match[1].startswith(fence) and not match[2]:
            lines[opened : number + 1] = [_blank(inside) for inside in lines[opened : number + 1]]
            opened = -1
    return _INLINE.sub(lambda found: _blank(found.group()), "".join(lines))


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a text from top to bottom, blank lines left out."""
    start, kind, at = 0, "", 0
    for line in text.splitlines(keepends=True):
        found = _kind(line, kind)
        if kind and (found != kind or found in ("heading", "row") or (found == "item" and _ITEM.match(line))):
            yield Block(start, at, kind)
            kind = ""
        if found and not kind:
            start, kind = at, found
        at += len(line)
    if kind:
        yield Block(start, at, kind)


def _kind(line: str, before: str) -> str:
    bare = line.strip()
    if not bare:
        return ""
    if _HEADING.match(line):
        return "heading"
    if bare.startswith("|"):
        return "row"
    if bare.startswith(">"):
        return "quote"
    return "item" if before == "item" or _ITEM.match(line) else "paragraph"


class Lines:
    """Line numbers from 1 for offsets."""

    def __init__(self, text: str) -> None:
        self._starts = list(accumulate((len(line) for line in text.splitlines(keepends=True)), initial=0))

    def number(self, offset: int) -> int:
        return bisect_right(self._starts, offset)
