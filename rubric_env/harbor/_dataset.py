"""Instances as rows of a dataset for verifiers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rubric_env.harbor._instance import Instance, InstanceError
from rubric_env.rubric import RubricError


def dataset_rows(instances: Iterable[Path], *, strict: bool = False) -> list[dict[str, Any]]:
    """All that `each_row` yields."""
    return list(each_row(instances, strict=strict))


def each_row(instances: Iterable[Path], *, strict: bool = False, single_turn: bool = False) -> Iterator[dict[str, Any]]:
    """One row an instance, which is read as its turn comes: `prompt` (the instruction as a user message), `answer`
    (text, "" without one), `info`.

    `info` is JSON text, since datasets fills keys that rows do not share with nulls. It holds name, rubric (the rows),
    task_prompt, judge_instruction, reference, kind, output_dir, deliverables, inputs and corpus (directories, or null):
    all that judging needs, so that no worker reads an instance again. There is no column `task`, because verifiers
    takes one for the whole row as a payload.

    `single_turn` gives the instances whose answer belongs in chat, with their input files in the prompt; others are
    passed over.

    A broken instance is left out with a warning, or its error is raised with `strict`. Raises InstanceError when no
    instance is left.
    """
    found = passed = 0
    broken: list[str] = []
    remarks: list[str] = []
    for path in instances:
        try:
            instance = Instance.load(path)
            if single_turn and instance.kind != "chat":
                passed += 1
                continue
            row = _row(instance, _with_inputs(instance) if single_turn else instance.instruction.strip())
        except (InstanceError, RubricError) as error:
            if strict:
                raise
            broken.append(str(error))
            warnings.warn(f"instance left out: {error}", stacklevel=2)
            continue
        found += 1
        remarks += instance.warnings
        yield row
    if remarks:
        more = f" ({len(remarks) - 1} more such remarks: `rubric-env lint` lists them)" if remarks[1:] else ""
        warnings.warn(f"{remarks[0]}{more}", stacklevel=2)
    if not found:
        raise InstanceError(_why_none(broken, passed))


def _why_none(broken: Sequence[str], passed: int) -> str:
    if broken:
        return f"none of {len(broken)} instances can be used; the first: {broken[0]}"
    if passed:
        return f"none of {passed} instances wants its answer in chat, which single_turn asks for"
    return "no instance found: an instance is a folder with tests/rubric.json and instruction.md"


def _with_inputs(instance: Instance) -> str:
    """The instruction, and the input files as text: without tools a policy could not open them."""
    texts, root = [instance.instruction.strip()], instance.inputs
    for path in sorted(root.rglob("*")) if root else ():
        if root and path.is_file() and not path.name.startswith("Dockerfile"):
            try:
                text = path.read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                raise InstanceError(f"{path}: is no text, and without tools a policy can only read text") from None
            texts.append(f"File `{path.relative_to(root).as_posix()}`:\n\n{text.strip()}")
    return "\n\n".join(texts)


def _row(instance: Instance, prompt: str) -> dict[str, Any]:
    info = {
        "name": instance.name,
        "rubric": [row.raw for row in instance.spec],
        "task_prompt": instance.task,
        "judge_instruction": instance.judge_instruction,
        "reference": instance.reference,
        "kind": instance.kind,
        "output_dir": instance.output_dir,
        "deliverables": instance.deliverables,
        "inputs": str(instance.inputs.resolve()) if instance.inputs else None,
        "corpus": str(instance.corpus.resolve()) if instance.corpus else None,
    }
    return {
        "prompt": [{"role": "user", "content": prompt}],
        "answer": instance.answer,
        "info": json.dumps(info, ensure_ascii=False),
    }
