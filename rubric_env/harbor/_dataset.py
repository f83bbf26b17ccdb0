"""Instances as rows of a dataset for verifiers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rubric_env.harbor._instance import Instance, InstanceError
from rubric_env.rubric import RubricError


def dataset_rows(instances: Iterable[Path], *, strict: bool = False) -> list[dict[str, Any]]:
    """All that `each_row` yields."""
    return list(each_row(instances, strict=strict))


def each_row(instances: Iterable[Path], *, strict: bool = False) -> Iterator[dict[str, Any]]:
    """One row an instance, which is read as its turn comes: `prompt` (the instruction as a user message), `answer`
    (text, "" without one), `info`.

    `info` is JSON text, since datasets fills keys that rows do not share with nulls. It holds name, rubric (the rows),
    task_prompt, judge_instruction, reference, kind, output_dir and inputs (the directory to copy into the workspace, or
    null): all that judging needs, so that no worker reads an instance again. There is no column `task`, because
    verifiers takes one for the whole row as a payload.

    A broken instance is left out with a warning, or its error is raised with `strict`. Raises InstanceError when no
    instance is left.
    """
    found = 0
    broken: list[str] = []
    remarks: list[str] = []
    for path in instances:
        try:
            instance = Instance.load(path)
        except (InstanceError, RubricError) as error:
            if strict:
                raise
            broken.append(str(error))
            warnings.warn(f"instance left out: {error}", stacklevel=2)
            continue
        found += 1
        remarks += instance.warnings
        yield _row(instance)
    if remarks:
        more = f" ({len(remarks) - 1} more such remarks: `rubric-env lint` lists them)" if remarks[1:] else ""
        warnings.warn(f"{remarks[0]}{more}", stacklevel=2)
    if not found:
        raise InstanceError(
            f"none of {len(broken)} instances can be used; the first: {broken[0]}"
            if broken
            else "no instance found: an instance is a folder with tests/rubric.json and instruction.md"
        )


def _row(instance: Instance) -> dict[str, Any]:
    info = {
        "name": instance.name,
        "rubric": [row.raw for row in instance.spec],
        "task_prompt": instance.task,
        "judge_instruction": instance.judge_instruction,
        "reference": instance.reference,
        "kind": instance.kind,
        "output_dir": instance.output_dir,
        "inputs": str(instance.inputs.resolve()) if instance.inputs else None,
    }
    return {
        "prompt": [{"role": "user", "content": instance.instruction.strip()}],
        "answer": instance.answer,
        "info": json.dumps(info, ensure_ascii=False),
    }
