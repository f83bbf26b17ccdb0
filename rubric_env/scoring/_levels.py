"""Levels of graded rows."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any


def snap_level(levels: Iterable[float], value: Any) -> float:
    """The nearest of `levels` (a table or its keys); a tie goes to the lower. Compared as decimals: 0.8 is midway
    between 0.6 and 1.0, though no three floats are.

    Raises ValueError for what is no number from 0 to 1: 75 or 7 is a slip of scale, not a level.
    """
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= (number := float(value)) <= 1:
        raise ValueError(f"level {value!r} is not a number from 0 to 1")
    wanted = _decimal(number)
    return min(levels, key=lambda level: (abs(_decimal(level) - wanted), level))


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))
