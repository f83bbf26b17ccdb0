"""The environments as they lie in the repository, so that tests of their instances need no verifiers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENVIRONMENTS = {
    path.parent.name: path for path in sorted((Path(__file__).parents[2] / "environments").glob("*/harbor_*/instances"))
}
"""The folder of instances of each, by the name of its module."""


def instances_of(environment: str) -> list[Path]:
    return sorted(path for path in ENVIRONMENTS[environment].iterdir() if path.is_dir())


def recordings_of(environment: str) -> list[Path]:
    return sorted(ENVIRONMENTS[environment].glob("*/recordings/*.json"))


def recording(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def written_files(path: Path) -> dict[str, str]:
    """What a recording writes with `write_file`, by path; a later write replaces an earlier one."""
    calls = [call for turn in recording(path)["turns"] for call in turn["tool_calls"]]
    return {c["arguments"]["path"]: c["arguments"]["content"] for c in calls if c["name"] == "write_file"}
