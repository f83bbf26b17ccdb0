"""Sums over rollouts: what the averages of verifiers hide or do not have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from rubric_env.scoring import Outcome, Scorecard, Usage

PARTS = ("tag", "type", "necessity")
"""The fields of a row by which the weight earned is told apart."""

SHOWN = 12
"""Values of one of these in a report: those that hold the most weight."""

LETTERS = 32
"""Of such a value in a report."""


class Tally:
    """Adds up outcomes; means and shares are over the scored ones."""

    def __init__(self) -> None:
        self.scored = 0
        self.total = 0.0
        self.reasons: Counter[str] = Counter()
        """Why rollouts are unscored."""
        self.faults: Counter[str] = Counter()
        """Rows lost, by kind of fault."""
        self.usage = Usage()
        self._known_cost = 0.0
        self._earned: dict[str, defaultdict[str, float]] = {part: defaultdict(float) for part in PARTS}
        self._possible: dict[str, defaultdict[str, float]] = {part: defaultdict(float) for part in PARTS}
        self._reported = 0

    def add(self, outcome: Outcome) -> None:
        if outcome.scored:
            self.scored += 1
            self.total += outcome.reward or 0.0
            if outcome.card:
                self._add_card(outcome.card)
        else:
            self.reasons[str(outcome.fields["judge_error_kind"])] += 1
        if outcome.judgement:
            self.faults.update(fault.kind for fault in outcome.judgement.faults.values())
            self.usage += outcome.judgement.usage
            self._known_cost += outcome.judgement.usage.cost_usd or 0.0

    def _add_card(self, card: Scorecard) -> None:
        for part in PARTS:
            for value, score in getattr(card, f"by_{part}").items():
                self._earned[part][value] += score.earned
                self._possible[part][value] += score.possible

    def shares(self, part: str) -> dict[str, float]:
        """Weight earned of that possible, by value; without rows of no name, and those that nothing can be earned by.

        The values that hold the most weight come first.
        """
        weights = sorted(self._possible[part].items(), key=lambda item: -item[1])
        return {value: self._earned[part][value] / weight for value, weight in weights if value and weight > 0}

    def report(self, prefix: str, *, again: bool) -> str:
        """What happened in this process, a few lines; "" when the last report said it already.

        `again`: unscored rollouts are made again, and each attempt was counted.
        """
        count = self.scored + self.reasons.total()
        if count == self._reported:
            return ""
        self._reported = count
        mean = f"{self.total / self.scored:.4f}" if self.scored else "none"
        then = "each attempt counted" if again else "which vf-eval averages as 0"
        why = f" ({_counts(self.reasons)}), {then}" if self.reasons else ""
        judge = "rubric judge" if prefix == "rubric" else f"{prefix}: rubric judge"
        head = f"{judge}: mean reward over {self.scored} scored rollouts {mean}; unscored {self.reasons.total()}{why}"
        lines = [head, *(f"by {part}: {line}" for part in PARTS if (line := _shown(self.shares(part))))]
        if self.faults:
            lines.append(f"rows lost: {_counts(self.faults)}")
        if self.usage.calls:
            lines.append(self._bill())
        return "\n  ".join(lines)

    def _bill(self) -> str:
        usage = self.usage
        if usage.cost_usd is not None:
            cost = f"${usage.cost_usd:.4f}"
        else:
            cost = f"at least ${self._known_cost:.4f}" if self._known_cost else "price unknown"
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        return f"{usage.calls:,} calls, tokens {usage.input_tokens:,}{cached} in, {usage.output_tokens:,} out, {cost}"


def _counts(numbers: Counter[str]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in numbers.most_common())


def _shown(shares: Mapping[str, float]) -> str:
    parts = [f"{_short(value)} {share:.2f}" for value, share in list(shares.items())[:SHOWN]]
    more = [f"{len(shares) - SHOWN} more"] if len(shares) > SHOWN else []
    return " · ".join(parts + more)


def _short(value: str) -> str:
    """A rubric may hold anything: one line, and not a long one."""
    words = " ".join(value.split())
    return words if len(words) <= LETTERS else words[: LETTERS - 1] + "…"
