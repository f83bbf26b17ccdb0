"""Pictures of the workspace that go into a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

from rubric_env.office._problems import Refused

BYTES = 20 * 2**20
PIXELS = 50_000_000

_AS_THEY_ARE = frozenset({"PNG", "JPEG", "GIF"})


class Image(NamedTuple):
    """`data` in a format that every office program shows, with its size in pixels."""

    data: bytes
    width: int
    height: int

    @property
    def stream(self) -> io.BytesIO:
        return io.BytesIO(self.data)


def image(root: str, path: str) -> Image:
    """The picture at `path`, relative to the workspace. Raises Refused."""
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    base = Path(root).resolve()
    inside = path.removeprefix("/app") if path.startswith("/app/") else path
    try:
        file = (base / inside.lstrip("/")).resolve()
        if not file.is_relative_to(base):
            raise Refused(f"picture {path}: outside the workspace")
        if not file.is_file():
            raise Refused(f"picture {path}: no such file; list_files shows what there is")
        with file.open("rb") as opened:
            data = opened.read(BYTES + 1)
    except (ValueError, OSError) as error:
        raise Refused(f"picture {path[:200]}: {error}") from None
    if len(data) > BYTES:
        raise Refused(f"picture {path}: larger than {BYTES // 2**20} MB")
    Pillow.MAX_IMAGE_PIXELS = PIXELS
    try:
        with Pillow.open(io.BytesIO(data)) as opened:
            width, height = opened.size
            if not 0 < width * height <= PIXELS:
                raise Refused(f"picture {path}: {width} × {height} pixels, more than {PIXELS:,}")
            opened.load()
            if opened.format not in _AS_THEY_ARE:
                converted = io.BytesIO()
                opened.convert("RGBA").save(converted, "PNG")
                data = converted.getvalue()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Pillow.DecompressionBombError) as error:
        raise Refused(f"picture {path}: not a picture that can be shown ({type(error).__name__})") from None
    return Image(data, width, height)
