"""HarborRubric for verifiers 0.1.14 to 0.3.x, whose `Rubric` API verifiers 0.4 removed.

verifiers ships an experimental class of the same name, which runs a Harbor task's tests in a sandbox; this one judges.
"""

from rubric_env.classic._citations import CitationRubric
from rubric_env.classic._environment import build_environment
from rubric_env.classic._errors import HarborJudgeError, HarborJudgeInfraError
from rubric_env.classic._family import Family
from rubric_env.classic._group import HarborRubricGroup
from rubric_env.classic._parser import PolicyVerdictParser
from rubric_env.classic._rubric import HarborRubric

__all__ = [
    "CitationRubric",
    "Family",
    "HarborJudgeError",
    "HarborJudgeInfraError",
    "HarborRubric",
    "HarborRubricGroup",
    "PolicyVerdictParser",
    "build_environment",
]
