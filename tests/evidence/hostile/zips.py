"""Zip containers that unpack to too much, lie, or name what they should not."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping

MEGABYTE = 2**20


def packed(members: Mapping[str, bytes] | Iterable[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    """A zip of these members; names may come twice."""
    pairs = members.items() if isinstance(members, Mapping) else members
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that come twice
        for name, data in pairs:
            stored = name == "mimetype"  # where it is not compressed, it can be seen from outside
            archive.writestr(name, data, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def flat(megabytes: int = 100, name: str = "zeros.txt") -> bytes:
    """One member of zeros, a thousandth of its size."""
    return packed({name: bytes(megabytes * MEGABYTE)})


def overlapping(members: int = 2000, megabytes: int = 15) -> bytes:
    """Every entry of the directory leads to the same compressed bytes."""
    return _container([(f"{number:05}.txt", 0) for number in range(members)], bytes(megabytes * MEGABYTE))


def lying(declared: int, real: int) -> bytes:
    """A member that says that it unpacks to `declared` bytes and unpacks to `real`."""
    return _container([("a.txt", 0)], b"x" * real, declared=declared)


def zip64(declared: int = 2**62) -> bytes:
    """A member whose ZIP64 field claims four million terabytes, and whose bytes are nine."""
    extra = struct.pack("<HHQQ", 1, 16, declared, 9)
    return _container([("a.txt", 0)], b"plain.txt", declared=0xFFFFFFFF, extra=extra, method=0)


def nameless() -> bytes:
    """A member without a name."""
    return _container([("", 0)], b"the text of nobody")


def nested(depth: int, inside: bytes = b"the innermost text") -> bytes:
    """Archives in archives, a text in the last."""
    data, name = inside, "innermost.txt"
    for level in range(depth):
        data, name = packed({name: data, f"beside {level}.txt": b"beside"}), f"level{level}.zip"
    return data


def branching(depth: int = 6, width: int = 12) -> bytes:
    """Archives of equal archives: three million texts at the bottom."""
    data, name = b"text " * 1000, "a.txt"
    for level in range(depth):
        data = packed({f"{number}-{name}": data for number in range(width)})
        name = f"{level}.zip"
    return data


def method(number: int, data: bytes = b"some bytes") -> bytes:
    """A member compressed by `number`, which its bytes are not."""
    return _container([("a.txt", 0), ("b.txt", 0)], data, method=number, raw=data)


def _container(
    entries: list[tuple[str, int]],
    data: bytes,
    *,
    declared: int | None = None,
    extra: bytes = b"",
    method: int = 8,
    raw: bytes | None = None,
) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = raw if raw is not None else data if method == 0 else deflater.compress(data) + deflater.flush()
    size = len(data) if declared is None else declared
    crc = zlib.crc32(data)
    packed_size = 0xFFFFFFFF if extra else len(body)
    first = entries[0][0].encode()
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, method, 0, 0, crc, packed_size, size, len(first), len(extra))
    file = local + first + extra + body
    directory = b""
    for name, offset in entries:
        encoded = name.encode()
        head = (45, 45, 0, method, 0, 0, crc, packed_size, size, len(encoded), len(extra), 0, 0, 0, 0, offset)
        directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", *head)
        directory += encoded + extra
    count = min(len(entries), 0xFFFF)
    return file + directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), len(file), 0)
