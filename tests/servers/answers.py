"""Reads the rows out of a judge prompt and writes the verdicts that the truth gives, rightly or wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.servers.scenarios import Answer

Truth = Mapping[str, bool | float | None]

_ROWS = re.compile(r"^# Rows\s*```json\s*(?=\[)", re.MULTILINE)
_MARKER = re.compile(r"^=== VERDICTS \S+ ===$", re.MULTILINE)


def rows_of(text: str) -> list[dict[str, Any]]:
    """The rows under the last `# Rows` heading; none when the text asks for no verdicts."""
    found = list(_ROWS.finditer(text))
    if not found:
        return []
    rows: list[dict[str, Any]] = json.JSONDecoder().raw_decode(text, found[-1].end())[0]
    return rows


def marker_of(text: str) -> str | None:
    """The marker line that the answer must follow, where the contract names one."""
    found = _MARKER.findall(text)
    return found[-1] if found else None


def answer_text(answer: Answer, rows: Sequence[Mapping[str, Any]], truth: Truth) -> str:
    """The message content. A row that `truth` does not name is hit."""
    verdicts = [_verdict(row, truth.get(row["id"], True)) for row in rows]
    match answer:
        case "fenced":
            return f"Here is my judgement.\n```json\n{_dump(verdicts)}\n```\nDone."
        case "prose":
            return "I have read all of it, and on the whole the work is good."
        case "cut":
            return _dump(verdicts)[:-12]
        case "missing_row":
            return _dump(verdicts[:-1])
        case "wrong_ids":
            return _dump([{**v, "id": f"X{n}"} for n, v in enumerate(verdicts)])
        case "contradiction":
            return _dump([w for v in verdicts for w in (v, {**v, "hit": not v["hit"]})])
        case "no_level":
            return _dump([{k: x for k, x in v.items() if k != "level"} for v in verdicts])
        case "wrong_scale":
            return _dump([{**v, "level": 75} if "level" in v else v for v in verdicts])
        case "quality_words":
            return _dump([{"id": v["id"], "reason": v["reason"], "verdict": "pass"} for v in verdicts])
        case "null_hits":
            return _dump([{**v, "hit": None} for v in verdicts])
        case "verdicts":
            return _dump(verdicts)


def _verdict(row: Mapping[str, Any], truth: bool | float | None) -> dict[str, Any]:
    verdict: dict[str, Any] = {"id": row["id"], "reason": f"checked {row['id']}", "evidence": ""}
    if truth is None:
        return {**verdict, "hit": None}
    if choices := row.get("level_choices"):
        level = (max(choices) if truth else 0.0) if isinstance(truth, bool) else truth
        return {**verdict, "hit": level > 0, "level": level}
    return {**verdict, "hit": bool(truth)}


def _dump(verdicts: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"verdicts": list(verdicts)}, ensure_ascii=False)
