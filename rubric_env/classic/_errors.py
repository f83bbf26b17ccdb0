"""The marks by which trainers drop a rollout that could not be scored (facts: prime-rl drops, vf-eval counts)."""

from __future__ import annotations

from rubric_env.classic._verifiers import vf


class HarborJudgeError(vf.Error):
    """The judge failed, not the policy: the rollout's reward must not be used. The message says why."""


class HarborJudgeInfraError(vf.InfraError):
    """The same under `JUDGE_ON_UNSCORED=regenerate`: verifiers makes the rollout again on an InfraError."""
