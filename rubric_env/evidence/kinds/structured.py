"""JSON by values and JSON lines by lines, as they were written: `12.50` stays so, a key given twice shows twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rubric_env.evidence._decode import load
from rubric_env.evidence._extract import Extract, Kind, Limits, Unit
from rubric_env.evidence.kinds.text import lines

UNIT = 600
"""Characters up to which a value is one unit; a longer object or array is shown by its members."""

SCALARS = 200
"""Characters of neighbouring numbers and texts of an array that are shown as one unit (`$.a[0..9]`)."""

MAX_DEPTH = 8
"""Levels that are taken apart: each costs another pass over the text."""

_SPACE = re.compile(r"[ \t\n]*")
_LINE_BREAK = re.compile(r"\n[ \t\n]*")
_PLAIN_KEY = re.compile(r'"([^\W\d][\w-]{0,60})"')
# Only the places of values are wanted: `bool` makes no object of a number, and takes an integer of 5,000 digits.
_DECODER = json.JSONDecoder(parse_float=bool, parse_int=bool, parse_constant=bool)


@dataclass(slots=True)
class _Oddities:
    """What `json` lets pass and a strict reader would not."""

    found: dict[str, None] = field(default_factory=dict)

    def members(self, pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            self.found["an object gives the same key twice"] = None

    def constant(self, name: str) -> None:
        self.found[f"{name} is not JSON"] = None


@dataclass(slots=True)
class _Records:
    """Counted while the lines pass."""

    total: int = 0
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        broken = f"; {len(self.broken):,} do not parse as JSON (first: {self.broken[0]})" if self.broken else ""
        return f"{self.total:,} records{broken}"


def read(path: Path, limits: Limits) -> Extract:
    """The values. A file that does not parse, or was not read to its end, is shown as lines, and the note says why."""
    loaded = load(path, limits)
    odd = _Oddities()
    try:
        if loaded.cut:
            raise ValueError("its end was not read")
        json.loads(
            loaded.text, object_pairs_hook=odd.members, parse_float=bool, parse_int=bool, parse_constant=odd.constant
        )
    except (ValueError, RecursionError) as error:
        notes = (*loaded.notes, f"does not parse as JSON ({error}): shown as lines")
        return Extract.of(lines(loaded.text), limits, notes=notes, cut=loaded.cut)
    start = _skip_space(loaded.text, 0)
    units = _values(loaded.text, "$", start, len(loaded.text.rstrip()), MAX_DEPTH)
    return Extract.of(units, limits, notes=(*loaded.notes, *odd.found))


def read_lines(path: Path, limits: Limits) -> Extract:
    """One record a line, whether it parses or not."""
    loaded = load(path, limits)
    records = _Records()
    units = _checked(loaded.text, records)
    return Extract.of(units, limits, notes=(*loaded.notes, records), cut=loaded.cut)


def _checked(text: str, records: _Records) -> Iterator[Unit]:
    for unit in lines(text):
        records.total += 1
        try:
            _DECODER.decode(unit.text)
        except (ValueError, RecursionError):
            records.broken.append(unit.label)
        yield unit


def _values(text: str, path: str, start: int, end: int, depth: int) -> Iterator[Unit]:
    if end - start <= UNIT or not depth or text[start] not in "{[":
        yield _unit(text, path, start, end)
    elif text[start] == "{":
        for key, first, last in _members(text, start):
            plain = _PLAIN_KEY.fullmatch(key)
            step = f".{plain[1]}" if plain else f"[{key if len(key) <= 62 else f'{key[:60]}…'}]"
            yield from _values(text, path + step, first, last, depth - 1)
    else:
        yield from _elements(text, path, start, depth)


def _elements(text: str, path: str, start: int, depth: int) -> Iterator[Unit]:
    run: tuple[int, int, int, int] | None = None  # first and last index, start and end of neighbouring scalars
    for index, (first, last) in enumerate(_array(text, start)):
        scalar = text[first] not in "{["
        if run and (not scalar or last - run[2] > SCALARS):
            yield _run(text, path, run)
            run = None
        if scalar:
            run = (run[0] if run else index, index, run[2] if run else first, last)
        else:
            yield from _values(text, f"{path}[{index}]", first, last, depth - 1)
    if run:
        yield _run(text, path, run)


def _run(text: str, path: str, run: tuple[int, int, int, int]) -> Unit:
    first, last, start, end = run
    return _unit(text, f"{path}[{first}]" if first == last else f"{path}[{first}..{last}]", start, end)


def _unit(text: str, path: str, start: int, end: int) -> Unit:
    # A string of valid JSON holds no line break, so each one stands between tokens.
    return Unit(path, _LINE_BREAK.sub(" ", text[start:end]))


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    at = _skip_space(text, start + 1)
    while text[at] != "}":
        key_end = _DECODER.raw_decode(text, at)[1]
        first = _skip_space(text, _skip_space(text, key_end) + 1)
        last = _DECODER.raw_decode(text, first)[1]
        yield text[at:key_end], first, last
        at = _skip_comma(text, last)


def _array(text: str, start: int) -> Iterator[tuple[int, int]]:
    at = _skip_space(text, start + 1)
    while text[at] != "]":
        last = _DECODER.raw_decode(text, at)[1]
        yield at, last
        at = _skip_comma(text, last)


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _skip_comma(text: str, at: int) -> int:
    at = _skip_space(text, at)
    return _skip_space(text, at + 1) if text[at] == "," else at


KINDS = (Kind("json", (".json", ".geojson"), read), Kind("jsonl", (".jsonl", ".ndjson"), read_lines))
