"""One row of a rubric, and what a judge is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rubric_env.rubric._hit_means import hit_means

TEXT_KEYS = ("description", "criterion", "criteria", "text", "requirement", "title")
"""Where a row keeps its text, in this order."""

_SCORERS = {"weight", "points", "hurdle", "depends_on", "levels", "scores"}
_DERIVED = {"id", "description", "polarity", "hit_means", "level_choices"}
_LABELS = {"hit", "level"}
"""A verdict that a labelled rubric carries: a judge that sees it copies it."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One row. `levels` maps fractions, ascending, to texts (None: not graded); `raw` is the row as it came."""

    id: str
    description: str
    weight: float = 0.0
    hurdle: bool = False
    depends_on: tuple[str, ...] = ()
    levels: Mapping[float, str] | None = None
    checkpoints: tuple[Mapping[str, Any], ...] = ()
    tag: str = ""
    criterion_type: str = ""
    criterion_necessity: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def graded(self) -> bool:
        return self.levels is not None

    @property
    def polarity(self) -> Literal["positive", "negative"]:
        """`negative`: a hit counts against the submission (negative weight, or a hurdle)."""
        return "negative" if self.hurdle or self.weight < 0 else "positive"

    @property
    def level_choices(self) -> tuple[float, ...]:
        """The legal levels, ascending; empty on binary rows."""
        return tuple(self.levels or ())

    @property
    def hit_means(self) -> str:
        """One sentence: what `hit=true` says about a submission on this row."""
        return hit_means(self.description, hurdle=self.hurdle, negative=self.weight < 0, graded=self.graded)


def level_key(level: float) -> str:
    """A level as a key of JSON: "0", "0.25", "1"."""
    return str(int(level)) if level == int(level) else repr(level)


def judge_row(criterion: Criterion) -> dict[str, Any]:
    """What a judge is told of one row (SPEC 4): its own fields, less what is the scorer's, plus the derived ones."""
    shown: dict[str, Any] = {"id": criterion.id, "description": criterion.description}
    for key, value in criterion.raw.items():
        hidden = key in _SCORERS | _DERIVED | _LABELS or (key, value) == ("type", "gradient")
        alias = key in TEXT_KEYS and value == criterion.description
        if value is not None and not hidden and not alias:
            shown[key] = value
    shown |= {"polarity": criterion.polarity, "hit_means": criterion.hit_means}
    if criterion.levels is not None:
        shown["levels"] = {level_key(level): text for level, text in criterion.levels.items()}
        shown["level_choices"] = list(criterion.level_choices)
    return shown
