"""A judged rollout to its reward, or to the reason why it must not be used (SPEC 3 "Scored or not", 7)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from rubric_env.rubric import RubricSpec
from rubric_env.scoring._score import Scorecard, score
from rubric_env.scoring.faults import EXIT_CODES, SUBMISSION_FAULTS, ExitCode, Fault, FaultKind, prevailing
from rubric_env.scoring.judgement import Judgement
from rubric_env.settings import JudgeSettings

TOLERANCE = 1e-9
"""Rounding that a comparison of scores forgives: 0.8 − 0.7 is not more than 0.1, and 0.3 + 0.3 of 0.8 is 0.75."""

IDS_SHOWN = 8
"""Ids that `exit_reason` lists for one kind of fault."""


@dataclass(frozen=True, slots=True)
class OutcomeContext:
    """What is known of a rollout beside its verdicts. `delivery` has `files`, `missing`, `from_chat`, `stray`.

    `evidence_level` is how much of the evidence was shown: `pages`, `structure` (no pictures) or `cut` (by us).
    `limiter_fallback`: the shared limiter could not be reached, so that this process paced its calls alone.
    """

    evidence_pages: int = 0
    injection_suspected: bool = False
    delivery: Mapping[str, Any] = field(default_factory=dict)
    evidence_cut: int = 0
    evidence_level: str = ""
    limiter_fallback: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of one rollout.

    `reward` in [0, 1] is None when unscored; then `status` is error and `exit_code` that of the prevailing fault.
    `exit_reason` is one line, "" where nothing is to be said. `fields` are those of SPEC 7, every one on every outcome
    (docs/scoring.md lists them with their units).
    """

    status: Literal["success", "error"]
    scored: bool
    reward: float | None
    card: Scorecard | None
    judgement: Judgement | None
    exit_code: ExitCode | None
    exit_reason: str
    fields: Mapping[str, Any]
    delivery: Mapping[str, Any] = field(default_factory=dict)

    def metrics(self) -> dict[str, float]:
        """The numeric fields as finite floats, always under the same keys; flags are 0.0 or 1.0."""
        return {name: float(value) for name, value in self.fields.items() if not isinstance(value, str)}


def settle(
    spec: RubricSpec,
    judgement: Judgement,
    settings: JudgeSettings,
    context: OutcomeContext = OutcomeContext(),
) -> Outcome:
    """The outcome of a judging that came to its end. Raises ValueError when a row is in none or both of its halves."""
    _check_halves(spec, judgement)
    card = score(spec, judgement.verdicts)
    kind = FaultKind.SCORER_ERROR if card.error else prevailing(fault.kind for fault in judgement.faults.values())
    reason = _why_unscored(card, judgement, settings)
    passed = not reason and card.score is not None and _passes(card.score, settings)
    fields = _fields(
        context,
        scored=not reason,
        coverage=card.coverage,
        faults=[fault.kind for fault in judgement.faults.values()],
        kind=kind,
        bounds=(card.score_lo, card.score_hi),
        passed=passed,
        judgement=judgement,
    )
    lost = _faults_line(judgement)
    if reason:
        code = EXIT_CODES[kind or FaultKind.INTERNAL]
        line = f"{reason}; {lost}" if lost else reason
        return Outcome("error", False, None, card, judgement, code, line, fields, context.delivery)
    reward = card.score
    if settings.reward_mode == "binary":
        _warn_of_binary_rewards()
        reward = float(passed)
    return Outcome("success", True, reward, card, judgement, None, lost, fields, context.delivery)


def not_delivered(spec: RubricSpec, settings: JudgeSettings, context: OutcomeContext) -> Outcome:
    """Nothing to judge: reward 0, no call, counted as fully judged so that no filter removes it (SPEC 6)."""
    chat_counts = settings.chat_fallback or settings.lenient_delivery
    reason = (
        "nothing delivered: no file and no reply"
        if chat_counts
        else "nothing delivered: no file, and a reply alone does not count (JUDGE_CHAT_FALLBACK is off)"
    )
    delivery = {**context.delivery, "missing": True}
    fields = _fields(
        replace(context, delivery=delivery),
        scored=True,
        coverage=1.0,
        faults=(),
        kind=None,
        bounds=(0.0, 0.0),
        passed=False,
    )
    card = score(spec, {row.id: {"hit": False} for row in spec})
    return Outcome("success", True, 0.0, card, None, None, reason, fields, delivery)


def unscored(
    kind: FaultKind,
    detail: str,
    rows: int = 0,
    context: OutcomeContext = OutcomeContext(),
) -> Outcome:
    """A rollout that was lost before any call: no credential, no rubric, an unreadable root. `rows` as far as known."""
    reason = str(Fault(kind, " ".join(detail.split())))
    fields = _fields(
        context, scored=False, coverage=0.0, faults=[kind] * rows, kind=kind, bounds=(None, None), passed=False
    )
    return Outcome("error", False, None, None, None, EXIT_CODES[kind], reason, fields, context.delivery)


def final_reward(outcome: Outcome, settings: JudgeSettings) -> float | None:
    """The reward that is handed on, None without one: `on_unscored` may ask for a number all the same (SPEC 13)."""
    if outcome.scored:
        return outcome.reward
    if settings.on_unscored == "zero":
        return 0.0
    if settings.on_unscored == "last" and outcome.card is not None and outcome.card.coverage > 0:
        # A binary reward is 1.0 only where the judging succeeded (SPEC 3).
        return 0.0 if settings.reward_mode == "binary" else outcome.card.score
    return None


def _check_halves(spec: RubricSpec, judgement: Judgement) -> None:
    verdicts, faults = judgement.verdicts.keys(), judgement.faults.keys()
    if wrong := (set(spec.ids) ^ (verdicts | faults)) | (verdicts & faults):
        raise ValueError(f"each row must be in one of verdicts and faults: {', '.join(sorted(wrong))}")


def _why_unscored(card: Scorecard, judgement: Judgement, settings: JudgeSettings) -> str:
    """Why the score must not be used, or ""."""
    if card.score is None or card.score_lo is None or card.score_hi is None:
        return card.error
    lost, rows = len(judgement.faults), len(card.rows)
    if lost == rows:
        return "nothing was judged"
    if lost > Fraction(str(settings.systemic_fraction)) * rows and lost >= settings.systemic_min:
        return f"more than {settings.systemic_fraction:.0%} of the rows have no verdict"
    width, limit = card.score_hi - card.score_lo, settings.max_uncertainty
    between = f"the score lies between {card.score_lo:.3f} and {card.score_hi:.3f}"
    if limit is not None and width > limit + TOLERANCE:
        return f"{between}, which is wider than {limit:g}"
    if settings.reward_mode == "binary" and _passes(card.score_lo, settings) != _passes(card.score_hi, settings):
        return f"{between}, on both sides of the threshold {settings.pass_threshold:g}"
    return ""


def _passes(value: float, settings: JudgeSettings) -> bool:
    if settings.pass_compare == "gt":
        return value > settings.pass_threshold + TOLERANCE
    return value >= settings.pass_threshold - TOLERANCE


def _faults_line(judgement: Judgement) -> str:
    """Which rows have no verdict and why, as one line; "" where all have one."""
    faults = dict(judgement.faults)
    total, parts = len(faults), []
    while kind := prevailing(fault.kind for fault in faults.values()):
        ids = [identity for identity, fault in faults.items() if fault.kind is kind]
        more = f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else ""
        detail = next((faults[identity].detail for identity in ids if faults[identity].detail), "")
        part = f"{kind} ({', '.join(ids[:IDS_SHOWN])}{more}{': ' if detail else ''}{' '.join(detail.split())})"
        parts.append(part)
        faults = {identity: fault for identity, fault in faults.items() if fault.kind is not kind}
    rows = total + len(judgement.verdicts)
    return f"{total} of {rows} rows unjudged: {'; '.join(parts)}" if parts else ""


def _fields(
    context: OutcomeContext,
    *,
    scored: bool,
    coverage: float,
    faults: Sequence[FaultKind],
    kind: FaultKind | None,
    bounds: tuple[float | None, float | None],
    passed: bool,
    judgement: Judgement | None = None,
) -> dict[str, Any]:
    judgement = judgement or Judgement({}, {})
    usage, (lo, hi) = judgement.usage, bounds
    verdicts = judgement.verdicts.values()
    return {
        "judge_scored": scored,
        "judge_coverage": coverage,
        "judge_unjudged": len(faults),
        "judge_degraded": len(faults) > 0,
        "judge_error_kind": str(kind or ""),
        "judge_fault_count": len(faults),
        "judge_fault_submission": sum(fault in SUBMISSION_FAULTS for fault in faults),
        "judge_seconds": judgement.seconds,
        "judge_evidence_pages": context.evidence_pages,
        "judge_evidence_cut": context.evidence_cut,
        "judge_evidence_level": context.evidence_level,
        "judge_called": usage.calls > 0,
        "judge_score_lo": 0.0 if lo is None else lo,
        "judge_score_hi": 1.0 if hi is None else hi,
        "judge_level_fallback": sum(verdict.level_fallback for verdict in verdicts),
        "judge_evidence_unresolved": sum(verdict.evidence_unresolved for verdict in verdicts),
        "injection_suspected": context.injection_suspected,
        "delivery_missing": bool(context.delivery.get("missing", False)),
        "delivery_from_chat": bool(context.delivery.get("from_chat", False)),
        "passed": passed,
        "judge_calls": usage.calls,
        "judge_reused": judgement.reused,
        "judge_limiter_fallback": context.limiter_fallback,
        "judge_input_tokens": usage.input_tokens,
        "judge_cached_tokens": usage.cached_tokens,
        "judge_output_tokens": usage.output_tokens,
        "judge_cost_usd": usage.cost_usd or 0.0,
        "judge_cost_known": usage.cost_usd is not None,
    }


@cache
def _warn_of_binary_rewards() -> None:
    warnings.warn(
        "binary rewards: rollouts on one side of the threshold get the same reward, however far apart their scores are",
        stacklevel=3,
    )
