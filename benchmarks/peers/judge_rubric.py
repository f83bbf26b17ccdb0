"""verifiers' classic JudgeRubric: yes or no, or a line a row where one call asks for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peers.job import Verdict


def message(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    answers = ["yes" if verdict.met else "no" for verdict in verdicts]
    if len(verdicts) == 1:
        return {"content": answers[0]}
    lines = (f"{verdict.row:02}: {answer}" for verdict, answer in zip(verdicts, answers, strict=True))
    return {"content": "\n".join(lines)}
