"""HTML as a reader of the page finds it: headings, paragraphs, lists, table rows; links and pictures in place.

What a browser does not show (hidden elements, comments, metadata) is shown too and marked: it may address the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rubric_env.evidence._decode import clean, decode
from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading

BYTES = 32 * 2**20
"""Read of one page."""

DEPTH = 250
"""Levels of elements that are walked; of what is deeper the bare text is taken. Browsers stop at 512."""

# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr",
    "html", "legend", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot",
    "thead", "tr", "ul",
})
# fmt: on
_SKIPPED = frozenset({"script", "style", "template", "noscript", "head", "iframe", "object", "canvas"})
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_HIDDEN_STYLE = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])"
)
_WHITE = re.compile(r"(?<![\w-])color\s*:\s*(?:white|#fff(?:fff)?)\b", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\r\f]+")


@dataclass(slots=True)
class _Page:
    """The page so far: units that are done, and the text of the block that is not."""

    units: list[Unit] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    start: str = ""
    number: int = 0
    skipped: int = 0

    def end_block(self, mark: str) -> None:
        text = "\n".join(_SPACE.sub(" ", line).strip() for line in "".join(self.text).split("\v")).strip()
        self.text.clear()
        if text:
            self.number += 1
            self.units.append(Unit(f"¶{self.number}", self.start + text, mark))
        self.start = ""


def units(reading: Reading) -> Iterator[Unit]:
    """Metadata first, then the blocks from top to bottom."""
    from lxml import etree, html

    data = reading.path.read_bytes()
    if len(data) > BYTES:
        reading.skipped(f"only the first {BYTES // 2**20} MB were read")
    text, notes = decode(data[:BYTES])
    for note in notes:
        reading.note(note)
    # What is nested deeper than libxml2's usual limit would end the page there. Its size is bounded above.
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True)
    try:
        root = html.document_fromstring(clean(text).encode("utf-8", "replace"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise Unreadable(f"it holds no page ({error})") from None
    if deep := [error for error in parser.error_log if "depth" in error.message]:
        reading.lost("what is nested too deeply", Unreadable(deep[0].message))
    yield from _metadata(root)
    page = _Page()
    _walk(root, page, "", 0)
    page.end_block("")
    yield from page.units
    if page.skipped:
        reading.note(f"{page.skipped} scripts, drawings or embedded objects are not shown")


def _metadata(root: Any) -> Iterator[Unit]:
    if title := _SPACE.sub(" ", root.findtext(".//title") or "").strip():
        yield Unit("title", title, "metadata")
    for meta in root.iterfind(".//meta"):
        name, content = meta.get("name") or meta.get("property"), (meta.get("content") or "").strip()
        if name and content and name.lower() not in ("viewport", "generator"):
            yield Unit(f"metadata/{name[:60]}", content, "metadata")


def _walk(element: Any, page: _Page, mark: str, depth: int) -> None:
    tag = element.tag
    if not isinstance(tag, str):
        if "Comment" in type(element).__name__ and (words := (element.text or "").strip()):
            before, page.text = page.text, [words]
            page.end_block("comment, not visible")
            page.text = before
        return
    if tag == "svg":
        _drawing(element, page, mark)
        return
    if tag in _SKIPPED:
        page.skipped += tag not in ("style", "head", "template")
        return
    if depth > DEPTH:
        page.text.append(" ".join(words for words in element.itertext() if words.strip()))
        return
    own = _mark(element)
    block = tag in _BLOCKS
    if block or own:
        page.end_block(mark)
    inner = own or mark
    if tag in _HEADINGS:
        page.start = _HEADINGS[tag]
    elif tag == "li":
        page.start = "- "
    _opened(element, tag, page)
    page.text.append(element.text or "")
    for child in element:
        _walk(child, page, inner, depth + 1)
        page.text.append(child.tail or "")
    if tag == "a" and (target := element.get("href")) and not target.startswith("#"):
        page.text.append(f" ({target})")
    if block or own:
        page.end_block(inner)


def _drawing(element: Any, page: _Page, mark: str) -> None:
    """The words of a drawing in the page, such as a chart."""
    words = (_SPACE.sub(" ", "".join(text.itertext())).strip() for text in element.iter("title", "desc", "text"))
    page.end_block(mark)
    page.text.append(" | ".join(filter(None, words)))
    page.end_block(", ".join(filter(None, (mark, "drawing"))))


def _opened(element: Any, tag: str, page: _Page) -> None:
    """What stands for an element beside its text."""
    if tag == "br":
        page.text.append("\v")
    elif tag in ("td", "th"):
        page.text.append(" | " if any(map(str.strip, page.text)) else "")
    elif tag == "img":
        words = ", ".join(filter(None, (element.get("alt"), _source(element.get("src")))))
        page.text.append(f" [picture: {words or 'no alt text'}] ")
    elif tag in ("input", "textarea", "select") and (value := element.get("value")):
        page.text.append(f" [{value}] ")


def _source(source: str | None) -> str:
    if not source or source.startswith("data:"):
        return "embedded" if source else ""
    return source


def _mark(element: Any) -> str:
    style = element.get("style") or ""
    if element.get("hidden") is not None or element.get("type") == "hidden" or _HIDDEN_STYLE.search(style.lower()):
        return "hidden"
    return "white text" if _WHITE.search(style) else ""


KINDS = (Kind("html", (".html", ".htm", ".xhtml"), units=units),)
