"""What is known of a rollout's rows while they are judged, and what becomes of each in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Judgement, RowVerdict, Usage


@dataclass(slots=True)
class Sheet:
    """What is known of each row so far. A row is open until it has a verdict or a final fault."""

    ids: Sequence[str]
    verdicts: dict[str, RowVerdict] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    last: dict[str, Fault] = field(default_factory=dict)
    """Why the latest try of an open row failed."""
    standing: dict[str, RowVerdict] = field(default_factory=dict)
    """Verdicts that count when no further try comes."""
    tries: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)
    reused: int = 0

    def judgement(self, seconds: float, unfinished: Fault) -> Judgement:
        """Every row ends here: with its verdict, the one that stands, its fault, or else `unfinished`."""
        verdicts, faults = {}, {}
        for row in self.ids:
            if verdict := self.verdicts.get(row) or self.standing.get(row):
                verdicts[row] = verdict
            elif row in self.faults:
                faults[row] = self.faults[row]
            else:
                last = f"; last try: {self.last[row]}" if row in self.last else ""
                faults[row] = replace(unfinished, detail=unfinished.detail + last)
        return Judgement(verdicts, faults, self.usage, seconds, dict(self.tries), self.reused)
