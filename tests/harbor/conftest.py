from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROWS = [
    {"id": "R1", "description": "The memo names the total.", "weight": 3},
    {"id": "R2", "description": "The memo names the owner.", "weight": 1},
]
FILES: Mapping[str, str] = {
    "instruction.md": "Write output/memo.md.\n",
    "tests/rubric.json": json.dumps(ROWS),
    "tests/judge_instruction.md": "Be exact.\n",
}
MakeInstance = Callable[..., Path]


@pytest.fixture
def make_instance(tmp_path: Path) -> MakeInstance:
    """An instance in `tmp_path`; `files` are added to a minimal whole one, or taken out where the content is None."""

    def make(name: str = "memo", files: Mapping[str, str | bytes | None] | None = None) -> Path:
        root = tmp_path / name
        for path, content in {**FILES, **(files or {})}.items():
            if content is None:
                continue
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content.encode() if isinstance(content, str) else content)
        return root

    return make
