"""What the rollouts of an engine share, and what one of them is judged on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rubric_env.engine.calls import Calls
from rubric_env.engine.journal import Journal
from rubric_env.engine.prompt import Brief
from rubric_env.engine.tries import Backoff
from rubric_env.evidence import EvidencePack
from rubric_env.judges.pool import JudgePool
from rubric_env.settings import JudgeSettings


@dataclass(frozen=True, slots=True)
class Desk:
    """What all rollouts of an engine share. `caching` are the quotas whose endpoint was seen to cache prefixes."""

    settings: JudgeSettings
    judges: JudgePool
    calls: Calls
    backoff: Backoff
    journal: Journal
    caching: set[str] = field(default_factory=set)

    def within(self, seconds: float | None) -> Desk:
        """The same for a rollout whose caller has less time than the deadline gives."""
        if seconds is None or seconds >= self.settings.deadline:
            return self
        return replace(self, settings=self.settings.model_copy(update={"deadline": round(seconds, 2)}))


@dataclass(frozen=True, slots=True)
class Reuse:
    """Where the verdicts of a rollout are kept: the journal's scope, and its key of every row."""

    scope: str
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Material:
    """What a rollout is judged on: its evidence, the prompt made of it, and under which keys its verdicts are kept."""

    pack: EvidencePack
    brief: Brief
    reuse: Reuse | None
