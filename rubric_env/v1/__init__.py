"""The judge for verifiers.v1 (0.3.1 and 0.4): a plugged judge, a taskset over Harbor instances, group comparison."""

from rubric_env.v1._config import HarborJudgeConfig
from rubric_env.v1._env import HarborEnv, HarborGroupEnv, HarborGroupEnvConfig
from rubric_env.v1._errors import HarborJudgeError
from rubric_env.v1._judge import HarborJudge
from rubric_env.v1._taskset import HarborTask, HarborTaskset, HarborTasksetConfig

__all__ = [
    "HarborEnv",
    "HarborGroupEnv",
    "HarborGroupEnvConfig",
    "HarborJudge",
    "HarborJudgeConfig",
    "HarborJudgeError",
    "HarborTask",
    "HarborTaskset",
    "HarborTasksetConfig",
]
