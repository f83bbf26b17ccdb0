"""Zip archives: every member listed, and those that have a reader read, within caps and two levels deep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipInfo

from rubric_env.evidence._extract import Kind, Limits, Unit, Unreadable
from rubric_env.evidence._reading import Reading
from rubric_env.evidence._zip import Archive

LISTED = 1000
"""Members that are named."""

READ = 100
"""Members of one archive that are read."""

MEMBER_BYTES = 16 * 2**20
DEPTH = 2
MEMBER_TOKENS = 50_000
"""Kept of one text: half of the default budget of a whole rollout."""


def units(reading: Reading) -> Iterator[Unit]:
    """The list first, then the members in their order, each passage under `member!label`."""
    yield from _archive(reading, DEPTH)


def _archive(reading: Reading, depth: int) -> Iterator[Unit]:
    archive = Archive(reading.path)
    files = [member for member in archive.members if not member.filename.endswith("/")]
    total = sum(member.file_size for member in files)
    reading.note(f"{len(files):,} files, {total:,} bytes unpacked")
    for member in files[:LISTED]:
        yield Unit(_name(member), f"{member.file_size:,} bytes", "listed")
    if len(files) > LISTED:
        reading.skipped(f"only the first {LISTED:,} files are listed")
    with TemporaryDirectory() as made:
        for number, member in enumerate(files[:READ]):
            path = Path(made) / f"{number}{_suffix(member)}"
            try:
                path.write_bytes(archive.unpack(member, MEMBER_BYTES))
            except Unreadable as error:
                reading.note(str(error))
                continue
            yield from _member(path, _name(member), reading, depth)
            path.unlink()
    if len(files) > READ:
        reading.skipped(f"only the first {READ:,} files are read")


def _member(path: Path, name: str, reading: Reading, depth: int) -> Iterator[Unit]:
    from rubric_env.evidence.kinds import NotRead, identify, kind_of

    suffix = path.suffix
    folder = path.with_name(f"{path.name}-read")
    folder.mkdir()
    inside = Reading(path, folder)
    try:
        with path.open("rb") as opened:
            found = kind_of(suffix, opened.read(64))
        kind, _ = found or identify(path, suffix)
        if kind.units is None:
            assert kind.read is not None
            extract = kind.read(path, Limits(MEMBER_TOKENS, MEMBER_BYTES))
            if extract.status == "cut":
                inside.skipped("; ".join(filter(None, (extract.note, extract.gap))))
            inner: Iterator[Unit] = iter(extract.units)
        elif kind.units is not units:
            inner = kind.units(inside)
        elif depth > 1:
            inner = _archive(inside, depth - 1)
        else:
            raise Unreadable(f"an archive more than {DEPTH} levels deep is not opened")
        for unit in inner:
            yield unit._replace(label=f"{name}!{unit.label}")
    except NotRead as error:
        reading.lost(name, error)
    except Unreadable as error:
        reading.note(f"{name} cannot be read: {error}")
    except Exception as error:
        # Broken files raise anything; what stands beside them stays.
        reading.lost(f"the rest of {name}", error)
    reading.take_over(inside, name)


def _name(member: ZipInfo) -> str:
    """As it can stand in one line."""
    return " ".join(member.filename.replace("\\", "/").split())[:200]


def _suffix(member: ZipInfo) -> str:
    suffix = PurePosixPath(member.filename).suffix.lower()
    return suffix if suffix.isascii() and suffix[1:].isalnum() and len(suffix) <= 12 else ""


KINDS = (Kind("zip", (".zip",), units=units, magic=(b"PK\x03\x04", b"PK\x05\x06")),)
