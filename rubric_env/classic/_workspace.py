"""The policy's workspace: a directory a rollout, with the task's input files and three tools to work in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

OUTPUT = "output"
READ_LIMIT = 200_000
WRITE_LIMIT = 2_000_000
FILE_LIMIT = 200


class WorkspaceError(Exception):
    """A tool call that cannot be done; the policy is told the message."""


def make_workspace(inputs: Path | None, output: str = OUTPUT, parent: Path | None = None) -> Path:
    """A fresh directory with copies of `inputs` and an empty output directory. OSError when it cannot be made."""
    root = Path(tempfile.mkdtemp(prefix="workspace-", dir=parent))
    if inputs is not None and inputs.is_dir():
        # Links are copied as links and the tools refuse them, so an instance cannot show the host's files.
        shutil.copytree(inputs, root, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("Dockerfile*"))
    (root / output).mkdir(parents=True, exist_ok=True)
    return root


def remove_workspace(root: Path) -> None:
    """Delete a workspace, whatever the policy left in it; nothing happens when it is gone already."""
    shutil.rmtree(root, ignore_errors=True)


def count_files(folder: Path) -> int:
    """Files at or below `folder`; 0 when it does not exist."""
    return sum(path.is_file() for path in folder.rglob("*")) if folder.is_dir() else 0


async def list_files(path: str = ".", workspace: str = "") -> str:
    """List the files below a folder of the workspace, one a line with its size in bytes.

    Args:
        path: folder, relative to the workspace; "." is the workspace itself
    """
    return await asyncio.to_thread(_list, path, workspace)


async def read_file(path: str, workspace: str = "") -> str:
    """Read a text file of the workspace.

    Args:
        path: file, relative to the workspace
    """
    return await asyncio.to_thread(_read, path, workspace)


async def write_file(path: str, content: str, workspace: str = "") -> str:
    """Write a text file into the workspace, replacing it if it exists. Deliverables belong under output/.

    Args:
        path: file, relative to the workspace, for example output/report.md
        content: the whole text of the file
    """
    return await asyncio.to_thread(_write, path, content, workspace)


TOOLS = (list_files, read_file, write_file)


def _inside(workspace: str, path: str) -> tuple[Path, Path]:
    """The workspace and the file in it, links resolved. `/app` is what instructions call the workspace."""
    root = Path(workspace).resolve()
    inside = path.removeprefix("/app") if path == "/app" or path.startswith("/app/") else path
    wanted = (root / inside.lstrip("/")).resolve()
    if not wanted.is_relative_to(root):
        raise WorkspaceError(f"{path}: outside the workspace")
    return root, wanted


def _list(path: str, workspace: str) -> str:
    root, folder = _inside(workspace, path)
    if not folder.is_dir():
        raise WorkspaceError(f"{path}: no such folder")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    lines = [f"{_name(p.relative_to(root))} ({p.stat().st_size} bytes)" for p in files[:FILE_LIMIT]]
    if len(files) > FILE_LIMIT:
        lines.append(f"… and {len(files) - FILE_LIMIT} more")
    return "\n".join(lines) or "(empty)"


def _name(path: Path) -> str:
    # A name that is not UTF-8, as in an archive made elsewhere, would not pass through the policy's endpoint.
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def _read(path: str, workspace: str) -> str:
    _, file = _inside(workspace, path)
    if not file.is_file():
        raise WorkspaceError(f"{path}: no such file")
    with file.open("rb") as stream:
        data = stream.read(READ_LIMIT + 1)
    text = data[:READ_LIMIT].decode("utf-8", "replace")
    return text + (f"\n… cut at {READ_LIMIT} bytes" if len(data) > READ_LIMIT else "")


def _write(path: str, content: str, workspace: str) -> str:
    root, file = _inside(workspace, path)
    data = content.encode("utf-8", "replace")
    if len(data) > WRITE_LIMIT:
        raise WorkspaceError(f"{path}: {len(data)} bytes, the limit is {WRITE_LIMIT}")
    if not file.exists() and count_files(root) >= FILE_LIMIT:
        raise WorkspaceError(f"{path}: the workspace already holds {FILE_LIMIT} files")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise WorkspaceError(f"{path}: {error.strerror}") from None
    return f"wrote {len(data)} bytes to {file.relative_to(root).as_posix()}"
