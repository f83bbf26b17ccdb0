"""A small, fixed question in the engine's layout."""

from __future__ import annotations

import json
from typing import Any

from rubric_env.judges import Prompt

MARKER = "=== VERDICTS 0a1b2c ==="


def make_prompt(*ids: str, evidence: str = "The report says 42.") -> Prompt:
    rows = [
        {"id": name, "description": f"row {name}", "polarity": "positive", "hit_means": "it is met"} for name in ids
    ]
    verdict = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "reason": {"type": "string"}, "hit": {"type": "boolean"}},
    }
    loose: dict[str, Any] = {"type": "object", "properties": {"verdicts": {"type": "array", "items": verdict}}}
    strict = json.loads(json.dumps(loose))
    strict["properties"]["verdicts"]["items"]["properties"]["id"]["enum"] = list(ids)
    return Prompt(
        ids=ids,
        system="You are a judge.",
        shared=f"# Instruction\nJudge.\n# Evidence\n<<<DATA m model_response_text.txt\n{evidence}\nDATA m>>>",
        rows=f"# Rows\n```json\n{json.dumps(rows)}\n```",
        contract_json="# Answer\nOne JSON object.",
        contract_plain=f"# Answer\nWrite\n{MARKER}\nand one JSON object.",
        marker=MARKER,
        schema=strict,
        loose_schema=loose,
    )
