"""Comments on slides, of PowerPoint before and after 2018, with their authors and replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rubric_env.evidence._extract import Unit, Unreadable
from rubric_env.evidence._ooxml import A, P, children, descendants

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

    from rubric_env.evidence._pptx_deck import Deck, Sheet

_P15 = "{http://schemas.microsoft.com/office/powerpoint/2012/main}"
_P188 = "{http://schemas.microsoft.com/office/powerpoint/2018/8/main}"


def comments(deck: Deck, sheet: Sheet, address: str, authors: dict[str, str]) -> Iterator[Unit]:
    """Those of a slide as `slide 3/comment 1`, replies of the newer kind as `slide 3/comment 1/reply 1`."""
    count = 0
    for link in sheet.links.values():
        if link.kind != "comments" or link.external:
            continue
        try:
            root = deck.xml(link.target)
        except Unreadable as error:
            deck.reading.lost(f"comments of {address}", error)
            continue
        for comment in root.iter(f"{P}cm", f"{_P188}cm"):
            count += 1
            label = f"{address}/comment {count}"
            said = "comment" if comment.find(f".//{_P15}parentCm") is None else "reply"
            solved = ", resolved" if comment.get("status") == "resolved" else ""
            yield Unit(label, _said(comment), _by(said, comment, authors) + solved)
            for place, reply in enumerate(comment.iter(f"{_P188}reply"), 1):
                yield Unit(f"{label}/reply {place}", _said(reply), _by("reply", reply, authors))


def comment_authors(deck: Deck) -> dict[str, str]:
    """Their names by the ids that comments name."""
    found: dict[str, str] = {}
    for link in deck.links.values():
        if link.kind in ("commentAuthors", "authors"):
            try:
                root = deck.xml(link.target)
            except Unreadable as error:
                deck.reading.lost("the authors of comments", error)
            else:
                found |= {one.get("id") or "": " ".join((one.get("name") or "").split()) for one in children(root)}
    return found


def _by(what: str, comment: Element, authors: dict[str, str]) -> str:
    author = authors.get(comment.get("authorId") or "", "")
    return f"{what} by {author}" if author else what


def _said(comment: Element) -> str:
    body = comment.find(f"{_P188}txBody")
    if body is None:
        return (comment.findtext(f"{P}text") or "").strip()
    paragraphs = (descendants(paragraph, f"{A}t", f"{A}br") for paragraph in descendants(body, f"{A}p"))
    return "\n".join("".join("\n" if t.tag == f"{A}br" else t.text or "" for t in p) for p in paragraphs).strip()
