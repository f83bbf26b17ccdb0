from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rubric_env.evidence import EvidencePack, Extract, _workers, build_pack
from rubric_env.submission import read_submission
from tests.submission.conftest import public_workspace, unprivileged

__all__ = ["extract_of", "pack_of", "public_workspace", "unprivileged"]


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine gives a second of CPU time in many of its own: what a reader meets is always its CPU limit."""
    monkeypatch.setattr(_workers, "STALLED", 100)


@pytest.fixture
def pack_of(tmp_path: Path) -> Callable[..., EvidencePack]:
    """The pack of delivered files, given as name and content."""

    def make(files: dict[str, str | bytes], reply: str = "", tokens: int = 100_000, **options) -> EvidencePack:
        output = tmp_path / "output"
        output.mkdir(exist_ok=True)
        for name, content in files.items():
            path = output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return build_pack(read_submission(tmp_path, reply), budget_tokens=tokens, **options)

    return make


@pytest.fixture
def extract_of(pack_of) -> Callable[..., Extract]:
    """The extract of one delivered file."""

    def make(name: str, content: str | bytes, tokens: int = 100_000) -> Extract:
        (extract,) = pack_of({name: content}, tokens=tokens).extracts
        return extract

    return make
