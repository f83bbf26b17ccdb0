"""Word documents: paragraphs, table rows, and everything that a plain reader drops silently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading

if TYPE_CHECKING:
    from rubric_env.evidence._ooxml import Package


def units(reading: Reading) -> Iterator[Unit]:
    """Properties, the body from top to bottom, then notes, comments, headers and footers, embedded files."""
    from rubric_env.evidence._docx import Story
    from rubric_env.evidence._ooxml import Package, W

    package = Package(reading)
    main = package.main("word/document.xml")
    try:
        root = package.xml(main)
    except Unreadable as error:
        root = package.xml(main, recover=True)
        reading.lost("the end of the document", error)
    body = root.find(f"{W}body")
    if body is None:
        raise Unreadable("it has no body")
    yield from package.properties()
    story = Story(package, main, reading)
    yield from story.body(body)
    for part, mark in _other_parts(package, main):
        try:
            yield from story.part(part, package.xml(part), mark)
        except (KeyError, Unreadable) as error:
            reading.lost(part, error)
    yield from package.embedded(reading)
    reading.note(str(story))
    reading.facts |= story.counts


def _other_parts(package: Package, main: str) -> Iterator[tuple[str, str]]:
    """Parts that hold text beside the body, with what their text is."""
    for link in package.relationships(main).values():
        if link.kind in ("header", "footer", "footnotes", "endnotes", "comments") and not link.external:
            yield link.target, link.kind


KINDS = (Kind("docx", (".docx", ".docm", ".dotx", ".dotm"), units=units, contains=("word/",)),)
