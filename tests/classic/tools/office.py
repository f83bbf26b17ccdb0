"""What tests of the office tools share: files as a judge reads them, and as LibreOffice draws them."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from rubric_env.classic.tools import ToolRefusal
from rubric_env.evidence import EvidenceStore, _soffice


def read(path: Path) -> dict[str, str]:
    """The passages of a file by their addresses; fails for a file that is not read whole."""
    entry = EvidenceStore(path.parent / ".store").entry(path)
    assert entry.meta["status"] == "read", entry.meta
    assert not entry.meta["errors"], entry.meta
    return {unit.label: unit.text for unit in entry.units()}


def pages(path: Path) -> int:
    """Of the file as LibreOffice draws it."""
    if _soffice.soffice() is None:
        if os.environ.get("RUBRIC_ENV_REQUIRE_OFFICE") == "1":
            pytest.fail("LibreOffice is not installed, and this run requires it")
        pytest.skip("LibreOffice is not installed")
    store = EvidenceStore(path.parent / ".drawn")
    drawing = store.pictures(store.entry(path), 120)
    assert drawing.pictures, drawing.note
    return len(drawing.pictures)


async def refusal(call: Awaitable[str]) -> str:
    """What a policy is told that asked for something impossible."""
    with pytest.raises(ToolRefusal) as refused:
        await call
    return str(refused.value)
