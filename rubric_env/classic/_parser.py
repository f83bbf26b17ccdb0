"""The verdict parser as a `vf.Parser`, for policies that are themselves trained to judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from verdict_parsers import JsonVerdictParser, Parsed, VerdictParser

from rubric_env.classic._verifiers import vf


class PolicyVerdictParser(vf.Parser):
    """Delegates to a `verdict_parsers` parser. `parse_answer` returns the Parsed of the last assistant message."""

    def __init__(self, ids: Sequence[str], parser: type[VerdictParser] = JsonVerdictParser):
        super().__init__()
        self.verdict_parser = parser(ids)

    def parse(self, text: str) -> Parsed:
        return self.verdict_parser.parse(text)

    def parse_answer(self, completion: Any) -> Parsed | None:
        return self.verdict_parser.parse_answer(completion)

    def get_format_reward_func(self) -> Callable[..., float]:
        return self.verdict_parser.get_format_reward_func()
