"""What a file of the workspace says, as lines with the addresses that a judge's evidence uses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rubric_env.classic.tools._workspace import ToolRefusal, Workspace
from rubric_env.evidence import Passages, Unreadable, read_passages

PAGE = 20_000
"""Characters that a tool tells at once."""

UNREADABLE_SECONDS = 120
"""Of one rollout, for files that cannot be read or calculated: one that takes long and comes to nothing is made to."""

NOTES = 2_000
"""Characters that are said about a file."""


def passages(workspace: Workspace, file: Path) -> Passages:
    """What a file of the workspace says. Raises ToolRefusal when there is nothing to be read, OSError."""
    name = workspace.name(file)
    if file.is_dir():
        raise ToolRefusal(f"{name}: a folder; list_files shows what is in it")
    if workspace.clock.unreadable > UNREADABLE_SECONDS:
        raise ToolRefusal(
            f"{name}: not opened: files that cannot be read have taken {UNREADABLE_SECONDS} s of this task"
        )
    began = time.monotonic()
    try:
        with workspace.refusing(name):
            read = read_passages(file)
        workspace.clock.unreadable += min(read.in_vain, time.monotonic() - began)
        return read
    except Unreadable as error:
        workspace.clock.unreadable += time.monotonic() - began
        raise ToolRefusal(f"{name}: cannot be read: {error}") from None


def page(read: Passages, offset: int) -> str:
    """At most `PAGE` characters of the file's text from `offset` on, and how to go on. Raises ToolRefusal."""
    shown, passed = _window([read.text] if read.text is not None else _lines(read), offset, PAGE + 1)
    if offset and not shown:
        raise ToolRefusal(f"offset {offset:,} is beyond the end: the text has {passed:,} characters")
    if len(shown) > PAGE:
        end = shown.rfind("\n", PAGE // 2, PAGE) + 1 or PAGE
        shown = f"{shown[:end]}\n(it goes on: call read_file with offset={offset + end})"
    if offset:
        return shown
    return _head(read) + (shown or ("(empty)" if read.text is not None else "(nothing in it can be read)"))


def _lines(read: Passages) -> Iterator[str]:
    return (f"{unit.shown}\n" for unit in read.units())


def _window(pieces: Iterable[str], offset: int, size: int) -> tuple[str, int]:
    """Characters `offset` to `offset + size` of the pieces put together, and how many were looked at."""
    passed, kept = 0, []
    for piece in pieces:
        if passed + len(piece) > offset:
            kept.append(piece[max(0, offset - passed) : offset + size - passed])
        passed += len(piece)
        if passed >= offset + size:
            break
    return "".join(kept), passed


def _head(read: Passages) -> str:
    """What is to be known of a file before its text; nothing for a text file that is as it should be."""
    if read.text is not None and not read.notes:
        return ""
    said = "; ".join([read.kind, *read.notes])
    return f"({said if len(said) <= NOTES else f'{said[:NOTES]} …'})\n"
