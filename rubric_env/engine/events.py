"""What an observer of the engine sees of each call."""

from __future__ import annotations

from dataclasses import dataclass

from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Usage


@dataclass(frozen=True, slots=True)
class Question:
    """What a call is about. `tokens` is an estimate of the input; calls of one `quota` share their limits."""

    name: str = ""
    ids: tuple[str, ...] = ()
    model: str = ""
    endpoint: str = ""
    quota: str = ""
    tokens: int = 0
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class CallEvent:
    """One judge call. Times are seconds of the loop's clock; `at` is the start as a Unix time.

    The block was ready at `queued` and went out at `start`; between them it waited for its rollout's other blocks, for
    a slot, for its quota or for the breaker. `fault` is why the call gave no text, or why its text stops early; an
    answer that could not be read is none.
    """

    question: Question
    queued: float
    start: float
    end: float
    at: float
    fault: Fault | None
    usage: Usage
    mode: str = ""
