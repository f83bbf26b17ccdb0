"""Rewards of a group to advantages (SPEC 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Literal, get_args

AdvantageKind = Literal["mean", "grpo", "rloo"]
GRPO_EPSILON = 1e-4
"""Added to the standard deviation, as TRL's GRPO trainer does."""


def advantages(rewards: Sequence[float | None], kind: AdvantageKind = "mean") -> list[float]:
    """One advantage a reward. None (unscored), NaN and infinities get 0.0 and stay out of every other one's baseline.

    mean: reward − mean. grpo: that ÷ (standard deviation with n − 1, + 1e-4), as TRL. rloo: reward − mean of the rest.
    Fewer than two scored rewards: all 0.0. The means are exactly rounded, so that equal rewards give exactly 0.0.
    """
    if kind not in get_args(AdvantageKind):
        raise ValueError(f"advantage {kind!r} is none of {', '.join(get_args(AdvantageKind))}")
    scored = [float(reward) for reward in rewards if reward is not None and math.isfinite(reward)]
    if len(scored) < 2:
        return [0.0] * len(rewards)
    centre, scale = mean(scored), 1.0
    if kind == "grpo":
        scale = 1 / (stdev(scored) + GRPO_EPSILON)
    elif kind == "rloo":
        scale = len(scored) / (len(scored) - 1)
    return [(reward - centre) * scale if reward is not None and math.isfinite(reward) else 0.0 for reward in rewards]
