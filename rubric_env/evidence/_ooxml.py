"""What docx, xlsx and pptx files have in common: parts, relationships, both namespaces, alternatives, properties."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rubric_env.evidence._extract import Unit, Unreadable
from rubric_env.evidence._reading import Reading
from rubric_env.evidence._xml import parse
from rubric_env.evidence._zip import Archive, Missing

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_BASE = "http://schemas.openxmlformats.org/"
W = f"{{{_BASE}wordprocessingml/2006/main}}"
P = f"{{{_BASE}presentationml/2006/main}}"
S = f"{{{_BASE}spreadsheetml/2006/main}}"
A = f"{{{_BASE}drawingml/2006/main}}"
C = f"{{{_BASE}drawingml/2006/chart}}"
DGM = f"{{{_BASE}drawingml/2006/diagram}}"
R = f"{{{_BASE}officeDocument/2006/relationships}}"
M = f"{{{_BASE}officeDocument/2006/math}}"
MC = f"{{{_BASE}markup-compatibility/2006}}"
V = "{urn:schemas-microsoft-com:vml}"

_STRICT = {
    b"http://purl.oclc.org/ooxml/" + strict: _BASE.encode() + transitional
    for strict, transitional in (
        (b"wordprocessingml/main", b"wordprocessingml/2006/main"),
        (b"presentationml/main", b"presentationml/2006/main"),
        (b"spreadsheetml/main", b"spreadsheetml/2006/main"),
        (b"drawingml/", b"drawingml/2006/"),
        (b"officeDocument/", b"officeDocument/2006/"),
    )
}
"""ISO Strict files differ in their namespaces alone, as far as a reader of text is concerned."""

_ENTITY = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))

_PROPERTIES = ("title", "subject", "creator", "keywords", "description", "lastModifiedBy", "category", "contentStatus")


@dataclass(frozen=True, slots=True)
class Relationship:
    """`kind` is the last step of its type (`slide`, `image`); `target` a part's name, or a URL when `external`."""

    kind: str
    target: str
    external: bool


class Package:
    """The OPC container that is being read. Raises Unreadable when it is none."""

    def __init__(self, reading: Reading) -> None:
        self.archive = Archive(reading.path)
        self._reading = reading
        self._broken: set[str] = set()

    def __contains__(self, part: str) -> bool:
        return part in self.archive

    def xml(self, part: str, *, recover: bool = False) -> Element:
        """A root element, in the usual namespaces. Raises KeyError for a missing part, Unreadable for a broken one."""
        return parse(self.bytes(part), recover=recover)

    def optional(self, part: str) -> Element | None:
        """A root element that a file may do without. None when there is none; a broken one is named as lost."""
        try:
            return self.xml(part)
        except Missing:
            return None
        except Unreadable as error:
            if part not in self._broken:
                self._broken.add(part)
                self._reading.lost(part, error)
            return None

    def bytes(self, part: str) -> bytes:
        """A part in the usual namespaces."""
        data = self.archive.read(part)
        if part.lower().endswith((".xml", ".rels")) and any(declared in data for declared in _ENTITY):
            raise Unreadable(f"{part} declares entities, which no office file may")
        if b"purl.oclc.org" in data:
            for strict, transitional in _STRICT.items():
                data = data.replace(strict, transitional)
        return data

    def relationships(self, part: str = "") -> dict[str, Relationship]:
        """Of a part, or of the package, by id; empty where there are none or they cannot be read."""
        folder, name = posixpath.split(part)
        root = self.optional(posixpath.join(folder, "_rels", f"{name}.rels"))
        found: dict[str, Relationship] = {}
        for entry in root if root is not None else ():
            target, kind = entry.get("Target") or "", (entry.get("Type") or "").rpartition("/")[2]
            external = entry.get("TargetMode") == "External"
            if not external:
                # A target may be absolute, and percent-encoded.
                target = posixpath.normpath(posixpath.join("/", folder, unquote(target.partition("#")[0]))).lstrip("/")
            found[entry.get("Id") or ""] = Relationship(kind, target, external)
        return found

    def main(self, usual: str) -> str:
        """The name of the main part; `usual` is where it is in most files. Raises Unreadable when there is none."""
        named = [link.target for link in self.relationships().values() if link.kind == "officeDocument"]
        for part in (*named, usual):
            if part in self:
                return part
        raise Unreadable(f"its main part {usual} is missing")

    def properties(self) -> Iterator[Unit]:
        """Title, author and other words that stand in no page."""
        named = [link.target for link in self.relationships().values() if link.kind == "core-properties"]
        root = self.optional((named or ["docProps/core.xml"])[0])
        for element in root if root is not None else ():
            name = element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""
            if name in _PROPERTIES and (text := (element.text or "").strip()):
                yield Unit(f"metadata/{name}", text, "metadata")

    def embedded(self, reading: Reading) -> Iterator[Unit]:
        """Files inside the file: listed, and read where they have a reader."""
        from rubric_env.evidence._embedded import BYTES, read_embedded

        inside = [info for info in self.archive.members if "/embeddings/" in info.filename]
        for info in inside:
            name = posixpath.basename(info.filename)
            yield Unit(f"embedded/{name}", f"{info.file_size:,} bytes", "embedded file")
            try:
                data = self.archive.read(info.filename, BYTES)
            except Unreadable as error:
                reading.note(str(error))
            else:
                yield from read_embedded(data, name, f"embedded/{name}", reading)
        if inside:
            reading.note(f"{len(inside)} embedded file{'s' if len(inside) > 1 else ''}")


def children(element: Element) -> Iterator[Element]:
    """The child elements; of alternatives (`mc:AlternateContent`) those of the first that holds anything."""
    for child in element:
        if child.tag == f"{MC}AlternateContent":
            options = [option for option in child if len(option)]
            if options:
                yield from children(options[0])
        elif isinstance(child.tag, str):
            yield child


def descendants(element: Element, *tags: str) -> Iterator[Element]:
    """Elements with one of `tags` below `element`, in document order, each alternative once."""
    for child in children(element):
        if child.tag in tags:
            yield child
        yield from descendants(child, *tags)


def math_text(element: Element) -> str:
    """A formula in one line: `(a+b)/(2)`, `x^(2)`, `√(y)`."""
    parts = []
    for child in children(element):
        tag = child.tag.removeprefix(M)
        match tag:
            case "t":
                parts.append(child.text or "")
            case "f":
                parts.append(f"({_math(child, 'num')})/({_math(child, 'den')})")
            case "sSup":
                parts.append(f"{_math(child, 'e')}^({_math(child, 'sup')})")
            case "sSub":
                parts.append(f"{_math(child, 'e')}_({_math(child, 'sub')})")
            case "sSubSup":
                parts.append(f"{_math(child, 'e')}_({_math(child, 'sub')})^({_math(child, 'sup')})")
            case "rad":
                parts.append(f"{_math(child, 'deg')}√({_math(child, 'e')})")
            case "nary":
                sign = next((chr_.get(f"{M}val") for chr_ in child.iter(f"{M}chr")), "∫")
                parts.append(f"{sign}_({_math(child, 'sub')})^({_math(child, 'sup')}) {_math(child, 'e')}")
            case _:
                parts.append(math_text(child))
    return "".join(parts)


def _math(element: Element, name: str) -> str:
    found = element.find(f"{M}{name}")
    return "" if found is None else math_text(found)
