"""The policy's workspace: a directory a rollout, with the task's input files."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

OUTPUT = "output"
FILE_LIMIT = 200


class ToolRefusal(Exception):
    """A tool call that cannot be done; the policy is told the message."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where one rollout works. `output` is the folder below `root` whose files are delivered; `corpus` holds the
    documents that a research task may search, outside the workspace."""

    root: Path
    output: str = OUTPUT
    corpus: Path | None = None

    @classmethod
    def make(
        cls,
        inputs: Path | None = None,
        output: str = OUTPUT,
        *,
        corpus: Path | None = None,
        parent: Path | None = None,
    ) -> Workspace:
        """A fresh directory with copies of `inputs` and an empty output directory. OSError when it cannot be made."""
        root = Path(tempfile.mkdtemp(prefix="workspace-", dir=parent)).resolve()
        if inputs is not None and inputs.is_dir():
            # Links are copied as links and the tools refuse them, so an instance cannot show the host's files.
            skipped = shutil.ignore_patterns("Dockerfile*")

            def ignore(folder: str, names: list[str]) -> set[str]:
                return {*skipped(folder, names), *(name for name in names if Path(folder, name) == corpus)}

            shutil.copytree(inputs, root, symlinks=True, dirs_exist_ok=True, ignore=ignore)
        (root / output).mkdir(parents=True, exist_ok=True)
        return cls(root, output, corpus)

    def remove(self) -> None:
        """Delete it, whatever the policy left in it; nothing happens when it is gone already."""
        shutil.rmtree(self.root, ignore_errors=True)

    def resolve(self, path: str) -> Path:
        """The file that the policy names, links resolved; `/app` is what instructions call the workspace.

        Raises ToolRefusal for one outside.
        """
        inside = path.removeprefix("/app") if path == "/app" or path.startswith("/app/") else path
        wanted = (self.root / inside.lstrip("/")).resolve()
        if not wanted.is_relative_to(self.root):
            raise ToolRefusal(f"{path}: outside the workspace")
        return wanted

    def name(self, file: Path) -> str:
        """What the policy calls a file of the workspace."""
        # A name that is not UTF-8, as in an archive made elsewhere, would not pass through the policy's endpoint.
        return os.fsencode(file.relative_to(self.root).as_posix()).decode("utf-8", "backslashreplace")


def count_files(folder: Path) -> int:
    """Files at or below `folder`; 0 when it does not exist."""
    return sum(path.is_file() for path in folder.rglob("*")) if folder.is_dir() else 0
