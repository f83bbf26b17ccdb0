"""Verdicts to a scorecard (SPEC 3). Pure, and exact up to one rounding of each sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum
from operator import attrgetter
from typing import Any, Literal

from rubric_env.rubric import Criterion, RubricSpec
from rubric_env.scoring._levels import snap_level

Gate = Literal["open", "closed", "unknown"]


@dataclass(frozen=True, slots=True)
class RowScore:
    """One row's part of `earned`. `hit` is None when unjudged, `level` on all but judged graded rows; `gate` is unknown
    where it hangs on an unjudged row and on no missed one."""

    id: str
    judged: bool
    hit: bool | None
    level: float | None
    contribution: float
    gate: Gate
    tag: str


@dataclass(frozen=True, slots=True)
class TagScore:
    """Weight that the rows of one tag (type, necessity) earned, and the positive weight they hold."""

    earned: float
    possible: float


@dataclass(frozen=True, slots=True)
class Scorecard:
    """`score` in [0, 1], None with an `error`; `score_lo` and `score_hi` bound what it could be with all rows judged.

    `earned` and `possible` are E and W in units of weight, before clamp and hurdles; the contributions in `rows` add up
    to `earned`, and so do the earned weights in `by_tag`, and those by `criterion_type` and `criterion_necessity`.
    `coverage` is judged ÷ rows. `levels`: judged graded rows.
    """

    score: float | None
    fatal: bool
    coverage: float
    possible: float
    earned: float
    levels: dict[str, float]
    score_lo: float | None
    score_hi: float | None
    error: str
    rows: tuple[RowScore, ...]
    by_tag: dict[str, TagScore]
    by_type: dict[str, TagScore]
    by_necessity: dict[str, TagScore]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A verdict as the formula sees it: `value` is lvl_i of a positive row, hit_i as 0 or 1 of any other."""

    hit: bool
    value: float


@dataclass(frozen=True, slots=True)
class _Assumption:
    """What stands in for unjudged rows: the value of a positive, that of a negative or hurdle, the gate they hold."""

    positive: float
    negative: float
    gate: bool


_AS_SCORED = _Assumption(positive=0.0, negative=0.0, gate=False)
_LOWEST = _Assumption(positive=0.0, negative=1.0, gate=False)
_HIGHEST = _Assumption(positive=1.0, negative=0.0, gate=True)

_NOTHING_TO_SCORE = "scorer_error: no row has a positive weight (beside a hurdle, rows of weight 0 stay 0)"


def why_unscorable(spec: RubricSpec) -> str:
    """Why no verdicts whatever could give this rubric a score; "" where they can."""
    return "" if any(weight > 0 for weight in _weights(spec).values()) else _NOTHING_TO_SCORE


def score(spec: RubricSpec, verdicts: Mapping[str, Any]) -> Scorecard:
    """The scorecard of `{id: verdict}`; a verdict is a mapping or an object with `hit` and, on graded rows, `level`.

    A row without a verdict, or whose `hit` is None with no level, is unjudged. Raises ValueError for an id that is no
    row, a verdict that holds neither, a `hit` that is no bool, and on a graded row a level outside [0, 1].
    """
    if strange := [str(identity) for identity in verdicts if identity not in spec]:
        raise ValueError(f"verdicts on ids that {spec.source} does not have: {', '.join(strange)}")
    seen: dict[str, _Seen] = {}
    for row in spec:
        if row.id in verdicts and (verdict := _see(row, verdicts[row.id])):
            seen[row.id] = verdict
    weights = _weights(spec)
    possible = fsum(weight for weight in weights.values() if weight > 0)
    parts = _contributions(spec, weights, seen, _AS_SCORED)

    def bounded(unjudged: _Assumption) -> float | None:
        if not possible:
            return None
        if _fatal(spec, seen, unjudged):
            return 0.0
        return min(max(fsum(_contributions(spec, weights, seen, unjudged).values()) / possible, 0.0), 1.0)

    return Scorecard(
        score=bounded(_AS_SCORED),
        fatal=_fatal(spec, seen, _AS_SCORED),
        coverage=len(seen) / len(spec),
        possible=possible,
        earned=fsum(parts.values()),
        levels={row.id: seen[row.id].value for row in spec if row.graded and row.id in seen},
        score_lo=bounded(_LOWEST),
        score_hi=bounded(_HIGHEST),
        error=why_unscorable(spec),
        rows=tuple(_row_score(row, spec, seen, parts[row.id]) for row in spec),
        by_tag=_by(attrgetter("tag"), spec, weights, parts),
        by_type=_by(attrgetter("criterion_type"), spec, weights, parts),
        by_necessity=_by(attrgetter("criterion_necessity"), spec, weights, parts),
    )


def _see(row: Criterion, verdict: Any) -> _Seen | None:
    if isinstance(verdict, Mapping) and verdict.keys() & {"hit", "level"}:
        hit, level = verdict.get("hit"), verdict.get("level")
    elif hasattr(verdict, "hit") and hasattr(verdict, "level"):
        hit, level = verdict.hit, verdict.level
    else:
        raise ValueError(f"{row.id}: a verdict is an object with `hit` (and `level`), not {verdict!r}")
    if hit is not None and not isinstance(hit, bool):
        raise ValueError(f"{row.id}: hit {hit!r} is neither true nor false")
    if row.levels is not None and level is not None:
        try:
            level = snap_level(row.levels, level)
        except ValueError as error:
            raise ValueError(f"{row.id}: {error}") from None
        return _Seen(level > 0, level)
    if hit is None:
        return None
    return _Seen(hit, row.level_choices[-1] if hit and row.graded else float(hit))


def _weights(spec: RubricSpec) -> dict[str, float]:
    """Rows of weight 0 count as 1 where no row has a positive weight; not beside a hurdle, whose hit would then pay."""
    weights = {row.id: row.weight for row in spec}
    if any(weight > 0 for weight in weights.values()) or any(row.hurdle for row in spec):
        return weights
    return {identity: weight or 1.0 for identity, weight in weights.items()}


def _contributions(
    spec: RubricSpec, weights: Mapping[str, float], seen: Mapping[str, _Seen], unjudged: _Assumption
) -> dict[str, float]:
    parts: dict[str, float] = {}
    for row in spec:
        if row.hurdle:
            parts[row.id] = 0.0
        elif weights[row.id] < 0:
            found = seen[row.id].hit if row.id in seen else unjudged.negative > 0
            parts[row.id] = weights[row.id] if found else 0.0
        else:
            value = seen[row.id].value if row.id in seen else unjudged.positive
            gate = _gate(row, spec, seen)
            is_open = gate == "open" or (gate == "unknown" and unjudged.gate)
            parts[row.id] = weights[row.id] * value if is_open else 0.0
    return parts


def _fatal(spec: RubricSpec, seen: Mapping[str, _Seen], unjudged: _Assumption) -> bool:
    return any(seen[row.id].hit if row.id in seen else unjudged.negative > 0 for row in spec if row.hurdle)


def _gate(row: Criterion, spec: RubricSpec, seen: Mapping[str, _Seen]) -> Gate:
    """Rows of negative weight and hurdles have no gate. A dangling id is a missed row: it fails closed."""
    needed = () if row.polarity == "negative" else row.depends_on
    if any(target not in spec or (target in seen and not seen[target].hit) for target in needed):
        return "closed"
    return "open" if all(target in seen for target in needed) else "unknown"


def _row_score(row: Criterion, spec: RubricSpec, seen: Mapping[str, _Seen], contribution: float) -> RowScore:
    verdict = seen.get(row.id)
    return RowScore(
        id=row.id,
        judged=verdict is not None,
        hit=verdict.hit if verdict else None,
        level=verdict.value if verdict and row.graded else None,
        contribution=contribution,
        gate=_gate(row, spec, seen),
        tag=row.tag,
    )


def _by(
    key: Callable[[Criterion], str], spec: RubricSpec, weights: Mapping[str, float], parts: Mapping[str, float]
) -> dict[str, TagScore]:
    groups: dict[str, list[str]] = {}
    for row in spec:
        groups.setdefault(key(row), []).append(row.id)
    return {
        value: TagScore(fsum(parts[i] for i in ids), fsum(weights[i] for i in ids if weights[i] > 0))
        for value, ids in groups.items()
    }
