"""The text of Word's XML, with what surrounds it: lists, changes, links, fields, pictures, boxes, formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rubric_env.evidence._drawings import chart, smart_art
from rubric_env.evidence._extract import Unit, Unreadable
from rubric_env.evidence._ooxml import DGM, A, C, M, Package, R, V, W, children, descendants, math_text

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from rubric_env.evidence._reading import Reading

WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"
WPS = "{http://schemas.microsoft.com/office/word/2010/wordprocessingShape}"
_OFF = ("0", "false", "off", "none")
_NOTE_PLACES = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}


class Story:
    """Reads the parts of one document; counts what it meets."""

    def __init__(self, package: Package, main: str, reading: Reading) -> None:
        self.counts: Counter[str] = Counter()
        self._package = package
        self._links = package.relationships(main)
        self._reading = reading
        self._styles = _style_names(package)
        self._boxes: list[tuple[str, Element]] = []
        self._paragraph = 0
        self._table = 0

    def __str__(self) -> str:
        counted = [f"{self._paragraph} paragraphs"]
        counted += [f"{count} {name}" for name, count in sorted(self.counts.items()) if name != "paragraphs"]
        return ", ".join(counted)

    def met(self, label: str, element: Element) -> None:
        """A paragraph, a table row, a header or a footer was given an address: for those who want to find it again."""

    def body(self, element: Element) -> Iterator[Unit]:
        """The blocks of the body: paragraphs as ¶n, tables by rows."""
        for block in children(element):
            if block.tag == f"{W}p":
                yield from self._numbered(block)
            elif block.tag == f"{W}tbl":
                self._table += 1
                self.counts["tables"] += 1
                yield from self._rows(block, f"table {self._table}")
            elif block.tag != f"{W}sectPr":
                inner = block.find(f"{W}sdtContent") if block.tag == f"{W}sdt" else block
                if inner is not None:
                    yield from self.body(inner)

    def part(self, part: str, root: Element, kind: str) -> Iterator[Unit]:
        """Headers, footers, notes and comments."""
        self._links = self._package.relationships(part)
        if kind in ("header", "footer"):
            lines = "\n".join(filter(None, self._lines(root)))
            if lines or self._boxes:
                self.counts[f"{kind}s"] += 1
                label = f"{kind} {self.counts[f'{kind}s']}"
                self.met(label, root)
                if lines:
                    yield Unit(label, lines, kind)
                yield from self._boxed(label)
            return
        place = _NOTE_PLACES[kind]
        for note in root:
            if note.get(f"{W}type") in ("separator", "continuationSeparator", "continuationNotice"):
                continue
            if lines := "\n".join(filter(None, self._lines(note))):
                self.counts[kind] += 1
                author = note.get(f"{W}author")
                yield Unit(f"{place} {note.get(f'{W}id')}", lines, f"{place} by {author}" if author else place)
            yield from self._boxed(f"{place} {note.get(f'{W}id')}")

    def _numbered(self, paragraph: Element) -> Iterator[Unit]:
        text, mark = self._text(paragraph)
        if text or self._boxes:
            self._paragraph += 1
            label = f"¶{self._paragraph}"
            self.met(label, paragraph)
            if text:
                yield Unit(label, text, mark)
            yield from self._boxed(label)

    def _boxed(self, label: str) -> Iterator[Unit]:
        """The text boxes that were met since; reading one may meet those that are inside it."""
        number = 0
        while self._boxes:
            kind, box = self._boxes.pop(0)
            number += 1
            if lines := "\n".join(filter(None, self._lines(box))):
                yield Unit(f"{label}/{kind} {number}", lines, kind)

    def _rows(self, table: Element, label: str) -> Iterator[Unit]:
        for number, row in enumerate(descendants_until(table, f"{W}tr", f"{W}tbl"), 1):
            cells = []
            for cell in descendants_until(row, f"{W}tc", f"{W}tbl"):
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                continued = merged is not None and merged.get(f"{W}val", "continue") == "continue"
                cells.append("″" if continued else " / ".join(filter(None, self._lines(cell))).replace("\n", " / "))
            if label:
                self.met(f"{label}/row {number}", row)
            if any(cell.strip("″ ") for cell in cells):
                yield Unit(f"{label}/row {number}", " | ".join(cells))
            if label:  # else the rows are lines of something that is read as one
                yield from self._boxed(f"{label}/row {number}")

    def _lines(self, element: Element) -> Iterator[str]:
        """The paragraphs below an element, table rows as lines."""
        for block in children(element):
            if block.tag == f"{W}p":
                text, mark = self._text(block)
                yield f"({mark}) {text}" if mark and text else text
            elif block.tag == f"{W}tbl":
                yield from (unit.text for unit in self._rows(block, ""))
            else:
                yield from self._lines(block)

    def _text(self, paragraph: Element) -> tuple[str, str]:
        """The words of a paragraph, and a mark when all of them are hidden or white."""
        properties = paragraph.find(f"{W}pPr")
        start = ""
        if properties is not None:
            style = properties.find(f"{W}pStyle")
            name = self._styles.get(style.get(f"{W}val", ""), "") if style is not None else ""
            if name.startswith("heading ") and name[8:].isdecimal():
                start = "#" * min(6, int(name[8:])) + " "
                self.counts["headings"] += 1
            elif name == "title":
                start = "# "
            elif properties.find(f"{W}numPr") is not None or name.startswith("list "):
                start = "- "
        pieces = [piece for piece in self._pieces(paragraph) if piece[0]]
        marks = {mark for text, mark in pieces if text.strip()}
        if len(marks) == 1 and (mark := marks.pop()):
            text = "".join(text for text, _ in pieces).strip()
            return (start + text if text else ""), mark
        text = "".join(f"[{mark}: {text}]" if mark and text.strip() else text for text, mark in _joined(pieces)).strip()
        return (start + text if text else ""), ""

    def _pieces(self, element: Element) -> Iterator[tuple[str, str]]:
        for child in children(element):
            match child.tag.rpartition("}")[2] if child.tag.startswith(W) else child.tag:
                case "r":
                    yield from self._run(child)
                case "ins" | "moveTo":
                    self.counts["tracked insertions"] += 1
                    yield from ((text, mark or _by("inserted", child)) for text, mark in self._pieces(child))
                case "del" | "moveFrom":
                    self.counts["tracked deletions"] += 1
                    yield "".join(text for text, _ in self._pieces(child)), _by("deleted", child)
                case "hyperlink":
                    yield from self._pieces(child)
                    link = self._links.get(child.get(f"{R}id") or "")
                    if link is not None and link.external:
                        yield f" ({link.target})", ""
                case "commentReference" | "pPr" | "sdtPr" | "sdtEndPr" | "fldData":
                    pass
                case _ if child.tag in (f"{M}oMath", f"{M}oMathPara"):
                    self.counts["formulas"] += child.tag == f"{M}oMath"
                    yield math_text(child), ""
                case _:
                    yield from self._pieces(child)

    def _run(self, run: Element) -> Iterator[tuple[str, str]]:
        mark = _run_mark(run)
        for child in children(run):
            tag = child.tag
            if tag in (f"{W}t", f"{W}delText"):
                yield child.text or "", mark
            elif tag == f"{W}tab":
                yield "\t", ""
            elif tag in (f"{W}br", f"{W}cr"):
                if child.get(f"{W}type") == "page":
                    self.counts["page breaks"] += 1
                yield "\n", ""
            elif tag in (f"{W}noBreakHyphen", f"{W}softHyphen"):
                yield "-" if tag == f"{W}noBreakHyphen" else "", ""
            elif tag == f"{W}sym":
                code = child.get(f"{W}char") or ""
                yield _symbol(code), mark
            elif tag in (f"{W}footnoteReference", f"{W}endnoteReference"):
                yield f"[{tag.removeprefix(W).removesuffix('Reference')} {child.get(f'{W}id')}]", ""
            elif tag in (f"{W}drawing", f"{W}pict", f"{W}object"):
                yield self._drawing(child), ""
            elif tag in (f"{W}ruby",):
                yield from self._pieces(child)

    def _drawing(self, drawing: Element) -> str:
        """What stands for a drawing in its paragraph; text boxes are read after it."""
        for box in descendants_until(drawing, f"{W}txbxContent", f"{W}txbxContent"):
            self._boxes.append(("text box", box))
            self.counts["text boxes"] += 1
        words = []
        for properties in descendants(drawing, f"{WP}docPr"):
            words += [text.strip() for name in ("title", "descr") if (text := properties.get(name))]
        if (reference := next(descendants(drawing, f"{C}chart"), None)) is not None:
            self.counts["charts"] += 1
            return self._referred(reference.get(f"{R}id"), "chart", words)
        if (reference := next(descendants(drawing, f"{DGM}relIds"), None)) is not None:
            self.counts["diagrams"] += 1
            return self._referred(reference.get(f"{R}dm"), "diagram", words)
        pictures = [*descendants(drawing, f"{A}blip"), *descendants(drawing, f"{V}imagedata")]
        self.counts["pictures"] += len(pictures)
        alt = f": {', '.join(words)}" if words else ", no alt text"
        return "".join(f"[picture{alt}]" for _ in pictures) or (f"[drawing{alt}]" if words else "")

    def _referred(self, identity: str | None, kind: str, words: list[str]) -> str:
        link = self._links.get(identity or "")
        alt = f" ({', '.join(words)})" if words else ""
        try:
            if link is None or link.external:
                raise Unreadable(f"its relationship {identity} leads nowhere")
            root = self._package.xml(link.target)
            lines = chart(root) if kind == "chart" else ["diagram", *smart_art(root)]
        except (KeyError, Unreadable) as error:
            self._reading.lost(f"a {kind} in ¶{self._paragraph + 1}", error)
            return f"[{kind}{alt}]"
        return f"[{lines[0]}{alt}\n" + "\n".join(lines[1:]) + "]"


def descendants_until(element: Element, tag: str, stop: str) -> Iterator[Element]:
    """Elements with `tag` below `element`, not looking into elements with `stop`."""
    for child in children(element):
        if child.tag == tag:
            yield child
        elif child.tag != stop:
            yield from descendants_until(child, tag, stop)


def _joined(pieces: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Neighbours with the same mark as one."""
    text, mark = "", ""
    for more, other in pieces:
        if other == mark:
            text += more
        else:
            yield text, mark
            text, mark = more, other
    yield text, mark


def _style_names(package: Package) -> dict[str, str]:
    """Style ids to their lower-case English names, which stay the same in every language of Word."""
    root = package.optional("word/styles.xml")
    names = {}
    for style in root.iter(f"{W}style") if root is not None else ():
        name = style.find(f"{W}name")
        if name is not None:
            names[style.get(f"{W}styleId", "")] = (name.get(f"{W}val") or "").lower()
    return names


def _run_mark(run: Element) -> str:
    properties = run.find(f"{W}rPr")
    if properties is None:
        return ""
    for name in ("vanish", "specVanish"):
        hidden = properties.find(f"{W}{name}")
        if hidden is not None and hidden.get(f"{W}val", "1") not in _OFF:
            return "hidden"
    colour = properties.find(f"{W}color")
    if colour is not None and (colour.get(f"{W}val") or "").upper() == "FFFFFF" and not _shaded(properties):
        return "white text"
    struck = properties.find(f"{W}strike")
    return "struck out" if struck is not None and struck.get(f"{W}val", "1") not in _OFF else ""


def _shaded(properties: Element) -> bool:
    """White on a dark ground is a style, not a hiding place."""
    shade, light = properties.find(f"{W}shd"), properties.find(f"{W}highlight")
    fill = (shade.get(f"{W}fill") or "auto").upper() if shade is not None else "AUTO"
    return fill not in ("AUTO", "FFFFFF") or light is not None


def _by(what: str, element: Element) -> str:
    author = element.get(f"{W}author")
    return f"{what} by {author}" if author else what


def _symbol(code: str) -> str:
    try:
        value = int(code, 16)
    except ValueError:
        return ""
    # Symbol fonts live in the private use area, a copy of their 8-bit codes.
    value = value - 0xF000 if 0xF020 <= value <= 0xF0FF else value
    return chr(value) if 0 < value < 0xD800 or 0xE000 <= value < 0x110000 else ""
