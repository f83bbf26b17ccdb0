"""Environments: one attempt at a task, or several that are compared with each other."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from pydantic import Field

from rubric_env.scoring import AdvantageKind, advantages
from rubric_env.v1._errors import HarborJudgeError
from rubric_env.v1._verifiers import vf


class HarborEnv(vf.SingleAgentEnv):
    """One attempt an episode. A trace that was not scored to its end fails, whatever ended its scoring."""

    async def finalize(self, task: Any, episode: Any) -> None:
        fail_unscored(episode)


class HarborGroupEnvConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig()
    attempts: int = Field(4, ge=1)
    """Independent attempts at the task in one episode."""
    advantage: AdvantageKind = "mean"
    """What the metric `judge_advantage` of an attempt is: its reward against those of the others (docs/scoring.md)."""


class HarborGroupEnv(vf.Env[HarborGroupEnvConfig]):
    """Several attempts an episode, each with its advantage over the others as a metric.

    An attempt that was not scored has advantage 0 and stays out of the others' baseline.
    """

    async def run(self, task: Any, agents: Any) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self.config.attempts):
                group.create_task(agents.agent.run(task))

    async def finalize(self, task: Any, episode: Any) -> None:
        fail_unscored(episode)
        rewards = [trace.reward if trace.ok else None for trace in episode.traces]
        scored = [reward for reward in rewards if reward is not None]
        flat = len(scored) > 1 and max(scored) - min(scored) < 1e-12
        for trace, advantage in zip(episode.traces, advantages(rewards, self.config.advantage), strict=True):
            trace.record_metric("judge_advantage", advantage)
            trace.record_metric("judge_flat_group", flat)


def fail_unscored(episode: Any) -> None:
    """Mark traces that count as well though a reward is missing: verifiers 0.4 lets a scoring time-out pass as 0."""
    for trace in episode.traces:
        missing = [name for name, reward in trace.rewards.items() if reward is None or not math.isfinite(reward.value)]
        if trace.ok and missing:
            trace.record_error(HarborJudgeError(f"not scored: {', '.join(missing)} ({trace.stop_condition})"))
