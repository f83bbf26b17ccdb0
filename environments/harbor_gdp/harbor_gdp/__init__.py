"""harbor-gdp: office tasks whose deliverables a rubric judges (README.md describes the arguments)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rubric_env.classic import Family, build_environment

FAMILY = Family(env_id="harbor-gdp", instances=Path(__file__).parent / "instances")


def load_environment(instances: str | Sequence[str] | None = None, **arguments: Any) -> Any:
    """The classic environment over the shipped instances, or over those of `instances` (a folder, or several)."""
    return build_environment(FAMILY, instances, **arguments)
