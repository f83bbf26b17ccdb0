"""Pictures that unpack to too much, or end too early."""

from __future__ import annotations

import io
import struct
import zlib


def png(
    width: int, height: int, data: bytes = b"", chunks: tuple[tuple[bytes, bytes], ...] = (), packed: bytes = b""
) -> bytes:
    """A PNG of this size that holds `data`, and other chunks before it."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">L", len(body)) + name + body + struct.pack(">L", zlib.crc32(name + body))

    head = chunk(b"IHDR", struct.pack(">LLBBBBB", width, height, 8, 2, 0, 0, 0))
    rest = b"".join(chunk(name, body) for name, body in chunks)
    return b"\x89PNG\r\n\x1a\n" + head + rest + chunk(b"IDAT", packed or zlib.compress(data, 9)) + chunk(b"IEND", b"")


def picture(form: str, width: int = 200, height: int = 100) -> bytes:
    from PIL import Image

    made = Image.effect_noise((width, height), 60)
    buffer = io.BytesIO()
    made.convert("RGB").save(buffer, form)
    return buffer.getvalue()


def gif(frames: int) -> bytes:
    """An animation of single pixels."""
    head = b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\0\1\0\0\0" + b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\0"
    return head + frame * frames + b";"


def compressed_text(megabytes: int) -> bytes:
    """A small PNG with a comment that unpacks to `megabytes`."""
    comment = b"Comment\0\0" + zlib.compress(b"x" * (megabytes * 2**20), 9)
    return png(1, 1, b"\0\xff\0\0", ((b"zTXt", comment),))


def circular_tiff() -> bytes:
    """A TIFF whose directory names itself as the next."""
    entries = [(256, 4, 1, 1), (257, 4, 1, 1), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8)]
    entries += [(277, 3, 1, 1), (278, 4, 1, 1), (279, 4, 1, 1)]
    body = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHLL", *entry) for entry in entries)
    return b"II*\0" + struct.pack("<L", 8) + body + struct.pack("<L", 8)


def white(width: int, height: int) -> bytes:
    """A PNG of one colour: nothing to store, much to unpack."""
    packer, row = zlib.compressobj(9), b"\0" + b"\xff" * 3 * width
    return png(width, height, packed=b"".join([*(packer.compress(row) for _ in range(height)), packer.flush()]))
