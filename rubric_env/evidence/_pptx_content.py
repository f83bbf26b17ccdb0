"""What stands in a shape, in passages with an address: text, tables, charts, diagrams, pictures, embedded files."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rubric_env.evidence._drawings import chart, smart_art
from rubric_env.evidence._embedded import BYTES, read_embedded
from rubric_env.evidence._extract import Unit, Unreadable
from rubric_env.evidence._ooxml import DGM, A, C, P, R, descendants
from rubric_env.evidence._pptx_deck import Deck, Sheet, counted
from rubric_env.evidence._pptx_geometry import share
from rubric_env.evidence._pptx_runs import Context, judge_contrast, link_of
from rubric_env.evidence._pptx_shapes import FOOTERS, Shape, other_styles
from rubric_env.evidence._pptx_text import Body

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from rubric_env.evidence._zip import Archive

_CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_SVG = "{http://schemas.microsoft.com/office/drawing/2016/SVG/main}"
_DECORATIVE = "{http://schemas.microsoft.com/office/drawing/2017/decorative}decorative"
_ON = ("1", "true")
_BARE = ("", "{2D5ABB26-0587-4C30-8999-92F81FD0307C}", "{5940675A-B579-460E-94D1-54222C63F5DA}")
"""Styles of tables that paint nothing: none, and the two called "No Style"."""

VECTORS = frozenset({"emf", "wmf", "svg", "emz", "wmz"})
"""Drawings, which have no pixels of their own."""

HEAD = 256 * 2**10
"""Bytes of a picture that tell its size."""

MERGED = "″"
"""Stands in the cells that a merged cell covers."""


@dataclass
class Content:
    """Reads the shapes of one slide, layout or master."""

    deck: Deck
    sheet: Sheet
    context: Context

    def units(self, shape: Shape) -> Iterator[Unit]:
        """What a shape says; nothing for one that says nothing."""
        match shape.kind:
            case "table":
                yield from self._table(shape)
            case "chart":
                yield Unit(shape.address, "\n".join(self._chart(shape)))
            case "diagram":
                yield from self._diagram(shape)
            case "embedded object":
                yield from self._embedded(shape)
            case "picture":
                yield from self._picture(shape)
            case "video" | "audio":
                yield Unit(shape.address, self._media(shape), shape.kind)
            case "ink":
                pass
            case _:
                yield from self._text(shape)
        if shape.alt and shape.kind != "picture":
            yield Unit(f"{shape.address}/alt", shape.alt, "alt text")

    def _text(self, shape: Shape) -> Iterator[Unit]:
        if shape.body is not None:
            text, mark = shape.body.shown(shape.ground)
        else:
            text, mark = "\n".join(paragraphs(shape.element)), ""
        link = link_of(shape.click, self.context).strip()
        text = "\n".join(filter(None, (text, link and f"[the shape links {link}]")))
        if text:
            role = FOOTERS.get(shape.placeholder, "")
            yield Unit(shape.address, text, ", ".join(filter(None, (role, mark))))

    def _table(self, shape: Shape) -> Iterator[Unit]:
        table = next(descendants(shape.element, f"{A}tbl"), None)
        if table is None:
            raise Unreadable("its table is missing")
        styles = other_styles(self.deck, list(self.sheet.chain)[-1].root)
        styled = (table.findtext(f"{A}tblPr/{A}tableStyleId") or "").strip().upper() not in _BARE
        rows = [list(row.iterchildren(f"{A}tc")) for row in table.iterchildren(f"{A}tr")]
        shape.facts |= {"rows": len(rows), "columns": max(map(len, rows), default=0)}
        yield Unit(shape.address, f"table, {counted(len(rows), 'rows')}, {counted(shape.facts['columns'], 'columns')}")
        for place, cells in enumerate(rows, 1):
            texts = []
            for cell in cells:
                element = cell.find(f"{A}txBody")
                fill = self.sheet.look.fill(cell.find(f"{A}tcPr"))
                ground = fill.colour if fill and fill.painted else None if styled else shape.ground
                text = ""
                if element is not None:
                    body = Body(element, styles, self.context, plain=True)
                    judge_contrast(body.runs, ground)
                    shape.cells.append(body)
                    text, mark = body.shown(ground)
                    text = " / ".join(text.split("\n"))
                    text = f"[{mark}: {text}]" if mark and text else text
                if cell.get("hMerge") in _ON or cell.get("vMerge") in _ON:
                    text = f"{MERGED} [covered by the merged cell: {text}]" if text else MERGED
                texts.append(text)
            if any(text.strip(MERGED) for text in texts):
                yield Unit(f"{shape.address}/row {place}", " | ".join(texts))

    def _chart(self, shape: Shape) -> list[str]:
        reference = next(descendants(shape.element, f"{C}chart", f"{_CX}chart"), None)
        root = self._part(reference, "id")
        lines = chart(root)
        shape.facts["chart"] = lines[0]
        return lines

    def _diagram(self, shape: Shape) -> Iterator[Unit]:
        reference = next(descendants(shape.element, f"{DGM}relIds"), None)
        lines: list[str] = []
        try:
            lines = smart_art(self._part(reference, "dm"))
        except Unreadable as error:
            self.deck.reading.lost(f"the data of {shape.address}", error)
        # What PowerPoint drew of it, which names no diagram that it belongs to: of use where there is one.
        drawings = [link.target for link in self.sheet.links.values() if link.kind == "diagramDrawing"]
        if not lines and len(drawings) == 1:
            lines = list(paragraphs(self.deck.xml(drawings[0])))
        yield Unit(shape.address, "\n".join(["diagram", *(f"- {line}" for line in lines)]))

    def _embedded(self, shape: Shape) -> Iterator[Unit]:
        element = next(descendants(shape.element, f"{P}oleObj"), None)
        if element is None:
            raise Unreadable("its object is missing")
        kind = " ".join(filter(None, (element.get("progId"), element.get("name")))) or "object"
        link = self.sheet.links.get(element.get(f"{R}id") or "")
        file = self._file(link.target, external=link.external) if link else "its file is missing"
        yield Unit(shape.address, f"{kind}: {file}", "embedded file")
        if link is not None and not link.external and link.target in self.deck.package:
            data = self.deck.package.archive.read(link.target, BYTES)
            yield from read_embedded(data, link.target, shape.address, self.deck.reading)

    def _media(self, shape: Shape) -> str:
        properties = shape.element.find(f"*/{P}nvPr")
        found: list[str] = []
        for element in properties.iter() if properties is not None else ():
            for name in (f"{R}embed", f"{R}link"):
                link = self.sheet.links.get(element.get(name) or "")
                if link is not None:
                    found.append(self._file(link.target, external=link.external))
        return ", ".join(dict.fromkeys(found)) or "its file is missing"

    def _file(self, target: str, *, external: bool) -> str:
        if external:
            return f"linked, not in the file: {target}"
        sizes = [info.file_size for info in self.deck.package.archive.members if _same(info.filename, target)]
        name = posixpath.basename(target)
        return f"{name}, {sizes[0]:,} bytes" if sizes else f"{name}, which is missing"

    def _picture(self, shape: Shape) -> Iterator[Unit]:
        blip = next(descendants(shape.element, f"{A}blip"), None)
        facts = self._image(shape, blip)
        shape.facts["picture"] = facts
        words = ["picture", facts["kind"]]
        if "pixels" in facts:
            words.append("{:,} × {:,} pixels".format(*facts["pixels"]))
        if "crop" in facts:
            words.append("cropped")
        decorative = any(one.get("val") in _ON for one in shape.element.iter(_DECORATIVE))
        text = shape.alt or ("marked as decoration" if decorative else "no alt text")
        link = link_of(shape.click, self.context)
        yield Unit(shape.address, text + link, ", ".join([*words, *(["alt text"] if shape.alt else [])]))
        vector = next((one for one in shape.element.iter(f"{_SVG}svgBlip")), None)
        if vector is not None and (lines := self._drawn(vector)):
            yield Unit(f"{shape.address}/svg", "\n".join(lines), "text in the picture")

    def _image(self, shape: Shape, blip: Element | None) -> dict[str, Any]:
        """Kind, size and use of a picture. What is wrong with it is said in its kind."""
        identity = blip.get(f"{R}embed") if blip is not None else None
        linked = blip.get(f"{R}link") if blip is not None else None
        link = self.sheet.links.get(identity or linked or "")
        if link is None:
            return {"kind": "its file is missing"}
        if link.external:
            return {"kind": f"linked, not in the file: {link.target}"}
        suffix = posixpath.splitext(link.target)[1].lstrip(".").lower()
        if link.target not in self.deck.package:
            return {"kind": "its file is missing", "part": link.target}
        facts: dict[str, Any] = {"kind": suffix.upper() or "unknown format", "part": link.target}
        if suffix not in VECTORS:
            if link.target not in self.deck.images:
                self.deck.images[link.target] = _opened(self.deck.package.archive, link.target)
            form, size = self.deck.images[link.target]
            facts["kind"] = form or f"{facts['kind']} that does not open"
            if size:
                facts["pixels"] = size
        crop = shape.element.find(f"{P}blipFill/{A}srcRect")
        shares = [share(crop.get(side)) for side in "ltrb"] if crop is not None else []
        if any(shares):
            facts["crop"] = [round(one, 4) for one in shares]
        return facts

    def _drawn(self, vector: Element) -> list[str]:
        """The words of an SVG picture."""
        try:
            root = self._part(vector, "embed")
        except Unreadable:
            return []
        texts = (element for element in root.iter() if str(element.tag).rpartition("}")[2] == "text")
        return list(filter(None, (" ".join("".join(text.itertext()).split()) for text in texts)))

    def _part(self, reference: Element | None, name: str) -> Element:
        """The part that an element refers to. Raises Unreadable when it leads nowhere."""
        link = self.sheet.links.get((reference.get(f"{R}{name}") if reference is not None else None) or "")
        if link is None or link.external:
            raise Unreadable("its part is missing")
        return self.deck.xml(link.target)


def paragraphs(element: Element) -> Iterator[str]:
    """The bare text in an element."""
    for paragraph in descendants(element, f"{A}p"):
        if text := "".join(part.text or "" for part in descendants(paragraph, f"{A}t")).strip():
            yield text


def rescued(element: Element) -> list[str]:
    """The words of something broken, whose namespaces may be lost."""
    texts = (one.text or "" for one in element.iter() if str(one.tag).endswith(("}t", ":t")))
    return list(paragraphs(element)) or [text for text in texts if text.strip()]


def _opened(archive: Archive, part: str) -> tuple[str, list[int]]:
    """Format and size of a picture, in most from its head alone; empty when it does not open."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None  # it is not unpacked
    for data in (archive.head(part, HEAD), b""):
        try:
            with Image.open(io.BytesIO(data or archive.read(part))) as picture:
                return picture.format or "", list(picture.size)
        except Unreadable:
            raise
        except Exception:
            if len(data) < HEAD:
                break
    return "", []


def _same(one: str, other: str) -> bool:
    return one.replace("\\", "/").lstrip("/").casefold() == other.casefold()
