"""The id under which verifiers.v1 finds the taskset: `vf-eval rubric-tasks --env.taskset.instances '["FOLDER"]'`."""

from rubric_env.v1 import HarborEnv, HarborTaskset

__all__ = ["HarborEnv", "HarborTaskset"]
