"""A folder of the host on its way into a sandbox, and what comes back, which is trusted in nothing."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from rubric_env.sandbox._inside import CHUNK, DEPTH, END, FACT, FILE, FOLDER, NAME_BYTES, RECORD, SAME, Item
from rubric_env.sandbox._limits import MIB, Limits

PAGE = resource.getpagesize()
"""The least that a file takes in a tmpfs."""

FACTS = 64

_NO_NAME = (errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG)
"""What a disk says to names that it cannot hold, long ones or two that differ in case only: the program chose them."""


class TooMuch(Exception):
    """More than limits allow."""


class BrokenStream(Exception):
    """What came out of a sandbox is not what process 1 of it writes."""


@dataclass(frozen=True)
class Change:
    """What a run did to one file of the folder."""

    kind: Literal["new", "changed", "deleted"]
    name: str
    size: int


@dataclass
class Returned:
    """What came out: facts by name, and every entry of the folder. New files' contents are elsewhere."""

    facts: dict[str, list[bytes]] = field(default_factory=dict)
    items: dict[bytes, Item] = field(default_factory=dict)


def folder_items(folder: Path, limits: Limits) -> dict[bytes, Item]:
    """What of `folder` goes in: folders before what is in them. Raises TooMuch.

    Links and the like stay out, and what is deeper or has a longer name than what may come back.
    """
    items: dict[bytes, Item] = {}
    total = 0
    counts = {FILE: 0, FOLDER: 0}
    for item in _walk(folder, "", DEPTH):
        items[item.name] = item
        total += -(-item.size // PAGE) * PAGE
        counts[item.kind] += 1
        if counts[item.kind] > limits.files:
            raise TooMuch(f"more than {limits.files} {'files' if item.kind == FILE else 'folders'}")
        if total > limits.disk:
            raise TooMuch(f"more than {limits.disk // MIB} MiB")
    return items


def _walk(root: Path, folder: str, deeper: int) -> Iterator[Item]:
    with os.scandir(root / folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = folder + entry.name
        name = os.fsencode(path)
        if len(name) > NAME_BYTES:
            continue
        if entry.is_dir(follow_symlinks=False):
            if deeper:
                yield Item(FOLDER, name, 0)
                yield from _walk(root, f"{path}/", deeper - 1)
        elif entry.is_file(follow_symlinks=False):
            yield Item(FILE, name, entry.stat(follow_symlinks=False).st_size)


def send_items(write: Callable[[bytes], object], folder: Path, items: Mapping[bytes, Item]) -> None:
    """Write their records. Raises OSError."""
    for kind, name, size in items.values():
        write(RECORD.pack(kind, len(name), size) + name)
        if kind != FILE:
            continue
        handle = os.open(folder / os.fsdecode(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            left = size
            while left:
                data = file.read(min(left, CHUNK))
                if not data:
                    raise OSError(f"{os.fsdecode(name)} became shorter while it was read")
                write(data)
                left -= len(data)


def receive(stream: IO[bytes], sent: Mapping[bytes, Item], stage: Path, limits: Limits) -> Returned:
    """Read all records up to the last; files go below `stage`. Raises BrokenStream, and OSError of the host."""
    returned = Returned()
    facts = room = 0
    while True:
        kind, length, size = RECORD.unpack(_exactly(stream, RECORD.size))
        if kind == END:
            return returned
        if length > NAME_BYTES:
            raise BrokenStream("a long name")
        name = _exactly(stream, length)
        if kind == FACT:
            facts += 1
            if facts > FACTS or size > max(PAGE, 2 * limits.output):
                raise BrokenStream("too many facts")
            returned.facts.setdefault(name.decode("ascii", "replace"), []).append(_exactly(stream, size))
            continue
        if name in returned.items:
            raise BrokenStream("a name twice")
        if name not in sent:
            _check_name(name)
        parent = name.rpartition(b"/")[0]
        if parent and (parent not in returned.items or returned.items[parent].kind != FOLDER):
            raise BrokenStream("a file without its folder")
        returned.items[name] = Item(kind, name, size)
        if len(returned.items) > 2 * limits.files:
            raise BrokenStream("too many files")
        target = stage / os.fsdecode(name)
        if kind == FOLDER and not size:
            with _naming(name):
                target.mkdir()
        elif kind == SAME and not size and name in sent and sent[name].kind == FILE:
            room += sent[name].size
        elif kind == FILE:
            room += size
            if room > limits.disk:
                raise BrokenStream("too many bytes")
            with _naming(name):
                opened = target.open("xb")
            with opened as file:
                for data in _chunks(stream, size):
                    file.write(data)
        else:
            raise BrokenStream("an entry of no known kind")


@contextmanager
def _naming(name: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_NAME:
            raise
        raise BrokenStream(f"the disk takes no {os.fsdecode(name)[:80]!a}: {error.strerror}") from None


def _check_name(name: bytes) -> None:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise BrokenStream("a name that is not UTF-8") from None
    parts = text.split("/")
    if not text.isprintable() or len(parts) > DEPTH + 1 or any(part in ("", ".", "..") for part in parts):
        raise BrokenStream("a name that leads elsewhere")
    if any(len(part) > 255 for part in name.split(b"/")):
        raise BrokenStream("a long name")


def _exactly(stream: IO[bytes], size: int) -> bytes:
    return b"".join(_chunks(stream, size))


def _chunks(stream: IO[bytes], size: int) -> Iterator[bytes]:
    while size:
        data = stream.read(min(size, CHUNK))
        if not data:
            raise BrokenStream("it ends too early")
        yield data
        size -= len(data)


def apply(folder: Path, sent: Mapping[bytes, Item], returned: Returned, stage: Path) -> tuple[list[Change], list[str]]:
    """Make `folder` what came back: the changes, and the names that could not be had because a link is there.

    Nothing is written but new entries, moved from `stage`; nothing is deleted but what was sent. Raises OSError.
    """
    changes: list[Change] = []
    blocked: list[str] = []
    for name, item in reversed(list(sent.items())):  # What is in a folder comes after it.
        now = returned.items.get(name)
        if now is not None and (now.kind == FOLDER) == (item.kind == FOLDER):
            continue
        path = folder / os.fsdecode(name)
        if item.kind == FOLDER:
            with suppress(OSError):  # A link that did not go in keeps it.
                path.rmdir()
        else:
            path.unlink(missing_ok=True)
            changes.append(Change("deleted", os.fsdecode(name), item.size))
    for name, item in returned.items.items():
        if item.kind == SAME:
            continue
        text = os.fsdecode(name)
        if not _free(folder, text, item.kind):
            blocked.append(text)
        elif item.kind == FOLDER:
            (folder / text).mkdir(exist_ok=True)
        else:
            known = name in sent and sent[name].kind == FILE
            (stage / text).replace(folder / text)
            changes.append(Change("changed" if known else "new", text, item.size))
    return sorted(changes, key=lambda change: change.name), blocked


def _free(folder: Path, name: str, kind: bytes) -> bool:
    """Whether nothing but folders leads to it, and nothing but what it replaces is there."""
    path = folder
    *parents, last = PurePosixPath(name).parts
    for parent in parents:
        path = path / parent
        if not stat.S_ISDIR(path.lstat().st_mode):
            return False
    try:
        mode = (path / last).lstat().st_mode
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(mode) if kind == FOLDER else stat.S_ISREG(mode)
