from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """An empty output directory in a workspace of its own."""
    directory = tmp_path / "app" / "output"
    directory.mkdir(parents=True)
    return directory


@contextmanager
def _unprivileged() -> Iterator[None]:
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_workspace() -> Iterator[Path]:
    """A workspace that another user can reach, with `output/`; pytest's own directories are closed to others."""
    root = Path(tempfile.mkdtemp(prefix="workspace-"))
    root.chmod(0o755)
    (root / "output").mkdir()
    (root / "output").chmod(0o755)  # whatever the umask
    yield root
    for path in root.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(root)


@pytest.fixture
def unprivileged():
    """Runs a block without root's right to open everything, where the tests run as root."""
    return _unprivileged
