"""XML that multiplies, nests without end, or asks for other files."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.evidence.office import changed


def _laugh(number: int) -> str:
    return f"&l{number};"


LAUGHS = '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{n} "{10 * _laugh(n - 1)}">' for n in range(1, 12))
"""10^11 laughs."""

QUADRATIC = f'<!ENTITY l11 "{"x" * 100_000}">'

DOCTYPES: Mapping[str, str] = MappingProxyType(
    {
        "multiplying": LAUGHS,
        "long": QUADRATIC,
        "of a file": '<!ENTITY l11 SYSTEM "file:///etc/passwd">',
        "of a server": '<!ENTITY l11 SYSTEM "http://127.0.0.1:9/x">',
        "of a parameter": '<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY l11 "y">',
    }
)

_DECLARATION = re.compile(r"^\s*(<\?xml[^>]*\?>)?")
_ROOT = re.compile(r"<([A-Za-z_][\w:.-]*)(\s[^>]*?)?(/?)>")


def with_entities(text: str, doctype: str, times: int = 1) -> str:
    """The same document with a DTD, and its entity used at the beginning of the root."""
    declared = _DECLARATION.match(text)
    assert declared is not None
    rest = text[declared.end() :]
    root = _ROOT.search(rest)
    assert root is not None
    name, attributes = root[1], root[2] or ""
    end = f"</{name}>" if root[3] else ""
    opened = f"<{name}{attributes}>{'&l11;' * times}{end}"
    return f"{declared[0]}<!DOCTYPE {name} [{doctype}]>{rest[: root.start()]}{opened}{rest[root.end() :]}"


def parts(data: bytes) -> list[str]:
    """The XML parts of a package."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        return [name for name in package.namelist() if name.endswith((".xml", ".rels"))]


def bombed(data: bytes, part: str, doctype: str, times: int = 1) -> bytes:
    """A package with entities in one of its parts."""
    change: Callable[[str], str] = lambda text: with_entities(text, doctype, times)  # noqa: E731
    return changed(data, {part: change})


def nest(opening: str, closing: str, depth: int, inside: str) -> str:
    return opening * depth + inside + closing * depth
