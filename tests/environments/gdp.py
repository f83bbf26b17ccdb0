"""The instances of harbor-gdp as they lie in the repository, so that their tests need no verifiers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

INSTANCES = Path(__file__).parents[2] / "environments" / "harbor_gdp" / "harbor_gdp" / "instances"
NAMES = sorted(path.name for path in INSTANCES.iterdir())
RECORDINGS = sorted(INSTANCES.glob("*/recordings/*.json"))


def recording(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def written_files(path: Path) -> dict[str, str]:
    """What a recording writes, by path; a later write replaces an earlier one."""
    calls = [call for turn in recording(path)["turns"] for call in turn["tool_calls"]]
    return {c["arguments"]["path"]: c["arguments"]["content"] for c in calls if c["name"] == "write_file"}
