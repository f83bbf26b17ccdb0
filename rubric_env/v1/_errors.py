"""The mark by which trainers drop a rollout that could not be scored."""

from __future__ import annotations

from rubric_env.v1._verifiers import vf


class HarborJudgeError(vf.TaskError):
    """The judge failed, not the policy: the trace ends with `ok` false and must not be trained on. One line says why.

    A TaskError passes verifiers' boundaries as it is, so that `--env.agent.retries` can name this class.
    """
