"""A RubricGroup that keeps step values which the environment set, wherever its rubrics stand."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rubric_env.classic._rubric import HarborRubric
from rubric_env.classic._settle import open_group, settle_all
from rubric_env.classic._verifiers import vf
from rubric_env.scoring import AdvantageKind


class HarborRubricGroup(vf.RubricGroup):
    """`vf.RubricGroup` whose advantages and step values are those of the summed reward.

    Use it instead of `vf.RubricGroup` when the environment sets per-step rewards of its own. The kind of advantage is
    that of the first HarborRubric. Raises ValueError when two HarborRubrics would add up each other's metrics.
    """

    def __init__(self, rubrics: list[Any], **kwargs: Any):
        super().__init__(rubrics, **kwargs)
        judges = [r for r in rubrics if isinstance(r, HarborRubric)]
        twice = [name for name, n in Counter(r.name for r in judges).items() if n > 1]
        if twice:
            raise ValueError(f"two HarborRubrics share the name {twice[0]!r}: give each its own name=")
        self._advantage: AdvantageKind = next((r.advantage for r in judges), "mean")

    async def score_group(self, states: list[Any]) -> None:
        if not states:
            return
        group = open_group(states, self._advantage)
        await super().score_group(states)
        settle_all(group)

    async def score_rollout(self, state: Any) -> None:
        group = open_group([state], self._advantage)
        await super().score_rollout(state)
        settle_all(group)
