"""The offline judge: words and numbers compared by the rule of docs/local-judge.md. It understands nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from rubric_env.local.claims import DENIAL, Claim, claim_of, examples_of, parts_of
from rubric_env.local.passages import Question, read_evidence
from rubric_env.local.pieces import Piece, pieces_of, windows
from rubric_env.local.wording import about_delivery, hit_by_delivery, wanted
from rubric_env.scoring import snap_level

WIRING_NOTICE = (
    "The local judge is a wiring aid, not a judge: it compares words and numbers by a fixed rule and understands "
    "nothing. Its scores show that the pipeline runs, not how good an answer is."
)

COVERAGE = 0.6
"""Share of a row's weighted items that one window must hold for a hit …"""
COVERAGE_WITH_FIGURES = 0.4
"""… when the row has figures, dates or codes, all of which must be there too."""
COVERAGE_OF_VIOLATION = 0.75
"""The share for rows where a hit lowers the score, figures or not: a false zero is the worse mistake."""
WINDOW = 2
"""Neighbouring sentences that one window may hold …"""
SHORT = 3
"""… but a claim of so few items must be found in one sentence."""
QUOTE = 240
"""Characters quoted as evidence."""


@dataclass(frozen=True, slots=True)
class LexicalVerdict:
    """A verdict by rule. `level` on graded rows only; `evidence` is an address and a quote, or "none"."""

    hit: bool
    level: float | None
    reason: str
    evidence: str


def answer(question: Question) -> str:
    """One block's answer as the JSON object that the output contract asks for."""
    verdicts = []
    for row in question.rows:
        found = judge_row(row, question.evidence)
        verdict = {"id": row["id"], "reason": found.reason, "evidence": found.evidence, "hit": found.hit}
        verdicts.append(verdict if found.level is None else verdict | {"level": found.level})
    return json.dumps({"verdicts": verdicts}, ensure_ascii=False)


def judge_row(row: Mapping[str, Any], evidence: str) -> LexicalVerdict:
    """One row of a prompt's `# Rows` against the prompt's evidence section. Deterministic."""
    text = str(row["description"])
    violation = row.get("polarity") == "negative"
    if row.get("level_choices"):
        return _graded(text, row["level_choices"], evidence)
    if about_delivery(text):
        return _delivery(text, violation, evidence)
    asked, absence = wanted(text, violation)
    found = _violation(asked, evidence) if violation and not absence else _requirement(asked, evidence)
    if not absence:
        return LexicalVerdict(found.holds, None, found.reason, found.quote)
    reason = f"{found.reason}; the row is about its absence"
    return LexicalVerdict(not found.holds, None, reason, found.quote if found.holds else "none")


@dataclass(frozen=True, slots=True)
class _Found:
    """Whether a claim holds, why, and the passage that comes nearest to it."""

    holds: bool
    reason: str
    quote: str


def _requirement(text: str, evidence: str) -> _Found:
    """Found in one place or, where each part of the row names a figure, date or code, part by part."""
    claim, parts = claim_of(text), parts_of(text)
    found = _find(claim, claim.files, evidence, violation=False)
    if found.holds or len(parts) < 2 or not all(part.required for part in parts):
        return found
    each = [_find(part, claim.files, evidence, violation=False) for part in parts]
    if not all(part.holds for part in each):
        return found
    return _Found(True, f"each of the row's {len(parts)} parts found, in different places", each[0].quote)


def _violation(text: str, evidence: str) -> _Found:
    """The row's claim, or one of its examples."""
    claim = claim_of(text)
    tried = [_find(one, claim.files, evidence, violation=True) for one in (claim, *examples_of(text))]
    return next((found for found in tried if found.holds), tried[0])


def _find(claim: Claim, files: Sequence[str], evidence: str, violation: bool) -> _Found:
    """Whether one window of the named files, or of all, holds the claim."""
    pieces = _named(files, pieces_of(evidence))
    if not pieces:
        return _Found(False, f"nothing to look at: {', '.join(files) or 'no text'} was not delivered", "none")
    if not claim.items:
        return _Found(False, "the row has no word or number to look for", "none")
    best = _best(claim, pieces, exact=violation)
    needed = COVERAGE_OF_VIOLATION if violation else COVERAGE_WITH_FIGURES if claim.required else COVERAGE
    holds, why = not best.missing and best.coverage >= needed, ""
    if best.missing:
        why = f", {best.missing} of its figures, dates or codes missing"
    elif holds and claim.denies and not best.denies:
        holds, why = False, ", but the row denies something and the passage does not"
    elif holds and violation and best.denies and not claim.denies:
        holds, why = False, ", but the passage denies it"
    return _Found(holds, f"lexical match {best.coverage:.0%} (needs {needed:.0%}){why}", best.quote)


def _named(files: Sequence[str], pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The pieces of the named files; all of them when the names are not those of deliverables."""
    named = [piece for piece in pieces if files and piece.source.lower().endswith(tuple(files))]
    return named if named or any(name.startswith("output/") for name in files) else pieces


@dataclass(frozen=True, slots=True)
class _Window:
    """What fits a claim best: the share of the weight found there, the required items that it lacks, the best quote."""

    coverage: float
    missing: int
    denies: bool
    quote: str


def _best(claim: Claim, pieces: Sequence[Piece], exact: bool) -> _Window:
    """Fewest required items missing, then the highest coverage, then the shortest, then the first."""
    bits = [sum(1 << n for n, item in enumerate(claim.items) if item.found_in(piece.bag, exact)) for piece in pieces]
    total = sum(item.weight for item in claim.items)

    def fit(found: int) -> tuple[int, float]:
        there = [item for n, item in enumerate(claim.items) if found >> n & 1]
        missing = len(claim.required) - sum(item.required for item in there)
        return missing, sum(item.weight for item in there) / total

    def rank(window: range) -> tuple[int, float, int]:
        missing, coverage = fit(reduce(or_, (bits[n] for n in window)))
        return -missing, coverage, -len(window)

    window = max(windows(pieces, 1 if len(claim.items) <= SHORT else WINDOW), key=rank)
    missing, coverage = fit(reduce(or_, (bits[n] for n in window)))
    fullest = pieces[max(window, key=lambda n: fit(bits[n])[1])]
    text = " ".join(fullest.text.split())
    quote = f"{fullest.address} “{text if len(text) <= QUOTE else text[:QUOTE] + ' …'}”"
    return _Window(coverage, missing, any(DENIAL.search(pieces[n].text) for n in window), quote)


def _delivery(text: str, violation: bool, evidence: str) -> LexicalVerdict:
    """A row about files being there, read from the names of what was delivered."""
    names = read_evidence(evidence).files
    missing = [name for name in claim_of(text).files if not any(there.lower().endswith(name) for there in names)]
    delivered = bool(names) and not missing
    said = f"delivered: {', '.join(names) or 'no file'}" + (f"; not delivered: {', '.join(missing)}" if missing else "")
    return LexicalVerdict(delivered == hit_by_delivery(text, violation), None, said, names[0] if names else "none")


def _graded(text: str, levels: Sequence[float], evidence: str) -> LexicalVerdict:
    """The highest level when every part of the row is found; else the share of them, snapped to one of the others."""
    files = claim_of(text).files
    each = [_find(part, files, evidence, violation=False) for part in parts_of(text)]
    held = [found for found in each if found.holds]
    top = max(levels)
    complete = bool(each) and len(held) == len(each)
    level = top if complete else snap_level([n for n in levels if n < top], len(held) / max(1, len(each)))
    quote = held[0].quote if held else "none"
    return LexicalVerdict(level > 0, level, f"{len(held)} of the row's {len(each)} parts found", quote)
