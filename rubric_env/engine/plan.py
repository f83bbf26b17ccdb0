"""Rows to blocks."""

from __future__ import annotations

from collections.abc import Sequence


def plan(ids: Sequence[str], batch: int) -> list[tuple[str, ...]]:
    """Blocks of at most `batch` rows, in the rubric's order."""
    return [tuple(ids[start : start + batch]) for start in range(0, len(ids), batch)]
