"""Office files for tests: made by the usual libraries, then changed in their XML where those cannot write it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

STRICT = "http://purl.oclc.org/ooxml/"


def saved(document: object) -> bytes:
    """The bytes of anything with `save(stream)`."""
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def changed(data: bytes, changes: Mapping[str, Callable[[str], str] | str | bytes | None]) -> bytes:
    """A package with some parts rewritten: a function gets the text, None removes the part, other names are added."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            change = changes.get(info.filename, old.read(info))
            if callable(change):
                change = change(old.read(info).decode())
            if change is not None:
                new.writestr(info, change)
        for name in changes.keys() - set(old.namelist()):
            if (added := changes[name]) is not None and not callable(added):
                new.writestr(name, added)
    return buffer.getvalue()


def strict(data: bytes) -> bytes:
    """The same package in ISO Strict namespaces."""
    parts = {
        "http://schemas.openxmlformats.org/wordprocessingml/2006/": STRICT + "wordprocessingml/",
        "http://schemas.openxmlformats.org/presentationml/2006/": STRICT + "presentationml/",
        "http://schemas.openxmlformats.org/spreadsheetml/2006/": STRICT + "spreadsheetml/",
        "http://schemas.openxmlformats.org/drawingml/2006/": STRICT + "drawingml/",
        "http://schemas.openxmlformats.org/officeDocument/2006/": STRICT + "officeDocument/",
    }

    def rewrite(text: str) -> str:
        for transitional, iso in parts.items():
            text = text.replace(transitional, iso)
        return text

    with zipfile.ZipFile(io.BytesIO(data)) as package:
        names = [name for name in package.namelist() if name.endswith((".xml", ".rels"))]
    return changed(data, dict.fromkeys(names, rewrite))


def encrypted() -> bytes:
    """What a file with a password begins with, as far as a reader without the password can tell."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + "EncryptedPackage".encode("utf-16-le") + bytes(500)
