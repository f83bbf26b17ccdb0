"""A judge prompt taken apart again: its rows, and its evidence as passages with addresses. All of it is data here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

_NO_FILES = frozenset({"model_response_text.txt", "conversation.txt"})
"""Sections that hold what was said; every other one is a delivered file."""

_CLOSING = re.compile(r"^DATA (\S+)>>>$", re.MULTILINE)
_ADDRESS = re.compile(r"^\[([^\n]{1,120}?)\] ", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_ROWS = re.compile(r"\n# Rows\n+```json\n(.*?)\n```", re.DOTALL)
_LISTED = re.compile(r'^- ("(?:[^"\\\n]|\\.)*"): ', re.MULTILINE)
_EVIDENCE = re.compile(r"^# Evidence$", re.MULTILINE)


class QuestionError(ValueError):
    """A prompt with a `# Rows` section that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One addressed piece of what was delivered; `address` as a judge cites it: `output/report.md#¶3`."""

    source: str
    address: str
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """`passages` in their order; `files` are the names of all delivered files, of those too that could not be read."""

    passages: tuple[Passage, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One block: its rows as the prompt holds them, and the text of its evidence section."""

    rows: tuple[Mapping[str, Any], ...]
    evidence: str


def read_question(prompt: str) -> Question | None:
    """The rows and the evidence of a judge prompt; None when it has no `# Rows` section.

    The last such section counts: what a policy wrote stands before it. Raises QuestionError when it is no JSON list of
    rows with `id`, `description` and, where it is graded, two or more `level_choices`.
    """
    text = f"\n{prompt}"
    start = text.rfind("\n# Rows\n")
    if start < 0:
        return None
    found = _ROWS.match(text, start)
    if not found:
        raise QuestionError("the `# Rows` section has no ```json block")
    try:
        rows = json.loads(found.group(1))
    except ValueError as error:
        raise QuestionError(f"the `# Rows` block is not JSON: {error}") from None
    if not isinstance(rows, list) or not rows:
        raise QuestionError("the `# Rows` block must be a non-empty JSON list")
    for n, row in enumerate(rows, 1):
        if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("id", "description")):
            raise QuestionError(f"row {n} of the `# Rows` block must be an object with texts `id` and `description`")
        if "level_choices" in row and not _levels(row["level_choices"]):
            raise QuestionError(
                f"row {n} of the `# Rows` block: `level_choices` must be two or more numbers from 0 to 1"
            )
    return Question(tuple(rows), _evidence_section(text[:start]))


@lru_cache(maxsize=16)
def read_evidence(section: str) -> Evidence:
    """The fenced blocks of an evidence section as passages.

    Only the fence whose closing line comes last counts, which is the prompt's own: one that a policy wrote into its
    files stands inside it. A line that begins with an address in brackets begins a passage; a block without any is cut
    at its blank lines. Files are named by the list that stands outside the fences, and by the fences.
    """
    passages: list[Passage] = []
    listed: list[str] = []
    fenced: list[str] = []
    end = 0
    for block in _fenced(section):
        listed += _LISTED.findall(section[end : block.start()])
        end = block.end()
        name = block.group(1).strip()
        fenced.append(name)
        passages += (Passage(name, f"{name}#{address}", text) for address, text in _pieces(block.group(2)))
    listed += _LISTED.findall(section[end:])
    names = dict.fromkeys([*map(json.loads, listed), *fenced])
    return Evidence(tuple(passages), tuple(name for name in names if name not in _NO_FILES))


def _levels(choices: Any) -> bool:
    numbers = isinstance(choices, list) and all(isinstance(n, int | float) and 0 <= n <= 1 for n in choices)
    return numbers and len(set(choices)) > 1


def _fenced(text: str) -> list[re.Match[str]]:
    closings = _CLOSING.findall(text)
    if not closings:
        return []
    marker = re.escape(closings[-1])
    return list(re.finditer(rf"^<<<DATA {marker} ([^\n]*)\n(.*?)^DATA {marker}>>>$", text, re.MULTILINE | re.DOTALL))


def _evidence_section(prompt: str) -> str:
    fences = [block.span() for block in _fenced(prompt)]
    outside = (h.end() for h in _EVIDENCE.finditer(prompt) if not any(a <= h.start() < b for a, b in fences))
    return prompt[max(outside, default=0) :]


def _pieces(body: str) -> Iterator[tuple[str, str]]:
    labels = list(_ADDRESS.finditer(body))
    for label, following in zip_longest(labels, labels[1:]):
        text = body[label.end() : following.start() if following else len(body)].strip()
        if text:
            yield label.group(1), text
    if not labels:
        texts = (part.strip() for part in _BLANK_LINES.split(body))
        yield from ((f"¶{n}", text) for n, text in enumerate(filter(None, texts), 1))
