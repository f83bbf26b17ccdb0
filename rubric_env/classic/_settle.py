"""Reward, advantage and step values of a group, after every rubric of the environment has spoken.

A RubricGroup leaves the last member's advantage on the state and the first member's reward on the steps
(verifiers 0.1.14 to 0.3.1). The settling recomputes both from the final reward; it runs in the cleanup that
environments call after a group is scored, and once before it for callers that never call cleanup.
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from rubric_env.classic._errors import HarborJudgeError, HarborJudgeInfraError
from rubric_env.scoring import AdvantageKind, advantages

State = MutableMapping[str, Any]
GROUP_KEY = "_judge_group"


class Judging(Protocol):
    """A rubric that judges members of a group, and what it is told of the group."""

    def settled(self, group: Group, advantages: Sequence[float]) -> None: ...

    def forget(self, group: Group) -> None: ...


@dataclass(frozen=True, eq=False)
class Group:
    """The states scored together. `preset`: per state and step, whether the environment set reward and advantage."""

    states: Sequence[State] = field(repr=False)
    preset: Sequence[Sequence[tuple[bool, bool]]] = field(repr=False)
    kind: AdvantageKind
    token: str = field(default_factory=lambda: uuid4().hex)
    """Names the group to the engines, whose verdicts are shared within it."""
    rubrics: list[Judging] = field(default_factory=list, repr=False)


def open_group(states: Sequence[State], kind: AdvantageKind) -> Group:
    """The group that these states are scored in, shared by all rubrics that score them."""
    known = states[0].get(GROUP_KEY)
    if isinstance(known, Group) and [id(s) for s in known.states] == [id(s) for s in states]:
        return known
    group = Group(tuple(states), [_preset(state) for state in states], kind)
    for state in states:
        state[GROUP_KEY] = group
    return group


def _preset(state: State) -> list[tuple[bool, bool]]:
    # A state with an advantage was scored by an earlier rubric, which fills empty steps with its own values:
    # what the environment had set can then no longer be told apart, and the whole reward is the right one.
    scored_before = state.get("advantage") is not None
    return [
        (not scored_before and step.get("reward") is not None, not scored_before and step.get("advantage") is not None)
        for step in state.get("trajectory") or ()
    ]


def usable_reward(state: State) -> float | None:
    """The final reward; None when the rollout must stay out of the baseline (errored, or not a finite number)."""
    reward = state.get("reward")
    if state.get("error") is not None or reward is None or not math.isfinite(reward):
        return None
    return float(reward)


def settle(group: Group) -> list[float]:
    """Write advantages and step values from the rewards as they are now; returns the advantages.

    A rollout that the judge could not score has reward 0.0, whatever other rubrics gave it: half a reward would be read
    as a whole one.
    """
    for state in group.states:
        if isinstance(state.get("error"), HarborJudgeError | HarborJudgeInfraError):
            state["reward"] = 0.0
    values = advantages([usable_reward(state) for state in group.states], group.kind)
    for state, advantage, preset in zip(group.states, values, group.preset, strict=True):
        state["advantage"] = advantage
        for step, (has_reward, has_advantage) in zip(state.get("trajectory") or (), preset, strict=False):
            if not has_reward:
                step["reward"] = state["reward"]
            if not has_advantage:
                step["advantage"] = advantage
    return values


def settle_all(group: Group) -> None:
    """Settle when every rubric has spoken, and tell those that show it."""
    values = settle(group)
    for rubric in group.rubrics:
        rubric.settled(group, values)


def close_group(group: Group) -> None:
    """Settle for the last time, and let go of everything that the group held."""
    settle_all(group)
    for state in group.states:
        state.pop(GROUP_KEY, None)
    for rubric in group.rubrics:
        rubric.forget(group)


def is_flat(group: Group) -> bool:
    """True when two or more rollouts were scored and all got the same reward: the group teaches nothing."""
    rewards = [r for r in map(usable_reward, group.states) if r is not None]
    return len(rewards) > 1 and max(rewards) - min(rewards) < 1e-12
