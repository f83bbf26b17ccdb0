"""rubric.json: rows, what a judge is told of them, and a linter (SPEC 2 and 4)."""

from rubric_env.rubric._criterion import Criterion, judge_row
from rubric_env.rubric._lint import JUDGE_INSTRUCTION_FILES, TASK_FILES, Finding, lint, lint_instance
from rubric_env.rubric._source import Problem, RubricError, decode_text, read_text
from rubric_env.rubric._spec import RubricSpec

__all__ = [
    "JUDGE_INSTRUCTION_FILES",
    "TASK_FILES",
    "Criterion",
    "Finding",
    "Problem",
    "RubricError",
    "RubricSpec",
    "decode_text",
    "judge_row",
    "lint",
    "lint_instance",
    "read_text",
]
