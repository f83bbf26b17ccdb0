"""Pictures: what they are and how large, their texts of metadata, and a copy that a judge who sees can be shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading
from rubric_env.evidence._worker import LONG_SIDE

PIXELS = 200_000_000
"""A picture with more is a bomb: it unpacks to gigabytes."""

METADATA = 2000
"""Characters of one text of metadata that are kept."""

_DESCRIPTION, _COMMENT = 270, 37510
"""The EXIF tags ImageDescription and UserComment."""


def units(reading: Reading) -> Iterator[Unit]:
    """The picture in words; the picture itself goes into `pictures/`."""
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = PIXELS // 2  # twice this raises
    try:
        picture = Image.open(reading.path)
        size, form, frames = picture.size, picture.format, getattr(picture, "n_frames", 1)
        yield Unit("picture", _described(picture, size, form, frames))
        yield from _texts(picture)
        _keep(picture, reading)
    except Image.DecompressionBombError:
        raise Unreadable(f"it unpacks to more than {PIXELS:,} pixels") from None
    except UnidentifiedImageError:
        raise Unreadable("it is no picture that can be opened") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise Unreadable(f"it is a damaged picture ({error})") from None
    reading.note(f"picture, {size[0]:,} × {size[1]:,} pixels")
    reading.facts |= {"width": size[0], "height": size[1], "format": form, "frames": frames}


def _described(picture: Any, size: tuple[int, int], form: str | None, frames: int) -> str:
    blank = picture.convert("RGB").getextrema()
    parts = [f"{form} picture, {size[0]:,} × {size[1]:,} pixels"]
    if frames > 1:
        parts.append(f"{frames} frames, of which the first counts")
    if dpi := picture.info.get("dpi"):
        parts.append(f"{float(dpi[0]):.0f} dpi")
    if all(low == high for low, high in blank):
        parts.append("blank: one colour only (#" + "".join(f"{low:02x}" for low, _ in blank) + ")")
    return ", ".join(parts)


def _texts(picture: Any) -> Iterator[Unit]:
    found = {str(name): value for name, value in picture.info.items() if isinstance(value, str)}
    exif = picture.getexif()
    found |= {"description": exif.get(_DESCRIPTION), "comment": exif.get(_COMMENT)}
    for name, value in sorted(found.items()):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if isinstance(text, str) and text.strip("\0 \n"):
            yield Unit(f"metadata/{name[:40]}", text.strip("\0 \n")[:METADATA], "metadata")


def _keep(picture: Any, reading: Reading) -> None:
    from PIL import ImageOps

    picture.seek(0)
    small = ImageOps.exif_transpose(picture)
    small.thumbnail((LONG_SIDE, LONG_SIDE))
    if small.mode not in ("RGB", "L"):
        from PIL import Image

        # Transparent parts are seen on white, as office programs show them.
        ground = Image.new("RGBA", small.size, "white")
        small = Image.alpha_composite(ground, small.convert("RGBA")).convert("RGB")
    target = reading.folder / "pictures" / "page-001.png"
    target.parent.mkdir()
    small.save(target)
    drawn = [["pictures/page-001.png", 1, small.width, small.height]]
    reading.write("drawing.json", {"drawn": drawn, "note": "", "ours": False})


_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"RIFF")
KINDS = (Kind("image", _SUFFIXES, units=units, magic=_MAGIC),)
