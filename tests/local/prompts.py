"""Judge prompts in the engine's layout, small enough to read in a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MARKER = "5f0c"
PLAIN_MARKER = "=== VERDICTS 77aa ==="


def evidence(**sections: str) -> str:
    """Files and, as `reply`, the last words; `report_md` is `output/report.md`."""
    names = {key: _name(key) for key in sections}
    listed = [f'- "{name}": text, {len(sections[key])} bytes, read whole' for key, name in names.items()]
    fenced = [f"<<<DATA {MARKER} {name}\n{sections[key]}\nDATA {MARKER}>>>" for key, name in names.items()]
    files = sum(key != "reply" for key in sections)
    return "\n".join([f"Delivered: {files} files.", "Sources:", *listed, *fenced])


def _name(key: str) -> str:
    return "model_response_text.txt" if key == "reply" else f"output/{'.'.join(key.rsplit('_', 1))}"


def row(description: str, id: str = "R01", polarity: str = "positive", **fields: Any) -> dict[str, Any]:
    return {"id": id, "description": description, "polarity": polarity, "hit_means": "it is met", **fields}


def graded(description: str, levels: Mapping[float, str]) -> dict[str, Any]:
    shown = {f"{level:g}": text for level, text in levels.items()}
    return row(description, levels=shown, level_choices=sorted(levels))


def prompt(rows: list[dict[str, Any]], section: str, instruction: str = "Judge.") -> str:
    return "\n".join(
        [
            f"# Instruction\n{instruction}",
            f"# Task\n<<<DATA {MARKER} task_prompt.md\nWrite a report.\nDATA {MARKER}>>>",
            f"# Evidence\n{section}",
            f"# Rows\n```json\n{json.dumps(rows, ensure_ascii=False)}\n```",
            f"# Answer\nThink, then write this line:\n\n{PLAIN_MARKER}\n\nand the JSON.",
        ]
    )
