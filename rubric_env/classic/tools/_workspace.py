"""The policy's workspace: a directory a rollout, with the task's input files, and bounds on what it may hold."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path, PurePosixPath

from rubric_env.submission import MAX_DEPTH, POLICY_ERRORS, label, walk

logger = logging.getLogger(__name__)

OUTPUT = "output"

FILES = 500
"""That a policy may add: as many as a judge is told of."""

FILE_BYTES = 32 * 2**20
"""Of one file that a policy writes."""

TOTAL_BYTES = 128 * 2**20
"""That a policy may add. Hundreds of rollouts share a disk."""

PATH = 1000
"""Characters of a path."""

ENTRIES = 20_000
"""Looked at in one workspace."""

ABANDONED = 24 * 3600
"""Seconds after which a workspace whose process is gone is deleted. Its process may live in another container."""

_PREFIX = "rubric-env-workspace-"

_REFUSED = POLICY_ERRORS | {errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.EINVAL, errno.ENXIO}
"""What a policy can bring about with the names and the modes of its own files; the rest is the machine's."""


class ToolRefusal(Exception):
    """A tool call that cannot be done; the policy is told the message."""


@dataclass(slots=True)
class Clock:
    """Seconds that one rollout has taken from what all share: its programs, and its files that could not be read."""

    programs: float = 0.0
    unreadable: float = 0.0


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where one rollout works. `output` is the folder below `root` whose files are delivered; `corpus` holds the
    documents that a research task may search, outside the workspace. `files` and `size` (bytes) bound what it may
    hold, inputs included."""

    root: Path
    output: str = OUTPUT
    corpus: Path | None = None
    files: int = FILES
    size: int = TOTAL_BYTES
    clock: Clock = field(default_factory=Clock, compare=False)

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
        _sweep()
        root = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)).resolve()
        try:
            if inputs is not None and inputs.is_dir():
                _copy(inputs, root, corpus)
            (root / output).mkdir(parents=True, exist_ok=True)
            given = walk(root, max_entries=ENTRIES)
        except BaseException:
            _remove(root)
            raise
        size = sum(size for _, size in given.files)
        return cls(root, output, corpus, len(given.files) + len(given.empty) + FILES, size + TOTAL_BYTES)

    def remove(self) -> None:
        """Delete it, whatever the policy left in it; nothing happens when it is gone already."""
        try:
            _remove(self.root)
        except OSError as error:
            logger.warning("a workspace could not be deleted: %s", error)

    def resolve(self, path: str) -> Path:
        """The file that the policy names, there or not; `/app` is what instructions call the workspace.

        A file is also found by its name as `name` gives it. Raises ToolRefusal for one outside the workspace, and for
        a link or what lies behind one: links do not count as delivered either.
        """
        parts = _parts(path)
        with self.refusing(path):
            if not os.path.lexists(self.root.joinpath(*parts)):
                parts = self._labelled("/".join(parts)) or parts
            for depth in range(1, len(parts) + 1):
                if self.root.joinpath(*parts[:depth]).is_symlink():
                    raise ToolRefusal(f"{path}: a link, and links are not followed")
        return self.root.joinpath(*parts)

    def name(self, file: Path) -> str:
        """What the policy calls a file of the workspace: text, also where the name is not UTF-8."""
        return label(file.relative_to(self.root).parts) or "."

    def accept(self, file: Path, size: int) -> None:
        """Whether the workspace may hold `file`, new or replaced, with `size` bytes. Raises ToolRefusal.

        Whatever writes for the policy asks here first, so that no policy fills the disk of its host.
        """
        name = self.name(file)
        if size > FILE_BYTES:
            raise ToolRefusal(f"{name}: {size:,} bytes; a file may have {FILE_BYTES:,}")
        if len(file.relative_to(self.root).parts) > MAX_DEPTH:
            raise ToolRefusal(f"{name}: more than {MAX_DEPTH} folders deep")
        with self.refusing(name):
            found = walk(self.root, max_entries=ENTRIES)
        here = file.relative_to(self.root).parts
        others = {parts: bytes_ for parts, bytes_ in found.files if parts != here}
        others |= {parts: 0 for parts in found.empty if parts != here}
        if len(others) >= self.files or not found.complete:
            raise ToolRefusal(f"{name}: the workspace is full, it may hold {self.files:,} files")
        if sum(others.values()) + size > self.size:
            raise ToolRefusal(f"{name}: the workspace is full, its files may have {self.size:,} bytes together")

    def write(self, file: Path, data: bytes) -> None:
        """Write a file that `resolve` gave, with the folders on its way. Raises ToolRefusal, OSError."""
        self.accept(file, len(data))
        with self.refusing(self.name(file)):
            if os.path.lexists(file) and not stat.S_ISREG(file.lstat().st_mode):
                raise ToolRefusal(f"{self.name(file)}: no regular file")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def refusal(self, error: OSError) -> str:
        """What the policy is told of an error that it brought about itself; empty when the machine failed."""
        if error.errno not in _REFUSED or not isinstance(error.filename, str | bytes | os.PathLike):
            return ""
        file = Path(os.fsdecode(error.filename))
        return f"{self.name(file)}: {_why(error)}" if file.is_relative_to(self.root) else ""

    @contextmanager
    def refusing(self, path: str) -> Iterator[None]:
        """Turn the errors that a policy brings about, with the names and modes of its files, into a ToolRefusal."""
        try:
            yield
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
            raise ToolRefusal(f"{path}: {_why(error)}") from None

    def _labelled(self, name: str) -> tuple[str, ...] | None:
        found = walk(self.root, max_entries=ENTRIES)
        files = (*(parts for parts, _ in found.files), *found.empty)
        return next((parts for parts in files if label(parts) == name), None)


def count_files(folder: Path) -> int:
    """Files at or below `folder`, at most `ENTRIES` and as deep as a judge looks; 0 when it does not exist."""
    try:
        found = walk(folder.resolve(), max_entries=ENTRIES)
    except OSError:
        return 0
    return len(found.files) + len(found.empty)


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _parts(path: str) -> tuple[str, ...]:
    if len(path) > PATH:
        raise ToolRefusal(f"{path[:60]}…: a path of {len(path):,} characters; {PATH:,} are allowed")
    inside = path.removeprefix("/app").lstrip("/") if path == "/app" or path.startswith("/app/") else path
    if "\0" in path:
        raise ToolRefusal("the path holds a NUL character, which no file name can")
    if PurePosixPath(inside).is_absolute():
        raise ToolRefusal(f"{path}: outside the workspace; name files relative to it, such as output/report.md")
    parts: list[str] = []
    for part in PurePosixPath(inside).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise ToolRefusal(f"{path}: outside the workspace")
    return tuple(parts)


def _copy(inputs: Path, root: Path, corpus: Path | None) -> None:
    skipped = shutil.ignore_patterns("Dockerfile*")

    def ignore(folder: str, names: list[str]) -> set[str]:
        return {*skipped(folder, names), *(name for name in names if Path(folder, name) == corpus)}

    # Links are copied as links and the tools refuse them, so an instance cannot show the host's files.
    shutil.copytree(inputs, root, symlinks=True, dirs_exist_ok=True, ignore=ignore)
    # An instance may be installed read-only; the policy owns its copy.
    for folder, _, files in os.walk(root):
        Path(folder).chmod(0o755)
        for path in (Path(folder, name) for name in files):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o600)


def _remove(root: Path) -> None:
    """Delete a tree of any depth and any modes. Raises OSError.

    Each folder is moved to the top before it is emptied: the names in a tree of a thousand levels are too long for any
    call, and shutil.rmtree holds a stack frame and a descriptor a level.
    """
    if not os.path.lexists(root):
        return
    trash = Path(tempfile.mkdtemp(prefix=f"{root.name}-", dir=root.parent))
    numbers = count()
    # To move a folder is to write into it: it holds the way up.
    root.chmod(0o700)
    pending = [root.rename(trash / str(next(numbers)))]
    while pending:
        folder = pending.pop()
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
                pending.append(path.rename(trash / str(next(numbers))))
            else:
                path.unlink()
        folder.rmdir()
    trash.rmdir()


@cache
def _sweep() -> None:
    """Delete, once a process, what processes left that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        try:
            gone = owner.isdecimal() and Path("/proc/self").exists() and not Path("/proc", owner).exists()
            status = folder.lstat()
            # Others may put what they like into this place, links above all.
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if gone and ours and status.st_mtime < time.time() - ABANDONED:
                _remove(folder)
        except OSError as error:
            logger.warning("an abandoned workspace could not be deleted: %s", error)
