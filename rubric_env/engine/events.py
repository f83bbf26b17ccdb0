"""What an observer of the engine sees of each call."""

from __future__ import annotations

from dataclasses import dataclass

from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Usage


@dataclass(frozen=True, slots=True)
class CallEvent:
    """One judge call. Times are seconds of the loop's clock.

    The block was ready at `queued` and went out at `start`; between them it waited for its rollout's other blocks, for
    a slot, or for the breaker. `fault` is why the call gave no text; an answer that could not be read is none.
    """

    name: str
    ids: tuple[str, ...]
    queued: float
    start: float
    end: float
    fault: Fault | None
    usage: Usage
    mode: str = ""
