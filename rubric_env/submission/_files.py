"""Listing and opening files that an adversary laid out: no link is followed, no device is opened, every walk ends."""

from __future__ import annotations

import errno
import json
import os
import stat
import unicodedata
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MAX_DEPTH = 32
"""Directory levels below the start. Real deliveries stay under ten; 32 long names already exceed PATH_MAX."""

LABEL_CHARS = 200
NAMED = 5
"""How many names a note spells out before it only counts."""

POLICY_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM})
"""What a policy can bring about itself. Any other failure to open what lies there is the machine's."""

Parts = tuple[str, ...]

# A directory on the way needs no read permission, only the right to pass; O_PATH (Linux) asks for no more than that.
_STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Walked:
    """What a walk met, as name parts relative to its start. `files` are regular and not empty, with sizes in bytes."""

    files: list[tuple[Parts, int]] = field(default_factory=list)
    empty: list[Parts] = field(default_factory=list)
    links: list[Parts] = field(default_factory=list)
    special: list[Parts] = field(default_factory=list)
    closed: list[Parts] = field(default_factory=list)
    deep: list[Parts] = field(default_factory=list)
    complete: bool = True


def walk(root: Path, *, max_entries: int, exclude: Parts | None = None) -> Walked:
    """All files below `root` (absolute, free of links), nearest levels first, in at most `max_entries` entries.

    `exclude` is a directory, relative to `root`, that is left out. Raises OSError when `root` itself cannot be
    listed or is a link, and when the machine fails (too many open files, a broken disk).
    """
    found = Walked()
    queue: deque[Parts] = deque([()])
    seen = 0
    while queue:
        parts = queue.popleft()
        try:
            directory = _open(root.joinpath(*parts), os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            if not parts or error.errno not in POLICY_ERRORS:
                raise
            found.closed.append(parts)
            continue
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    seen += 1
                    if seen > max_entries:
                        found.complete = False
                        return found
                    child = (*parts, entry.name)
                    if child != exclude:
                        _sort_in(entry, child, found, queue)
        finally:
            os.close(directory)
    return found


def _sort_in(entry: os.DirEntry[str], parts: Parts, found: Walked, queue: deque[Parts]) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in POLICY_ERRORS:
            raise
        found.closed.append(parts)
        return
    if stat.S_ISLNK(status.st_mode):
        found.links.append(parts)
    elif stat.S_ISDIR(status.st_mode):
        if len(parts) < MAX_DEPTH:
            queue.append(parts)
        else:
            found.deep.append(parts)
    elif not stat.S_ISREG(status.st_mode):
        found.special.append(parts)
    elif status.st_size:
        found.files.append((parts, status.st_size))
    else:
        found.empty.append(parts)


def open_regular(path: Path) -> BinaryIO:
    """Open a file that `read_submission` listed, for reading bytes.

    Every component of the absolute path is opened without following links: a directory that was exchanged for a link
    since the walk leads nowhere. Raises OSError, also when the path is no longer a regular file.
    """
    handle = _open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, "rb")


def _open(path: Path, flags: int) -> int:
    step = os.open(path.anchor, _STEP)
    try:
        for name in path.parts[1:-1]:
            below = os.open(name, _STEP, dir_fd=step)
            os.close(step)
            step = below
        return os.open(path.name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=step)
    finally:
        os.close(step)


def label(parts: Iterable[str]) -> str:
    """A name as people and judges read it: NFC, posix separators, one printable line of at most `LABEL_CHARS`.

    Bytes that are not UTF-8 and characters that cannot be seen are written as escapes.
    """
    text = "/".join(_printable(part) for part in parts)
    half = LABEL_CHARS // 2
    return text if len(text) <= LABEL_CHARS else f"{text[: half - 1]}…{text[-half:]}"


def _printable(name: str) -> str:
    decoded = unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "backslashreplace"))
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in decoded)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in spaced)


def quoted(labels: Iterable[str]) -> str:
    """Labels for a sentence of ours: quoted, because their words are not ours; only the first few are spelled out."""
    names = sorted(labels)
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(json.dumps(name, ensure_ascii=False) for name in names[:NAMED]) + more
