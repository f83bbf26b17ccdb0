"""Where a rollout's rubric, task, instruction, reference and files come from (SPEC 9): first found wins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rubric_env.engine import Case
from rubric_env.harbor._instance import Instance
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import FaultKind, Outcome, unscored
from rubric_env.settings import JudgeSettings
from rubric_env.submission import (
    OUTPUT,
    Submission,
    SubmissionUnreadable,
    conversation_text,
    message_text,
    read_submission,
    reply_text,
)


class SourceError(ValueError):
    """A rollout that cannot be judged because of its data: no rubric, broken info. Names what and the remedy."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """What arguments say for rollouts whose `info` and instance do not."""

    spec: RubricSpec | None = None
    instruction: str = ""
    reference: str = ""


def read_info(value: Any) -> Mapping[str, Any]:
    """`info` as a mapping; it may arrive as JSON text. Raises SourceError when it is neither."""
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise SourceError(f"info is no JSON object ({error}): store it with json.dumps") from None
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, Mapping):
        raise SourceError(f"info must be an object, not {type(value).__name__}")
    return value


def build_case(
    state: Mapping[str, Any],
    prompt: Any,
    completion: Any,
    answer: Any,
    info: Any,
    defaults: Defaults,
    settings: JudgeSettings,
    group: str = "",
) -> Case | Outcome:
    """Everything that one judging needs; its outcome where the files cannot be read, which is nobody's submission.

    `group` is the scope in which verdicts are shared. Raises SourceError, RubricError or InstanceError.
    """
    facts = read_info(info)
    instance = Instance.load(Path(str(facts["instance"]))) if facts.get("instance") else None
    spec = _spec(facts, instance, defaults)
    try:
        submission = _submission(state, completion, facts, instance, settings)
    except SubmissionUnreadable as error:
        return unscored(FaultKind.INTERNAL, str(error), rows=len(spec))
    return Case(
        spec=spec,
        submission=submission,
        task=_first(facts.get("task_prompt"), instance and instance.task, _user_text(prompt)),
        instruction=_first(
            facts.get("judge_instruction"), instance and instance.judge_instruction, defaults.instruction
        ),
        reference=_first(facts.get("reference"), instance and instance.reference, defaults.reference, answer),
        group=group,
        name=_first(facts.get("name"), instance and instance.name, state.get("example_id")),
    )


def delivered(state: Mapping[str, Any], completion: Any, facts: Mapping[str, Any], **how: Any) -> Submission:
    """What a rollout delivered; `how` goes to `read_submission`. Raises SourceError, SubmissionUnreadable."""
    root = state.get("submission_dir") or facts.get("submission_dir")
    output_dir = state.get("output_dir") or facts.get("output_dir")
    try:
        return read_submission(
            Path(str(root)) if root else None,
            reply_text(completion or ""),
            output_dir=str(output_dir) if output_dir else None,
            **how,
        )
    except ValueError as error:
        raise SourceError(str(error)) from None


def _first(*sources: Any) -> str:
    """The first that holds text."""
    return next((text for source in sources if source is not None and (text := str(source)).strip()), "")


def _spec(facts: Mapping[str, Any], instance: Instance | None, defaults: Defaults) -> RubricSpec:
    # An empty list is a broken rubric, not an absent one: another must not take its place.
    if facts.get("rubric") not in (None, ""):
        return RubricSpec.parse(facts["rubric"])
    if facts.get("rubric_path"):
        return RubricSpec.parse(Path(str(facts["rubric_path"])))
    if instance is not None:
        return instance.spec
    if defaults.spec is not None:
        return defaults.spec
    raise SourceError('no rubric: give info["rubric"], info["rubric_path"], info["instance"] or the argument rubric=')


def _submission(
    state: Mapping[str, Any],
    completion: Any,
    facts: Mapping[str, Any],
    instance: Instance | None,
    settings: JudgeSettings,
) -> Submission:
    return delivered(
        state,
        completion,
        facts,
        usual_output=instance.output_dir if instance else OUTPUT,
        lenient=settings.lenient_delivery,
        chat_fallback=settings.chat_fallback,
        conversation=conversation_text(completion or "") if settings.view == "conversation" else None,
    )


def _user_text(prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n\n".join(message_text(m) for m in prompt or () if m.get("role") == "user")
