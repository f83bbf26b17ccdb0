"""From a judge's text to what the engine accepts of it. A row that is not certain is asked again (SPEC 3, 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verdict_parsers import Verdict, parse_verdicts

from rubric_env.evidence import EvidencePack
from rubric_env.judges.protocol import Reply
from rubric_env.scoring import snap_level
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import RowVerdict

if TYPE_CHECKING:
    from rubric_env.rubric import Criterion

EXCERPT = 80


@dataclass(frozen=True, slots=True)
class Doubt:
    """A row to be asked again; `fault` stands if no try settles it, unless `stands` is a verdict to fall back on."""

    fault: Fault
    stands: RowVerdict | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Every row that was asked is in exactly one of the three. `failed` rows are not asked again."""

    accepted: Mapping[str, RowVerdict]
    doubts: Mapping[str, Doubt]
    failed: Mapping[str, Fault]


def read_reply(reply: Reply, rows: Sequence[Criterion], pack: EvidencePack) -> Reading:
    """Parse the text for these rows and apply the engine's rules to every verdict."""
    parsed = parse_verdicts(
        reply.text, [row.id for row in rows], {row.id: row.description for row in rows}, reply.marker
    )
    accepted: dict[str, RowVerdict] = {}
    doubts: dict[str, Doubt] = {}
    failed: dict[str, Fault] = {}
    nothing = not parsed.verdicts and not parsed.abstained
    for row in rows:
        if verdict := parsed.verdicts.get(row.id):
            ruling = rule(row, verdict, pack)
            if isinstance(ruling, Doubt):
                doubts[row.id] = ruling
            else:
                accepted[row.id] = ruling
        elif row.id in parsed.abstained and pack.ours:
            failed[row.id] = Fault(FaultKind.CANNOT_ASSESS, _why_null(parsed.abstained[row.id]))
        else:
            doubts[row.id] = Doubt(_unjudged(parsed.unjudged[row.id], reply, nothing))
    return Reading(accepted, doubts, failed)


def rule(row: Criterion, verdict: Verdict, pack: EvidencePack) -> RowVerdict | Doubt:
    """Accept one parsed verdict, or say why the row has to be asked again."""
    if row.graded:
        return _rule_graded(row, verdict, pack)
    if verdict.hit is None:
        return Doubt(Fault(FaultKind.UNPARSEABLE, f"a level without `hit` on a binary row ({verdict.spelled})"))
    if row.polarity == "negative" and not (verdict.boolean and verdict.spelled.startswith("hit:")):
        detail = f"{verdict.spelled!r} is ambiguous on a negative row: only `hit` with true or false is accepted there"
        return Doubt(Fault(FaultKind.UNPARSEABLE, detail))
    return _verdict(verdict, pack, verdict.hit)


def _rule_graded(row: Criterion, verdict: Verdict, pack: EvidencePack) -> RowVerdict | Doubt:
    """A level that is present is authoritative; one that is missing or contradicts its hit is a last resort."""
    assert row.levels is not None
    if verdict.level is None:
        assert verdict.hit is not None
        level = max(row.levels) if verdict.hit else 0.0
        fallback = _verdict(verdict, pack, verdict.hit, level, fallback=True)
        return Doubt(Fault(FaultKind.UNPARSEABLE, "a graded row came without a level"), fallback)
    if not 0 <= verdict.level <= 1:
        return Doubt(Fault(FaultKind.UNPARSEABLE, f"level {verdict.level:g} is outside 0 to 1, probably another scale"))
    level = snap_level(row.levels, verdict.level)
    if verdict.hit is not None and verdict.hit != (level > 0):
        detail = f"level {verdict.level:g} contradicts hit={str(verdict.hit).lower()}"
        return Doubt(Fault(FaultKind.UNPARSEABLE, detail), _verdict(verdict, pack, level > 0, level, fallback=True))
    return _verdict(verdict, pack, level > 0, level)


def _verdict(
    verdict: Verdict, pack: EvidencePack, hit: bool, level: float | None = None, *, fallback: bool = False
) -> RowVerdict:
    return RowVerdict(
        hit=hit,
        level=level,
        level_raw=verdict.level if level is not None else None,
        level_fallback=fallback,
        reason=verdict.reason,
        evidence=verdict.evidence,
        evidence_unresolved=not pack.resolves(verdict.evidence),
        spelled=verdict.spelled,
        recovered_by=verdict.recovered_by,
    )


def _why_null(verdict: Verdict) -> str:
    return f"the judge could not assess the row: {_excerpt(verdict.reason) or 'no reason given'}"


def _unjudged(why: str, reply: Reply, nothing: bool) -> Fault:
    if reply.cut is not None:
        return reply.cut
    if reply.truncated or why == "truncated":
        return Fault(
            FaultKind.TRUNCATED, "the answer was cut before the row: unset JUDGE_MAX_TOKENS or lower JUDGE_BATCH"
        )
    if why == "missing" and not nothing:
        return Fault(FaultKind.MISSING_ROW, "the answer left the row out")
    if why == "null":
        return Fault(FaultKind.UNPARSEABLE, "hit is null although nothing of the evidence was cut by us")
    return Fault(FaultKind.UNPARSEABLE, f"no certain verdict in the answer ({why}): {_excerpt(reply.text)!r}")


def _excerpt(text: str) -> str:
    line = " ".join(text[: 4 * EXCERPT].split())
    return line if len(line) <= EXCERPT else f"{line[: EXCERPT - 1]}…"
