"""Fixtures of the tests of tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_env.classic.tools import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace.make(parent=tmp_path)
    yield made
    made.remove()
