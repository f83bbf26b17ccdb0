"""The marks by which trainers drop a rollout that could not be scored, and those that a policy could earn by itself."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from rubric_env.classic._verifiers import vf
from rubric_env.judges.classify import classify_response
from rubric_env.scoring.faults import FaultKind


class HarborJudgeError(vf.Error):
    """The judge failed, not the policy: the rollout's reward must not be used. The message says why."""


class HarborJudgeInfraError(vf.InfraError):
    """The same under `JUDGE_ON_UNSCORED=regenerate`: verifiers makes the rollout again on an InfraError."""


def forgive_policy(state: MutableMapping[str, Any]) -> bool:
    """Take from a rollout the error that its policy alone brought about; True when there was one.

    An empty message, one that no client can read and, in environments that stop on it, a tool call with broken JSON:
    as errors they would let a policy out of being judged, and buy it a new rollout with `--max-retries`.
    """
    error = state.get("error")
    # The same class says that an endpoint sent no choices at all, which is not the policy's doing.
    empty = type(error) is vf.EmptyModelResponseError and str(error).startswith("Model returned no content")
    # Half of a character that UTF-16 writes in two: verifiers, from 0.2, cannot read such a message at all.
    unreadable = isinstance(error, vf.ModelError) and "hex escape" in str(error.__cause__)
    if empty or unreadable or isinstance(error, vf.ToolParseError):
        state["error"] = None
        return True
    return False


def is_overlong(error: BaseException) -> bool:
    """Whether a policy's endpoint refused a conversation because there is too much of it."""
    response = getattr(error.__cause__, "response", None)
    if response is None or not 400 <= response.status_code < 500:
        return False
    headers = {name.lower(): value for name, value in response.headers.items()}
    problem = classify_response(response.status_code, headers, response.content)
    return problem.fault.kind is FaultKind.CONTEXT_LENGTH
