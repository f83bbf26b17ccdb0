"""What a Harbor verifier leaves behind: result.json, and a reward file when there is a reward (SPEC 10)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from rubric_env.scoring import Outcome, final_reward
from rubric_env.settings import JudgeSettings

REWARD_FILES = ("reward.json", "reward.txt")


def result_json(outcome: Outcome, settings: JudgeSettings) -> dict[str, Any]:
    """The outcome as JSON values. `task_score` is the reward, null when unscored and `on_unscored` allows no other.

    `details.results` has the judged rows, `details.criteria` all of them, with `fault` ("" = none) and the tries made.
    """
    return {
        "task_score": final_reward(outcome, settings),
        "status": outcome.status,
        "exit_code": None if outcome.exit_code is None else str(outcome.exit_code),
        "exit_reason": outcome.exit_reason,
        "metric_id": settings.metric_id,
        "extra_fields": dict(outcome.fields),
        "details": {
            "delivery": dict(outcome.delivery),
            "score": _score(outcome),
            "results": _results(outcome),
            "criteria": _criteria(outcome),
        },
    }


def write_result(outcome: Outcome, settings: JudgeSettings, directory: Path) -> Path:
    """Write result.json and, when there is a reward, reward.json and reward.txt; return the path of result.json.

    Each file appears whole or not at all, and a reward of an earlier run is gone before anything is written, so that a
    kill in between leaves no score that belongs to another judging. Raises OSError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in REWARD_FILES:
        (directory / name).unlink(missing_ok=True)
    result = result_json(outcome, settings)
    path = directory / "result.json"
    _replace(path, json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
    reward = result["task_score"]
    if reward is not None:
        # Harbor reads reward.json first and wants a flat object of finite numbers; details live in result.json.
        _replace(directory / "reward.txt", f"{reward!r}\n")
        _replace(directory / "reward.json", json.dumps({"reward": reward}) + "\n")
    return path


def _score(outcome: Outcome) -> dict[str, Any]:
    card = outcome.card
    if card is None:
        return {}
    return {
        "score": card.score,
        "earned": card.earned,
        "possible": card.possible,
        "fatal": card.fatal,
        "tags": {tag: {"earned": part.earned, "possible": part.possible} for tag, part in card.by_tag.items()},
    }


def _results(outcome: Outcome) -> list[dict[str, Any]]:
    results = []
    for row in outcome.card.rows if outcome.card else ():
        if not row.judged:
            continue
        verdict = outcome.judgement.verdicts[row.id] if outcome.judgement else None
        results.append(
            {
                "id": row.id,
                "hit": row.hit,
                **({} if row.level is None else {"level": row.level}),
                "reason": verdict.reason if verdict else outcome.exit_reason,
                "evidence": verdict.evidence if verdict else "",
            }
        )
    return results


def _criteria(outcome: Outcome) -> list[dict[str, Any]]:
    criteria = []
    for row in outcome.card.rows if outcome.card else ():
        judgement = outcome.judgement
        verdict = judgement.verdicts.get(row.id) if judgement else None
        fault = judgement.faults.get(row.id) if judgement else None
        criteria.append(
            {
                "id": row.id,
                "tag": row.tag,
                "gate": row.gate,
                "contribution": row.contribution,
                "level_raw": verdict.level_raw if verdict else None,
                "spelled": verdict.spelled if verdict else "",
                "recovered_by": verdict.recovered_by if verdict else "",
                "fault": str(fault) if fault else "",
                "tries": judgement.tries.get(row.id, 0) if judgement else 0,
            }
        )
    return criteria


def _replace(path: Path, text: str) -> None:
    """Write through a temporary file beside `path`: a reader sees the old file or the new one, never half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
