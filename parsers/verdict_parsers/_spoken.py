"""What a reply says of its rows where no candidate stands: `- R1: FAIL`, YAML, prose.

It is no answer, but it shows that a candidate which says otherwise may be a quotation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from verdict_parsers._ids import IdBook
from verdict_parsers._region import Region
from verdict_parsers._words import hit_of, spellings

_REACH = 200
"""Characters between the name of a row and what is said of it."""
_WORD = rf"""(?:[:=>|,]|[-–—]\s|\bis\s)[\s"'`*_]*(?P<word>{spellings()})["'`*_]*\s*(?=[.,;|<)\]}}(!\n]|[-–—]\s|\Z)"""
_QUOTE_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_GAP = "\0"
"""Stands where something was left out that answers several rows: what follows belongs to none of them."""


def between(flat: str, start: int, regions: Iterable[Region], skipped: Iterable[tuple[int, int]]) -> str:
    """The text from `start` on, without the candidates that answer something, and without what was `skipped`."""
    left_out = [(*span, " ") for span in skipped]
    for region in regions:
        if region.ids:
            left_out.append((region.start, region.end, _GAP if len(set(region.ids)) > 1 else " "))
    parts: list[str] = []
    for begin, end, instead in sorted(left_out):
        parts += [flat[start:begin], instead]
        start = max(start, end)
    return "".join((*parts, flat[start:]))


def contradicted(spoken: str, hits: Mapping[str, bool], book: IdBook) -> set[str]:
    """The rows of which `spoken` says the opposite of their hit, and never the same."""
    if not hits or not spoken.strip():
        return set()
    said: dict[str, set[bool | None]] = {name: set() for name in hits}
    name, reach = None, 0
    for found in _mentions(book.order).finditer(_QUOTE_LINE.sub("", spoken)):
        if found["name"]:
            name, reach = book.match(found["name"]), found.end() + _REACH
        elif found["word"] and name in said and found.start() < reach:
            said[name].add(hit_of(found["word"]))
        elif found[0] == _GAP:
            name = None
    return {name for name, words in said.items() if words == {not hits[name]}}


def _mentions(names: Iterable[str]) -> re.Pattern[str]:
    either = "|".join(re.escape(name) for name in sorted(filter(None, names), key=len, reverse=True)) or "(?!)"
    return re.compile(rf"(?P<name>(?<![\w.])(?:{either})(?!\w|\.\w))|{_WORD}|{_GAP}", re.IGNORECASE)
