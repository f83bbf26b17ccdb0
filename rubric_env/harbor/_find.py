"""Where the instances are, without reading them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rubric_env.harbor._instance import INSTRUCTION_FILE, RUBRIC_FILE, InstanceError

MARKS = (RUBRIC_FILE, "task.toml", INSTRUCTION_FILE)
"""A directory with any of them is an instance, if perhaps a broken one; nothing below it is looked at."""

DEPTH = 3
"""Levels below the given folder: enough for collection/split/family/instance, and for a checkout of an environment."""


def find_instances(where: str | Path | Sequence[str | Path]) -> Iterator[Path]:
    """The instance directories at or below `where` (one folder, or several), by name within each folder.

    Lazy, and no file is opened. Hidden folders are passed over; of a linked folder only the instance that it is counts.
    Raises InstanceError for a folder that cannot be listed.
    """
    for root in [where] if isinstance(where, str | Path) else where:
        if not Path(root).is_dir():
            raise InstanceError(f"{root}: no such folder: give an instance, or a folder of instances")
        yield from _below(Path(root), DEPTH)


def _below(folder: Path, depth: int) -> Iterator[Path]:
    if any(os.path.isfile(f"{folder}/{mark}") for mark in MARKS):  # noqa: PTH113 - pathlib takes three times as long
        yield folder
    elif depth:
        try:
            with os.scandir(folder) as entries:
                found = sorted((e.name, e.is_symlink()) for e in entries if e.is_dir() and not e.name.startswith("."))
        except OSError as error:
            raise InstanceError(f"{folder}: cannot be listed: {error.strerror}") from None
        for name, linked in found:
            # Below a link may lie the folder itself, or its twin.
            yield from _below(folder / name, 0 if linked else depth - 1)
