"""What all contenders judge: reports of a few thousand characters, rows that are met or not, known beforehand."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

TASK = "Report on the quarter, region by region."
MODEL = "gpt-4o"
"""Libraries that look a model up know this one."""

_PARAGRAPH = (
    "Revenue of region {n} rose by {n} % to {n}.4 million in the third quarter, mainly because the contract with the "
    "second largest customer was renewed in August; the margin stayed at {n} points, the backlog covers nine weeks."
)
_REPORT = re.compile(r"Report no\. (\d+)\.")
_ROW = re.compile(r"States fact (\d+):")
_PATTERN = (True, True, False, True)


@dataclass(frozen=True)
class Job:
    """`concurrency` is calls in flight; `timeout` (seconds a call) is None where a contender's own default holds."""

    base_url: str
    rollouts: int = 40
    rows: int = 12
    concurrency: int = 16
    timeout: float | None = None
    deadline: float | None = None
    """Seconds a rollout; ours alone has one."""
    mode: str = ""
    """Where a contender has more than one way."""


@dataclass(frozen=True)
class Result:
    """`score` is 0 to 1; `error` what was raised; `flag` what a returned score itself says of rows that failed."""

    score: float | None = None
    error: str = ""
    flag: str = ""


@dataclass(frozen=True)
class Verdict:
    """`text` is the row's, as far as a prompt needs it to be named."""

    row: int
    met: bool

    @property
    def text(self) -> str:
        return criterion(self.row)


def report(rollout: int, paragraphs: int = 12) -> str:
    """Another text for every rollout; 40 paragraphs are about 2,000 tokens."""
    lines = [_PARAGRAPH.format(n=rollout * 100 + n) for n in range(paragraphs)]
    return "\n\n".join([f"Report no. {rollout}.", *lines])


def criterion(row: int) -> str:
    return f"States fact {row:02}: the change of revenue of region {row} with its cause."


def truth(rollout: int, row: int) -> bool:
    """About three rows of four are met."""
    return _PATTERN[zlib.crc32(b"%d %d" % (rollout, row)) % len(_PATTERN)]


def expected(rollout: int, rows: int) -> float:
    """The score of a judge that lost nothing: every row weighs the same."""
    return sum(truth(rollout, row) for row in range(1, rows + 1)) / rows


def verdicts(prompt: str) -> tuple[int, list[Verdict]]:
    """The rollout that a prompt is about, and the right verdicts for the rows it asks for."""
    found = _REPORT.search(prompt)
    rollout = int(found[1]) if found else 0
    rows = dict.fromkeys(int(row) for row in _ROW.findall(prompt))
    return rollout, [Verdict(row, truth(rollout, row)) for row in rows]


def average(scores: Sequence[float]) -> float:
    return sum(scores) / len(scores)
