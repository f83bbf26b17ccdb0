"""rubric-env: a rubric judge whose reward can be trusted, for RL environments built on `verifiers`.

Public names load on first use, so that the core starts in a fraction of a second and needs no `verifiers`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rubric_env.classic import HarborRubric, HarborRubricGroup
    from rubric_env.engine import Case, JudgeEngine
    from rubric_env.rubric import Criterion, RubricError, RubricSpec
    from rubric_env.scoring import Outcome, Scorecard, advantages, score
    from rubric_env.settings import JudgeSettings
    from rubric_env.v1 import HarborJudge

__version__ = "0.1.0"

_HOME = {
    "HarborJudge": "rubric_env.v1",
    "HarborRubric": "rubric_env.classic",
    "HarborRubricGroup": "rubric_env.classic",
    "Case": "rubric_env.engine",
    "JudgeEngine": "rubric_env.engine",
    "Criterion": "rubric_env.rubric",
    "RubricError": "rubric_env.rubric",
    "RubricSpec": "rubric_env.rubric",
    "Outcome": "rubric_env.scoring",
    "Scorecard": "rubric_env.scoring",
    "advantages": "rubric_env.scoring",
    "score": "rubric_env.scoring",
    "JudgeSettings": "rubric_env.settings",
}

__all__ = [
    "Case",
    "Criterion",
    "HarborJudge",
    "HarborRubric",
    "HarborRubricGroup",
    "JudgeEngine",
    "JudgeSettings",
    "Outcome",
    "RubricError",
    "RubricSpec",
    "Scorecard",
    "__version__",
    "advantages",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value
