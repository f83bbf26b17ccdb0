"""The id under which verifiers.v1 finds the judge: `--env.taskset.task.judges '[{"id": "rubric_judge"}]'`."""

from rubric_env.v1 import HarborJudge

__all__ = ["HarborJudge"]
