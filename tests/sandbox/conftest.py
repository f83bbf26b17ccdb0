from __future__ import annotations

import os
from pathlib import Path

import pytest

from rubric_env.sandbox import Finished, Limits, Sandbox, SandboxUnavailable, find_sandbox


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    try:
        return find_sandbox()
    except SandboxUnavailable as error:
        if os.environ.get("RUBRIC_ENV_REQUIRE_SANDBOX") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "workspaces" / "mine"
    folder.mkdir(parents=True)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Inside:
    """Runs programs in the sandbox, in one folder."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.folder = folder

    async def __call__(self, code: str, **limits: float) -> Finished:
        return await self.sandbox.run(code, self.folder, Limits(**limits))  # type: ignore[arg-type]

    async def tries(self, code: str, **limits: float) -> str:
        """What a program prints that must end by itself, without an error."""
        finished = await self(code, **limits)
        assert (finished.code, finished.stopped, finished.errors) == (0, "", "")
        return finished.output.strip()


@pytest.fixture
def inside(sandbox: Sandbox, work: Path) -> Inside:
    return Inside(sandbox, work)
