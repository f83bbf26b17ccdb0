"""Which files count as delivered, and whether anything was delivered at all."""

from __future__ import annotations

import errno
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from rubric_env.submission._files import MAX_DEPTH, POLICY_ERRORS, Parts, Walked, label, quoted, walk

OUTPUT = "output"
"""Name of the output directory where an instance names none, and the first part of every delivered file's label."""

MAX_FILES = 500
"""Delivered files that a judge is told of: more than anyone reviews by hand. A note says how many there were."""

MAX_ENTRIES = 100_000
MAX_STRAY_ENTRIES = 10_000
"""A workspace around the output may hold a whole package cache: strays are only recorded, so less effort goes there."""


class SubmissionUnreadable(Exception):
    """The directory that a caller handed over is missing or unreadable: infrastructure, never the policy's failure."""

    def __init__(self, root: Path, reason: str) -> None:
        super().__init__(f"{root}: {reason}; give a directory that exists and that this process may read")
        self.root = root
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DeliveredFile:
    """`name` is the label that instructions, evidence and verdicts use (`output/report.md`); `size` is in bytes.

    `path` is absolute and free of links; read it through `open_regular`, since its content may have changed hands.
    """

    name: str
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class Submission:
    """What is to be judged. `reply` is the policy's last words, never a delivered file.

    `conversation` is set where the whole conversation is shown instead of the reply. `notes` say in sentences what was
    skipped and why. `stray` files lie outside the output directory and do not count.
    """

    files: tuple[DeliveredFile, ...] = ()
    stray: tuple[DeliveredFile, ...] = ()
    reply: str = ""
    conversation: str | None = None
    notes: tuple[str, ...] = ()
    chat_fallback: bool = True

    @property
    def has_reply(self) -> bool:
        """Whether the reply has anything that can be seen."""
        return any(char.isprintable() and not char.isspace() for char in self.reply)

    @property
    def from_chat(self) -> bool:
        """No file, but a reply that is judged in its place."""
        return not self.files and self.chat_fallback and self.has_reply

    @property
    def missing(self) -> bool:
        """Nothing to judge: the reward is 0, and no judge is asked."""
        return not self.files and not self.from_chat

    @property
    def delivery(self) -> dict[str, Any]:
        """`details.delivery` of a result: labels of files and strays, and the two facts above."""
        return {
            "files": [file.name for file in self.files],
            "missing": self.missing,
            "from_chat": self.from_chat,
            "stray": [file.name for file in self.stray],
        }


def read_submission(
    root: Path | None,
    reply: str = "",
    *,
    output_dir: str | None = None,
    usual_output: str = OUTPUT,
    lenient: bool = False,
    chat_fallback: bool = True,
    conversation: str | None = None,
) -> Submission:
    """List what was delivered; no file is opened.

    `root` None is chat only. With `output_dir` (relative to `root`, or absolute inside it) `root` is the policy's
    workspace, and that directory missing, empty, closed or a link is nothing delivered. Without it, `usual_output`
    below `root` is the output directory if it is there (a link in its place delivers nothing), else `root` itself is.
    Hidden files count like others, and come last. `lenient` counts strays as delivered and turns `chat_fallback` on.

    Raises SubmissionUnreadable for a root that is missing or cannot be read, ValueError for an `output_dir` outside it.
    """
    chat_fallback = chat_fallback or lenient
    if root is None:
        return Submission(reply=reply, conversation=conversation, chat_fallback=chat_fallback)
    try:
        real = root.resolve(strict=True)
        (real / "..").lstat()  # a root that may be listed but not entered is unreadable too
        prefix = _output_parts(real, output_dir or usual_output)
        below = prefix if output_dir is not None or _is_there(real, prefix) else ()
        if output_dir is None and not below:
            files, notes = _delivered(real, (), prefix)
            stray: tuple[DeliveredFile, ...] = ()
        else:
            around = walk(real, max_entries=MAX_STRAY_ENTRIES, exclude=below) if below else Walked()
            stray = _kept(real, around, ())
            files, notes = _workspace_output(real, below)
    except (OSError, RuntimeError) as error:
        raise SubmissionUnreadable(root, _why(error)) from None
    if stray and lenient:
        # The prefix keeps a stray `model_response_text.txt` apart from the reply.
        counted = tuple(replace(file, name=f"./{file.name}") for file in stray)
        notes = [*notes, f"outside the output directory, counted all the same: {quoted(file.name for file in counted)}"]
        files, stray = (*files, *counted), ()
    return Submission(files, stray, reply, conversation, tuple(notes), chat_fallback)


def _output_parts(root: Path, output_dir: str) -> Parts:
    relative = PurePosixPath(output_dir)
    if relative.is_absolute():
        if not relative.is_relative_to(root.as_posix()):
            raise ValueError(f"output_dir {output_dir!r} is not inside {root}: give it relative to the workspace")
        relative = relative.relative_to(root.as_posix())
    if ".." in relative.parts:
        raise ValueError(f"output_dir {output_dir!r} leaves the workspace: give a path below it")
    return relative.parts


def _is_there(root: Path, parts: Parts) -> bool:
    """A directory, or a link on the way to one: the policy's own doing, which delivers nothing."""
    steps = (root.joinpath(*parts[:n]) for n in range(1, len(parts) + 1))
    return any(step.is_symlink() for step in steps) or root.joinpath(*parts).is_dir()


def _workspace_output(root: Path, below: Parts) -> tuple[tuple[DeliveredFile, ...], list[str]]:
    try:
        return _delivered(root, below, below or (OUTPUT,))
    except OSError as error:
        if not below or error.errno not in POLICY_ERRORS:
            raise
        cause = "it is a link or no directory" if error.errno in {errno.ELOOP, errno.ENOTDIR} else _why(error)
        return (), [f"the output directory {quoted([label(below)])} holds nothing that counts: {cause}"]


def _delivered(root: Path, below: Parts, prefix: Parts) -> tuple[tuple[DeliveredFile, ...], list[str]]:
    start = root.joinpath(*below)
    found = walk(start, max_entries=MAX_ENTRIES)
    return _kept(start, found, prefix), _notes(found, prefix)


def _kept(start: Path, found: Walked, prefix: Parts) -> tuple[DeliveredFile, ...]:
    def rank(file: tuple[Parts, int]) -> tuple[bool, int, Parts]:
        parts = file[0]
        return any(name.startswith(".") for name in parts), len(parts), parts

    files: dict[str, DeliveredFile] = {}
    for parts, size in sorted(found.files, key=rank)[:MAX_FILES]:
        first = name = label((*prefix, *parts))
        for number in count(2):
            if name not in files:
                break
            name = f"{first} ({number})"
        files[name] = DeliveredFile(name, start.joinpath(*parts), size)
    return tuple(files.values())


def _notes(found: Walked, prefix: Parts) -> list[str]:
    kinds = [
        ("empty files, not counted", found.empty),
        ("symbolic links, not followed", found.links),
        ("neither file nor directory (pipe, socket, device), skipped", found.special),
        ("what cannot be opened", found.closed),
        (f"directories more than {MAX_DEPTH} levels deep, not looked into", found.deep),
    ]
    notes = [f"{what}: {quoted(label((*prefix, *parts)) for parts in which)}" for what, which in kinds if which]
    if not found.complete:
        notes.append(f"more than {MAX_ENTRIES:,} directory entries: the rest was not looked at")
    if len(found.files) > MAX_FILES:
        notes.append(f"{len(found.files):,} files: only the first {MAX_FILES} are read")
    return notes


def _why(error: OSError | RuntimeError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or str(error)).lower()
