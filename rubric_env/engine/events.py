"""What an observer of the engine sees of each call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

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

    def as_dict(self) -> dict[str, Any]:
        """The event for a log, as JSON values under stable names (docs/observability.md).

        Holds no secret, and nothing that a policy or a judge wrote: of a fault its kind alone, because the details are
        an endpoint's words, which may quote what was sent.
        """
        question, usage = self.question, self.usage
        return {
            "start": self.at,
            "end": self.at + self.end - self.start,
            "wait": self.start - self.queued,
            "seconds": self.end - self.start,
            "rollout": question.name,
            "rows": list(question.ids),
            "attempt": question.attempt,
            "model": question.model,
            "endpoint": public_url(question.endpoint),
            "mode": self.mode,
            "fault": str(self.fault.kind) if self.fault else None,
            "requests": usage.calls,
            "input_tokens": usage.input_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
        }


def public_url(endpoint: str) -> str:
    """An endpoint without user name and query, which may hold keys; other names of an endpoint as they are."""
    url = urlsplit(endpoint)
    return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))
