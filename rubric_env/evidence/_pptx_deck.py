"""The parts of a deck: slides in their order, what they inherit from, comments and sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from rubric_env.evidence._extract import Unreadable
from rubric_env.evidence._ooxml import A, P, Package, R, Relationship, descendants
from rubric_env.evidence._pptx_comments import comment_authors
from rubric_env.evidence._pptx_geometry import Box, Frame, frame, number, points
from rubric_env.evidence._pptx_look import Look

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from rubric_env.evidence._pptx_shapes import Shape
    from rubric_env.evidence._reading import Reading

MAIN = "ppt/presentation.xml"

SLIDES = 1000
"""Slides of one deck that are read."""

_SLIDE_PART = re.compile(r"ppt/slides/slide(\d+)\.xml", re.IGNORECASE)
_P14 = "{http://schemas.microsoft.com/office/powerpoint/2010/main}"

_PREFIXES = {"a": A, "p": P, "r": R}

_FAMILIES = {"ctrTitle": "title", "subTitle": "body", "obj": "body", "": "body"}
"""Placeholders that take after another of the master."""

_FOR_FOOTERS = ("dt", "ftr", "sldNum", "hdr")


@dataclass
class Sheet:
    """A slide, a layout or a master, with what it takes after."""

    part: str
    root: Element
    links: dict[str, Relationship]
    look: Look
    parent: Sheet | None = None

    @property
    def chain(self) -> Iterator[Sheet]:
        """Itself, its layout, its master."""
        sheet: Sheet | None = self
        while sheet is not None:
            yield sheet
            sheet = sheet.parent

    @property
    def name(self) -> str:
        common = self.root.find(f"{P}cSld")
        return (common.get("name") or "") if common is not None else ""

    @property
    def shapes(self) -> Element | None:
        return self.root.find(f"{P}cSld/{P}spTree")

    def takes_after(self, placeholder: Element) -> list[Element]:
        """The placeholders of layout and master that one on this sheet inherits from, the nearest first."""
        found = []
        wanted = placeholder
        for level, sheet in enumerate(self.chain):
            if level and (match := sheet._match(wanted)) is not None:
                found.append(match[0])
                wanted = match[1]
        return found

    def _match(self, wanted: Element) -> tuple[Element, Element] | None:
        kind, index = wanted.get("type", ""), wanted.get("idx", "0")
        family = _FAMILIES.get(kind, kind)
        best = None
        for shape, mark in self._placeholders:
            other = mark.get("type", "")
            # The master has one of each family; on a layout the number tells several bodies apart.
            if self.parent is not None and mark.get("idx", "0") == index and kind not in _FOR_FOOTERS:
                return shape, mark
            if best is None and _FAMILIES.get(other, other) == family:
                best = shape, mark
        return best

    @cached_property
    def _placeholders(self) -> list[tuple[Element, Element]]:
        if self.shapes is None:
            return []
        found = ((shape, placeholder_of(shape)) for shape in descendants(self.shapes, f"{P}sp", f"{P}pic"))
        return [(shape, mark) for shape, mark in found if mark is not None]


@dataclass
class Entry:
    """One slide in the order of the presentation: its part, and its id there."""

    part: str
    identity: str = ""


@dataclass
class Deck:
    """Raises Unreadable when it holds nothing of a presentation. `broken`: what is wrong with its list of slides."""

    package: Package
    reading: Reading
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shown: dict[str, list[Shape]] = {}
        self.sheets: dict[str, Sheet] = {}
        self.images: dict[str, tuple[str, list[int]]] = {}
        self._missing: set[str] = set()
        self.main = MAIN
        self._root = self._presentation()
        self.links = self.package.relationships(self.main)

    def _presentation(self) -> Element | None:
        try:
            self.main = self.package.main(MAIN)
            return self.package.xml(self.main)
        except Unreadable as error:
            if not self._slide_parts:
                raise
            self.reading.lost("the presentation's own part", error)
        try:
            return self.xml(self.main, recover=True)
        except Unreadable:
            return None

    @cached_property
    def size(self) -> Box:
        """Of a slide; 10 × 7.5 inches when the file does not say."""
        element = self._root.find(f"{P}sldSz") if self._root is not None else None
        width, height = (points(element.get(name)) if element is not None else None for name in ("cx", "cy"))
        return Box(0, 0, width or 720.0, height or 540.0)

    def shown_number(self, place: int) -> str:
        """What the slide in this place shows as its number."""
        first = self._root.get("firstSlideNum") if self._root is not None else None
        return str(place - 1 + int(number(first, 1)))

    @cached_property
    def authors(self) -> dict[str, str]:
        """Of comments, by id."""
        return comment_authors(self)

    @property
    def text_style(self) -> Element | None:
        return self._root.find(f"{P}defaultTextStyle") if self._root is not None else None

    @cached_property
    def slides(self) -> list[Entry]:
        """In the order shown. Entries that lead nowhere take the slide parts that no entry names, in their order."""
        listed = [Entry(self._target(entry), entry.get("id") or "") for entry in self._listed]
        seen: set[str] = set()
        for entry in listed:
            if entry.part.casefold() in seen:
                entry.part = ""  # no slide is shown twice; a list that says so is as broken as one that leads nowhere
            seen.add(entry.part.casefold())
        left = [part for part in self._slide_parts if part.casefold() not in seen]
        lost = [entry for entry in listed if not entry.part]
        if not listed and left:
            self.broken.append("its list of slides is missing: they are in the order of their file numbers")
            listed, left = [Entry(part) for part in left], []
        elif lost:
            self.broken.append(f"its list of slides is broken: {len(lost)} of {len(listed)} entries lead to no slide")
            for entry, part in zip(lost, left, strict=False):
                entry.part = part
            left = left[len(lost) :]
        if left:
            self.broken.append(
                f"{counted(len(left), 'slides')} in the file that the presentation does not list, not read"
            )
        return listed

    @cached_property
    def _slide_parts(self) -> list[str]:
        """By number."""
        names = (info.filename.replace("\\", "/").lstrip("/") for info in self.package.archive.members)
        numbered = [(int(match[1]), name) for name in names if (match := _SLIDE_PART.fullmatch(name))]
        return [name for _, name in sorted(numbered)]

    @property
    def _listed(self) -> list[Element]:
        return list(descendants(self._root, f"{P}sldId")) if self._root is not None else []

    def _target(self, entry: Element) -> str:
        link = self.links.get(entry.get(f"{R}id") or "")
        real = link is not None and link.kind == "slide" and not link.external and link.target in self.package
        return link.target if link is not None and real else ""

    def sections(self) -> Iterator[tuple[str, list[int]]]:
        """Their names, with the numbers of their slides."""
        numbers = {entry.identity: place for place, entry in enumerate(self.slides, 1)}
        for section in self._root.iter(f"{_P14}section") if self._root is not None else ():
            members = [numbers[one.get("id", "")] for one in section.iter(f"{_P14}sldId") if one.get("id") in numbers]
            yield section.get("name") or "", members

    def xml(self, part: str, *, recover: bool = False) -> Element:
        """A part. Raises Unreadable when it is missing or broken: neither is a failure of ours."""
        if part not in self.package:
            raise Unreadable(f"its part is missing ({part})")
        return self.package.xml(part, recover=recover)

    def slide(self, part: str, address: str) -> Sheet:
        """Raises Unreadable when nothing of it can be read."""
        return self._sheet(part, address, ("slideLayout", "slideMaster"))

    def _sheet(self, part: str, address: str, above: tuple[str, ...]) -> Sheet:
        try:
            root = self.xml(part)
        except Unreadable as error:
            root = _declared(self.xml(part, recover=True))
            self.reading.lost(f"some of {address}", error)
        links = self.package.relationships(part)
        parent = self._parent(links, address, above) if above else None
        look = parent.look if parent else self._look(root, links, address)
        return Sheet(part, root, links, look.mapped_by(root.find(f"{P}clrMapOvr")), parent)

    def _parent(self, links: dict[str, Relationship], address: str, above: tuple[str, ...]) -> Sheet | None:
        """The layout of a slide, the master of a layout; without its layout a slide takes after the deck's master."""
        own = [link.target for link in links.values() if link.kind == above[0] and not link.external]
        if not own:
            self._lost_once("", f"what {address} takes over", "it names no layout")
        masters = [link.target for link in self.links.values() if link.kind == "slideMaster" and not link.external]
        for part, higher in (*((part, above[1:]) for part in own), *((part, ()) for part in masters)):
            try:
                if part not in self.sheets:
                    self.sheets[part] = self._sheet(part, part, higher)
                return self.sheets[part]
            except Unreadable as error:
                self._lost_once(part, f"what slides take over from {part}", error)
        return None

    def _lost_once(self, key: str, address: str, error: object) -> None:
        if key not in self._missing:
            self._missing.add(key)
            self.reading.lost(address, error)

    def _look(self, master: Element, links: dict[str, Relationship], address: str) -> Look:
        mapped = master.find(f"{P}clrMap")
        theme = None
        try:
            named = [link.target for link in links.values() if link.kind == "theme"]
            if not named:
                raise Unreadable("it names none")
            theme = self.xml(named[0])
        except Unreadable as error:
            self.reading.lost(f"the theme of {address}", error)
        return Look(theme, dict(mapped.attrib) if mapped is not None else {})


def _declared(root: Element) -> Element:
    """A recovered tree whose writer forgot to declare a namespace, with the names that it meant."""
    for element in root.iter():
        for name in [element.tag, *element.attrib] if isinstance(element.tag, str) else ():
            prefix, colon, rest = name.partition(":")
            if not colon or prefix not in _PREFIXES or not rest.isalnum():
                continue
            if name == element.tag:
                element.tag = _PREFIXES[prefix] + rest
            else:
                element.set(_PREFIXES[prefix] + rest, element.get(name))
    return root


def counted(count: int, names: str) -> str:
    """`1 slide`, `2 slides`."""
    return f"{count} {names if count != 1 else names.removesuffix('s')}"


def placeholder_of(shape: Element) -> Element | None:
    """Its `p:ph`, which says which placeholder a shape fills."""
    return shape.find(f"*/{P}nvPr/{P}ph")


def frame_of(shape: Element) -> Frame | None:
    """Its own place, without what it may inherit."""
    for path in (f"{P}spPr/{A}xfrm", f"{P}xfrm", f"{P}grpSpPr/{A}xfrm"):
        if (element := shape.find(path)) is not None:
            return frame(element)
    return None
