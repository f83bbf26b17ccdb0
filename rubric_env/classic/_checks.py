"""Rewards beside the judge's that need no judge: a checkable answer, and the form of what was delivered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rubric_env._threads import waiting
from rubric_env.classic._verifiers import vf
from rubric_env.evidence import opens_as_named
from rubric_env.harbor.case import SourceError, delivered, read_info
from rubric_env.submission import SubmissionUnreadable


class AnswerRubric(vf.MathRubric):
    """MathRubric for data sets in which only some rows have a checkable answer: 0.0 on the others, at no cost."""

    def __init__(self, weight: float = 0.0):
        super().__init__()
        self.weights = [weight]

    async def correct_answer(self, parser: Any, completion: Any, answer: str, **kwargs: Any) -> float:
        return float(await super().correct_answer(parser, completion, answer, **kwargs)) if answer else 0.0


class FormatRubric(vf.Rubric):
    """The form of what was delivered, whatever it says: `format_reward` from 0 to 1, the share of demands met.

    A task that asks for files demands each file that it names (`deliverables` of the instance; without any, one file
    at all) to be there and to open as what its name says, and a closing message. A task that asks for an answer in
    chat demands a reply, and no file beside it. A rollout that erred, or whose files cannot be listed, gets 0.0, as
    verifiers gives to whatever fails: HarborRubric marks it.
    """

    def __init__(self, weight: float = 0.0):
        super().__init__()
        self.add_reward_func(self.format_reward, weight)

    async def format_reward(self, state: Any, completion: Any, info: Any) -> float:
        if state.get("error") is not None:
            return 0.0
        demands = await waiting.run(self._demands, state, completion, info)
        return sum(demands) / len(demands) if demands else 0.0

    def _demands(self, state: Any, completion: Any, info: Any) -> list[bool]:
        try:
            facts = read_info(info)
            found = delivered(state, completion, facts)
        except (SourceError, SubmissionUnreadable):
            return []
        if facts.get("kind") == "chat":
            return [found.has_reply, not found.files]
        files = {file.name: file.path for file in found.files}
        named = [str(name) for name in facts.get("deliverables") or ()]
        return [found.has_reply, *(_opens(files.get(name)) for name in named or list(files) or [""])]


def _opens(path: Path | None) -> bool:
    try:
        return path is not None and opens_as_named(path)
    except OSError:
        return False
