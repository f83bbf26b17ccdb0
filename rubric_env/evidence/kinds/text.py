"""Plain text and markdown, by paragraphs: runs of lines between blank lines, numbered from 1."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

from rubric_env.evidence._decode import load
from rubric_env.evidence._extract import Extract, Kind, Limits, Unit

_PARAGRAPH = re.compile(r"^[^\S\n]*+\S[^\n]*+(?:\n[^\S\n]*+\S[^\n]*+)*+", re.MULTILINE)


def paragraphs(text: str) -> Iterator[Unit]:
    """The paragraphs of a text as units `¶1`, `¶2`, …"""
    for number, match in enumerate(_PARAGRAPH.finditer(text), 1):
        yield Unit(f"¶{number}", match.group())


def lines(text: str) -> Iterator[Unit]:
    """The lines that are not blank as units `L1`, `L2`, …, numbered as an editor does."""
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        if not line.isspace():
            yield Unit(f"L{number}", line.rstrip())


def read(path: Path, limits: Limits) -> Extract:
    """The paragraphs, markdown as it was written."""
    loaded = load(path, limits)
    return Extract.of(paragraphs(loaded.text), limits, notes=loaded.notes, cut=loaded.cut)


KINDS = (Kind("text", (".txt", ".text", ".log"), read), Kind("markdown", (".md", ".markdown", ".mdown"), read))
