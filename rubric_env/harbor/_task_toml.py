"""Our keys in the `[metadata]` of an instance's task.toml, a table that Harbor leaves to everyone."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

WORKSPACE = "/app/"
"""Where Harbor puts a task's files; an output directory below it is relative to the workspace."""


@dataclass(frozen=True, slots=True)
class Metadata:
    output_dir: str = "output"
    kind: Literal["files", "chat"] = "files"
    answer: str = ""
    deliverables: tuple[str, ...] = ()


def read_metadata(path: Path, problems: list[str], remarks: list[str]) -> Metadata:
    """Our keys; the defaults without the file. What is wrong goes to the two lists."""
    if not path.is_file():
        return Metadata()
    try:
        table = tomllib.loads(path.read_text("utf-8")).get("metadata", {})
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        problems.append(f"{path.name} cannot be read as TOML: {error}")
        return Metadata()
    if not isinstance(table, Mapping):
        problems.append(f"{path.name}: metadata must be a table: write [metadata]")
        return Metadata()
    kind, answer = table.get("kind", "files"), table.get("answer", "")
    # In another collection kind and answer may mean something else, so they are no reason to refuse the instance.
    if kind not in ("files", "chat"):
        remarks.append(f'{path}: metadata.kind {kind!r} is neither "files" nor "chat": taken for files')
        kind = "files"
    if not isinstance(answer, str | int | float):
        remarks.append(f"{path}: metadata.answer is neither text nor number: ignored")
        answer = ""
    deliverables = table.get("deliverables", [])
    if not isinstance(deliverables, list) or not all(isinstance(name, str) and name for name in deliverables):
        remarks.append(f"{path}: metadata.deliverables is no list of file names: ignored")
        deliverables = []
    output = _output_dir(table.get("output_dir", "output"), path, problems)
    return Metadata(output, kind, str(answer), tuple(deliverables))


def _output_dir(value: Any, path: Path, problems: list[str]) -> str:
    folder = PurePosixPath(value.removeprefix(WORKSPACE) if isinstance(value, str) else "")
    if folder.is_absolute() or ".." in folder.parts or not folder.parts:
        problems.append(f"{path.name}: metadata.output_dir {value!r} is not a folder below the workspace")
    return str(folder)
