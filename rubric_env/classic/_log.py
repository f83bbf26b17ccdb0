"""Figures of a scored group for wandb, trackio or any `log(figures, step)`."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from math import fsum
from pkgutil import resolve_name
from typing import Any

from rubric_env._loops import PerLoop
from rubric_env.scoring import Outcome, TagScore

Log = Callable[[dict[str, float], int], Any]

_steps = count()
_turn = PerLoop(asyncio.Lock)


def find_log(log: Log | str | None) -> Log | None:
    """`log` itself, or what "module:function" names, for arguments that are JSON. Raises ValueError."""
    if not isinstance(log, str):
        found: Any = log
    elif ":" not in log:
        raise ValueError(f'log = {log!r}: "module:function" is expected')
    else:
        try:
            found = resolve_name(log)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"log = {log!r}: {error}") from None
    if found is not None and not callable(found):
        raise ValueError(f"log = {log!r}: a function of (figures, step) is expected")
    return found  # type: ignore[no-any-return]


async def write_log(log: Log, figures: dict[str, float]) -> None:
    """Call `log` in a thread, since some are slow now and then, and one after the other under steps that rise for all
    rubrics of the process: wandb drops what comes under a lower step than before."""
    async with _turn.here():
        await asyncio.to_thread(log, figures, next(_steps))


def group_figures(outcomes: Sequence[Outcome], prefix: str) -> dict[str, float]:
    """What is worth a curve, all finite: means over the rollouts of every numeric field; over the scored ones the mean
    reward, and by tag, type and necessity of the rows the weight earned of that possible; rows lost by kind of fault.

    A share is there only where rows with a positive weight name its tag.
    """
    figures = {"rollouts": float(len(outcomes))}
    rows = [outcome.metrics() for outcome in outcomes]
    for field in rows[0] if rows else ():
        figures[field] = fsum(row[field] for row in rows) / len(rows)
    if rewards := [outcome.reward for outcome in outcomes if outcome.reward is not None]:
        figures["reward"] = fsum(rewards) / len(rewards)
    cards = [outcome.card for outcome in outcomes if outcome.scored and outcome.card]
    for kind in ("tag", "type", "necessity"):
        for value, share in _shares(getattr(card, f"by_{kind}") for card in cards).items():
            figures[f"{kind}/{value}"] = share
    judgements = [outcome.judgement for outcome in outcomes if outcome.judgement]
    lost = Counter(fault.kind for judgement in judgements for fault in judgement.faults.values())
    for fault, number in lost.items():
        figures[f"fault/{fault}"] = float(number)
    return {f"{prefix}/{name}": value for name, value in figures.items()}


def _shares(parts: Iterable[Mapping[str, TagScore]]) -> dict[str, float]:
    earned: defaultdict[str, float] = defaultdict(float)
    possible: defaultdict[str, float] = defaultdict(float)
    for scores in parts:
        for value, score in scores.items():
            earned[value] += score.earned
            possible[value] += score.possible
    return {value: earned[value] / weight for value, weight in possible.items() if value and weight > 0}
