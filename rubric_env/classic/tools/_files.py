"""Tools that list, read and write the files of a workspace."""

from __future__ import annotations

import asyncio

from rubric_env.classic.tools._workspace import FILE_LIMIT, ToolRefusal, Workspace, count_files

READ_LIMIT = 200_000
WRITE_LIMIT = 2_000_000


async def list_files(workspace: Workspace, path: str = ".") -> str:
    """List the files below a folder of the workspace, one a line with its size in bytes.

    Args:
        path: folder, relative to the workspace; "." is the workspace itself
    """
    return await asyncio.to_thread(_list, workspace, path)


async def read_file(workspace: Workspace, path: str) -> str:
    """Read a text file of the workspace.

    Args:
        path: file, relative to the workspace
    """
    return await asyncio.to_thread(_read, workspace, path)


async def write_file(workspace: Workspace, path: str, content: str) -> str:
    """Write a text file into the workspace, replacing it if it exists. Deliverables belong under output/.

    Args:
        path: file, relative to the workspace, for example output/report.md
        content: the whole text of the file
    """
    return await asyncio.to_thread(_write, workspace, path, content)


def _list(workspace: Workspace, path: str) -> str:
    folder = workspace.resolve(path)
    if not folder.is_dir():
        raise ToolRefusal(f"{path}: no such folder")
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    lines = [f"{workspace.name(p)} ({p.stat().st_size} bytes)" for p in files[:FILE_LIMIT]]
    if len(files) > FILE_LIMIT:
        lines.append(f"… and {len(files) - FILE_LIMIT} more")
    return "\n".join(lines) or "(empty)"


def _read(workspace: Workspace, path: str) -> str:
    file = workspace.resolve(path)
    if not file.is_file():
        raise ToolRefusal(f"{path}: no such file")
    with file.open("rb") as stream:
        data = stream.read(READ_LIMIT + 1)
    text = data[:READ_LIMIT].decode("utf-8", "replace")
    return text + (f"\n… cut at {READ_LIMIT} bytes" if len(data) > READ_LIMIT else "")


def _write(workspace: Workspace, path: str, content: str) -> str:
    file = workspace.resolve(path)
    data = content.encode("utf-8", "replace")
    if len(data) > WRITE_LIMIT:
        raise ToolRefusal(f"{path}: {len(data)} bytes, the limit is {WRITE_LIMIT}")
    if not file.exists() and count_files(workspace.root) >= FILE_LIMIT:
        raise ToolRefusal(f"{path}: the workspace already holds {FILE_LIMIT} files")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise ToolRefusal(f"{path}: {error.strerror}") from None
    return f"wrote {len(data)} bytes to {workspace.name(file)}"
