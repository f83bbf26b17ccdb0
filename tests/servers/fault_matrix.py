"""What may befall a judge that has 12 rows to judge, as data: for the tests of ours and for the benchmark of everybody.

Peers of a rubric judge were seen to return 0, a changed score or an exception for most of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tests.servers.scenarios import SCENARIOS, Scenario

ROWS = 12


@dataclass(frozen=True)
class Trouble:
    """`once`: the first call about every question; `always`: every call; `row`: calls for the last row and others."""

    name: str
    scenario: Scenario
    when: Literal["once", "always", "row"]
    calls: tuple[int, int]
    """Fewest and most that ours makes, with blocks of 4 and everything else as it comes."""
    fault: str | None = None
    """Why ours leaves the rollout unscored; None: the exact score."""

    @property
    def takes_long(self) -> bool:
        """Ours asks on with real back-off: for seconds, or until the deadline."""
        return self.calls[1] > 50

    def strikes(self, rows: Sequence[int], repeated: bool) -> bool:
        """Whether a call for these rows goes wrong; `repeated`: the same question was asked before."""
        match self.when:
            case "once":
                return not repeated
            case "row":
                return ROWS in rows and len(rows) > 1
            case "always":
                return True


_LIMITED = replace(SCENARIOS["429"], headers={"retry-after": "1"})

TROUBLES = (
    Trouble("none", SCENARIOS["ok"], "always", (3, 3)),
    Trouble("429 once", _LIMITED, "once", (6, 6)),
    Trouble("503 once", SCENARIOS["503"], "once", (6, 6)),
    Trouble("429 for ever", _LIMITED, "always", (6, 200), "rate_limit"),
    Trouble("500 for ever", SCENARIOS["500"], "always", (6, 8), "server"),
    Trouble("fenced", SCENARIOS["fenced"], "always", (3, 3)),
    Trouble("prose", SCENARIOS["prose"], "always", (90, 90), "unparseable"),
    Trouble("refusal", SCENARIOS["refusal"], "always", (90, 90), "refusal"),
    Trouble("garbage", SCENARIOS["garbage"], "always", (6, 8), "server"),
    Trouble("empty", SCENARIOS["empty"], "always", (6, 16), "empty"),
    Trouble("one row of 12 missing", SCENARIOS["missing_row"], "row", (4, 4)),
    Trouble("hang", SCENARIOS["hang"], "always", (5, 8), "timeout"),
)
