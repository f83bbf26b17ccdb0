"""What a judge said of one rollout: a verdict or a fault for every row, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rubric_env.scoring.faults import Fault


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """A verdict that the engine accepted.

    `level` is the legal level of a graded row, `level_raw` what the judge wrote; both None on binary rows.
    `level_fallback` marks a level that stands although the judge left it out or contradicted it to the last try.
    `spelled` is the key and word that carried the verdict ("hit:true"), `recovered_by` the parser's level.
    """

    hit: bool
    level: float | None = None
    level_raw: float | None = None
    level_fallback: bool = False
    reason: str = ""
    evidence: str = ""
    evidence_unresolved: bool = False
    spelled: str = ""
    recovered_by: str = ""
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over calls. Tokens as the endpoint counts them; `cost_usd` is None as soon as one price is unknown."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """Every row is in exactly one of `verdicts` and `faults`.

    `tries` counts the calls that asked for a row, `reused` the rows that the journal answered.
    """

    verdicts: Mapping[str, RowVerdict]
    faults: Mapping[str, Fault]
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    tries: Mapping[str, int] = field(default_factory=dict)
    reused: int = 0
