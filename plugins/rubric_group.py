"""The id under which verifiers.v1 finds group comparison, for any taskset: `--env.id rubric-group`."""

from rubric_env.v1 import HarborGroupEnv

__all__ = ["HarborGroupEnv"]
