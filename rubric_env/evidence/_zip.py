"""Zip containers from a stranger: names found as office programs find them, and nothing unpacked beyond its caps."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from rubric_env.evidence._extract import Unreadable

MEMBERS = 50_000
"""Files in one container: an office file has a tenth of this at most."""

MEMBER_BYTES = 64 * 2**20
"""Unpacked, of one member."""

TOTAL_BYTES = 512 * 2**20
"""Unpacked, of all members that are read."""


class Missing(Unreadable, KeyError):
    """No member has this name."""

    __str__ = Exception.__str__


_ENCRYPTED = 0x1
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError, OSError)
"""What zipfile raises for members that are damaged, or packed in a way that it does not know."""
_CHUNK = 2**20


class Archive:
    """The members of a zip file. Raises Unreadable when it is none, or has more members than `MEMBERS`.

    Names are compared as office programs do: without case, with `/`, without a leading one.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
            raise Unreadable(f"it is no zip container, or a damaged one ({error})") from None
        self.members = self._zip.infolist()
        """In the order of the container's directory."""
        if len(self.members) > MEMBERS:
            raise Unreadable(f"it holds {len(self.members):,} files, more than {MEMBERS:,}")
        self._members = {_key(info.filename): info for info in self.members}
        self._read = 0

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._members

    def read(self, name: str, limit: int = MEMBER_BYTES) -> bytes:
        """A member's bytes. Raises Missing for a name that is not there, Unreadable for what cannot be unpacked.

        Of members with the same name the last one counts, as it does where an archive is unpacked.
        """
        return self.unpack(self._info(name), limit)

    def unpack(self, info: zipfile.ZipInfo, limit: int = MEMBER_BYTES) -> bytes:
        """The bytes of one of `members`. Raises Unreadable."""
        name = info.filename
        if info.flag_bits & _ENCRYPTED:
            raise Unreadable(f"{name} is encrypted")
        limit = min(limit, TOTAL_BYTES - self._read)
        parts, size = [], 0
        try:
            with self._zip.open(info) as member:
                while chunk := member.read(_CHUNK):
                    size += len(chunk)
                    if size > limit:
                        raise Unreadable(f"{name} unpacks to more than {limit // 2**20:,} MB")
                    parts.append(chunk)
        except _BROKEN as error:
            raise Unreadable(f"{name} cannot be unpacked ({error})") from None
        self._read += size
        return b"".join(parts)

    def head(self, name: str, size: int) -> bytes:
        """The first `size` bytes of a member, or all when it has fewer. Raises as `read` does."""
        info = self._info(name)
        try:
            with self._zip.open(info) as member:
                return member.read(size)
        except _BROKEN as error:
            raise Unreadable(f"{name} cannot be unpacked ({error})") from None

    def _info(self, name: str) -> zipfile.ZipInfo:
        if _key(name) not in self._members:
            raise Missing(f"{name} is missing")
        return self._members[_key(name)]


def _key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").casefold()
