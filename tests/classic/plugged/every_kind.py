"""Environments of every kind that verifiers has, each with its own judge, as one: `vf-eval every-kind`.

A worker process finds this module on its path, and imports nothing of the tests.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import verifiers as vf
from datasets import Dataset

from rubric_env.classic import HarborRubric

ROWS = [
    {"id": "R1", "description": "The reply names the total.", "weight": 3},
    {"id": "R2", "description": "The reply names the owner.", "weight": 1},
]


def look_up(key: str) -> str:
    """Look a word up.

    Args:
        key: the word
    """
    return f"{key}: nothing found"


class TwoTurns(vf.MultiTurnEnv):  # type: ignore[misc, name-defined]
    def __init__(self, **kwargs: Any):
        super().__init__(max_turns=2, **kwargs)

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        return [{"role": "user", "content": "Go on."}]


class Delivers(vf.StatefulToolEnv):  # type: ignore[misc, name-defined]
    """A workspace a rollout, and a tool that writes into it."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.add_tool(self.deliver, args_to_skip=["workspace"])

    async def setup_state(self, state: Any) -> Any:
        state["submission_dir"] = tempfile.mkdtemp(prefix="delivers-")
        (Path(state["submission_dir"]) / "output").mkdir()
        await super().setup_state(state)
        return state  # verifiers 0.1.14 returns nothing

    def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
        return {**tool_args, "workspace": state["submission_dir"]}

    async def deliver(self, text: str, workspace: str = "") -> str:
        """Deliver output/memo.md.

        Args:
            text: all of it
        """
        (Path(workspace) / "output" / "memo.md").write_text(text, "utf-8")
        return "written"


class Dies(vf.SingleTurnEnv):  # type: ignore[misc, name-defined]
    """Fails before anything can be judged."""

    async def setup_state(self, state: Any) -> Any:
        raise vf.Error("the sandbox died")


KINDS: Mapping[str, Callable[..., Any]] = {
    "single-turn": vf.SingleTurnEnv,
    "multi-turn": TwoTurns,
    "tools": lambda **kwargs: vf.ToolEnv(tools=[look_up], **kwargs),
    "stateful-tools": Delivers,
}


def load_environment(cases: Mapping[str, Mapping[str, Any]]) -> Any:
    """An environment a case: `{"Case": {"kind": …, "settings": {…}, "questions": 1}}`, as JSON gives it."""
    return vf.EnvGroup([_child(name, **case) for name, case in cases.items()], env_names=list(cases))


def _child(name: str, kind: str, settings: Mapping[str, Any] | None = None, questions: int = 1) -> Any:
    # As the environments of this project do it: rows that differ would get each other's keys from datasets.
    row = {"question": f"Case {name}. Who owns the total?", "answer": "", "info": json.dumps({"rubric": ROWS})}
    rubric = HarborRubric(settings={"max_tries": 1, "resplit": False, **(settings or {})})
    build = {**KINDS, "dies": Dies}[kind]
    return build(dataset=Dataset.from_list([row] * questions), rubric=rubric)
