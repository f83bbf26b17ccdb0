"""Judge calls for people: a line a call (`--verbose`), and what all of them came to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rubric_env.cli._common import console, say

LEAST_NAME = 12
"""Columns that rollout and rows have in any terminal; in a wide one a third of it."""
LEAST_DETAIL = 20
"""Columns below which an endpoint's words are left out rather than cut."""


def show_call(call: Mapping[str, Any], detail: str = "") -> None:
    """One line on stderr for an event (`CallEvent.as_dict`); `detail` is what the endpoint said of a fault."""
    width = console().width if console().is_terminal else None
    say(call_line(call, detail, width), style="yellow" if call["fault"] else None)


def call_line(call: Mapping[str, Any], detail: str = "", width: int | None = None) -> str:
    """The figures that `width` columns have room for, the most telling first; without a width all of them."""
    from rich.cells import cell_len, set_cell_size

    line = _one_line(f"{call['rollout']} {_rows(call['rows'])}")
    figures = list(_figures(call))
    detail = _one_line(detail)
    if width is None:
        return "  ".join([line, *figures, *([detail] if detail else [])])
    room = max(LEAST_NAME, width // 3, width - sum(2 + len(figure) for figure in figures))
    if cell_len(line) > room:
        line = f"{set_cell_size(line, room - 1).rstrip()}…"
    for figure in figures:
        if cell_len(line) + 2 + len(figure) > width:
            return line
        line += f"  {figure}"
    left = width - cell_len(line) - 2
    if detail and left >= min(LEAST_DETAIL, cell_len(detail)):
        line += f"  {detail}" if cell_len(detail) <= left else f"  {set_cell_size(detail, left - 1).rstrip()}…"
    return line


def total_line(fields: Mapping[str, Any], seconds: float) -> str:
    """What a judging came to, from the fields of its outcome."""
    calls = fields["judge_calls"]
    cost = f"${fields['judge_cost_usd']:.4f}" if fields["judge_cost_known"] else "price unknown"
    sent = _input(fields["judge_input_tokens"], fields["judge_cached_tokens"])
    return (
        f"{calls} {'call' if calls == 1 else 'calls'}, tokens: {sent}, {fields['judge_output_tokens']:,} out; "
        f"{cost}; {seconds:.1f} s"
    )


class Tail:
    """The events that processes append to a file from now on, as they come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = path.stat().st_size if path.exists() else 0

    def new(self) -> Iterator[Mapping[str, Any]]:
        """Those since the last call. A line that is not whole yet comes next time, one that was cut off never."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            lines = file.read()
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):
                yield json.loads(line)


def _figures(call: Mapping[str, Any]) -> Iterator[str]:
    if call["fault"]:
        yield call["fault"]
    yield f"{call['seconds']:.1f} s"
    yield f"waited {call['wait']:.1f} s"
    if call["input_tokens"] or not call["fault"]:
        yield _input(call["input_tokens"], call["cached_tokens"])
        yield f"{call['output_tokens']:,} out"
    if call["attempt"] > 1:
        yield f"try {call['attempt']}"
    if call["mode"]:
        yield call["mode"]


def _input(tokens: int, cached: int) -> str:
    return f"{tokens:,} in ({cached / tokens:.0%} cached)" if tokens else "0 in"


def _rows(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]}…{ids[-1]}" if ids else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
