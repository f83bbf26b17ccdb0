"""The kinds of files that are read. A new kind is one module here that lists its `KINDS`; nothing else names it."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

from rubric_env.evidence._extract import Kind, Unreadable
from rubric_env.evidence._zip import Archive

_NAMES = {
    **{suffix: suffix[1:] for suffix in (".pdf", ".docx", ".xlsx", ".xlsm", ".xls", ".ods", ".odt", ".doc")},
    **{suffix: suffix[1:] for suffix in (".pptx", ".pptm", ".ppsx", ".potx", ".ppt", ".odp", ".zip", ".gz", ".7z")},
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".bmp", ".webp"), "image"),
}
"""What is known by suffix though no reader is here yet."""

_LEGACY = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LEGACY_KINDS = (("WordDocument", "doc"), ("PowerPoint Document", "ppt"))
"""Binary office files without a reader, by the stream that holds their content."""

_ENCRYPTED = "EncryptedPackage"
"""The stream that an office file with a password keeps its content in."""

_MAGIC = (
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (_LEGACY, "office document"),
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"\x1f\x8b", "gz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
)
MEMBERS = 10_000
"""Of a zip file, looked at to tell its kind."""

_CONTAINERS = frozenset({"zip", "office document"})
"""Outer forms whose inner kind only the suffix tells."""


class NotRead(Exception):
    """No reader for this kind of file in this version: a gap of ours. `kind` names it."""

    def __init__(self, kind: str) -> None:
        super().__init__("not read by this version")
        self.kind = kind


@cache
def registry() -> tuple[Kind, ...]:
    """Every kind that has a reader, by name."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    return tuple(sorted((kind for module in modules for kind in module.KINDS), key=lambda kind: kind.name))


def kind_of(suffix: str, start: bytes) -> tuple[Kind, str] | None:
    """The reader for a file, by its first bytes and its lower-case suffix, and a note where the two disagree.

    None for what a worker process has to look into. What has no reader and is not known to be anything else is tried
    as text. Raises NotRead for a kind that this version cannot read, Unreadable for a file that is not what its name
    says.
    """
    claimed, actual = _claimed(suffix), _marked(suffix, start)
    known = next((name for magic, name in _MAGIC if start.startswith(magic)), "")
    if actual:
        return (
            None if actual.units else (actual, "" if actual is claimed else f"named {suffix[:20]!r}, is {actual.name}")
        )
    if known in _CONTAINERS or (claimed and claimed.units):
        return None
    if known and claimed:
        raise Unreadable(f"named {suffix}, but its content is {known}")
    if known:
        raise NotRead(known)
    if claimed:
        return claimed, ""
    return _text(), f"named {suffix}, is plain text" if suffix in _NAMES else ""


def identify(path: Path, suffix: str) -> tuple[Kind, str]:
    """The same for a file that a worker looks into: containers are told apart by what they contain.

    What is nothing else is text, which the parent reads.
    """
    with path.open("rb") as opened:
        start = opened.read(4096)
    claimed, actual = _claimed(suffix), _marked(suffix, start)
    if start.startswith(b"PK\x03\x04"):
        members = _members(path)
        inside = [kind for kind in registry() if any(member.startswith(kind.contains) for member in members)]
        if claimed in inside or (claimed and claimed.contains and not members):
            actual = claimed  # whose reader says best what is wrong with a container that does not open
        else:
            actual = next(iter(inside), actual)
    if start.startswith(_LEGACY):
        data = path.read_bytes()
        if _stream(_ENCRYPTED) in data:
            raise Unreadable("it is encrypted: a password is needed")
        inside = [kind for kind in registry() if any(_stream(name) in data for name in kind.contains)]
        if not inside:
            legacy = next((kind for name, kind in _LEGACY_KINDS if _stream(name) in data), "office document")
            if claimed:
                raise Unreadable(f"named {suffix}, but its content is {legacy}")
            raise NotRead(legacy)
        actual = claimed if claimed in inside else inside[0]
    if actual is None and claimed and not claimed.magic and not claimed.contains:
        actual = claimed
    if actual is not None and actual.units:
        return actual, "" if actual is claimed else f"named {suffix!r}, is {actual.name}"
    known = next((name for magic, name in _MAGIC if start.startswith(magic)), "")
    if claimed and not known:
        return _text(), f"named {suffix}, is plain text"
    if claimed:
        raise Unreadable(f"named {suffix}, but its content is {known}")
    raise NotRead(_NAMES.get(suffix, known) if known in _CONTAINERS else known)


def _text() -> Kind:
    return next(kind for kind in registry() if kind.name == "text")


def _claimed(suffix: str) -> Kind | None:
    return next((kind for kind in registry() if suffix in kind.suffixes), None)


def _marked(suffix: str, start: bytes) -> Kind | None:
    marked = [kind for kind in registry() if kind.magic and start.startswith(kind.magic)]
    return next((kind for kind in marked if suffix in kind.suffixes), marked[0] if marked else None)


def _stream(name: str) -> bytes:
    """How the directory of a binary office file spells a name."""
    return name.encode("utf-16-le")


def _members(path: Path) -> list[str]:
    """Names of members, and the media type that an OpenDocument file keeps in one of them."""
    try:
        archive = Archive(path)
        names = [member.filename for member in archive.members[:MEMBERS]]
        if "mimetype" in archive:
            names.append(f"mimetype:{archive.head('mimetype', 200).decode('latin-1')}")
        return names
    except Unreadable:
        return []
