"""Thinking sections: how they open and close."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TAGS = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis"
_FORMS = (
    (rf"<(?:{_TAGS})(?:\s[^<>]*+)?>", rf"</(?:{_TAGS})\s*+>"),
    (r"◁think▷", r"◁/think▷"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"<\|channel\|>(?:analysis|commentary)", r"<\|channel\|>final(?:<\|message\|>)?"),
)


def _used(*forms: str) -> str:
    """One of the forms, but not between backticks: there it is only spoken of."""
    either = "(?i:" + "|".join(forms) + ")"
    return f"(?:(?<!`){either}|(?<=`){either}(?!`))"


OPEN = _used(*(opening for opening, _ in _FORMS))
CLOSE = _used(*(closing for _, closing in _FORMS))

_OPEN = re.compile(OPEN)
_CLOSE = re.compile(CLOSE)
_FAMILIES = tuple((re.compile(_used(opening)), re.compile(_used(closing))) for opening, closing in _FORMS)


def end_of_thinking(flat: str, start: int) -> int | None:
    """Where the section that opens at `start` ends: behind the first closing tag of its form. None: it never does."""
    for opening, closing in _FAMILIES:
        if match := opening.match(flat, start):
            end = closing.search(flat, match.end())
            return end.end() if end else None
    raise ValueError(f"no thinking section opens at {start}")


def lone_close(flat: str, start: int, end: int) -> int | None:
    """The offset behind the last closing tag of a stretch of text that opens none itself; None without one."""
    last = None
    for match in _CLOSE.finditer(flat, start, end):
        last = match.end()
    return None if last is None or _OPEN.search(flat, start, last) else last


def sections(flat: str) -> Iterator[tuple[int, int]]:
    """Every section that an opening tag begins; one that is never closed reaches to the end of the text."""
    position = 0
    while opening := _OPEN.search(flat, position):
        position = end_of_thinking(flat, opening.start()) or len(flat)
        yield opening.start(), position
