"""Runs of text as they look, and the paragraphs that they make."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from rubric_env.evidence._ooxml import R, Relationship
from rubric_env.evidence._pptx_look import Colour, Look, contrast

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

DEFAULT_SIZE = 18.0
"""Points of text whose size nothing says."""

TINY = 6.0
"""Points below which nobody reads a slide."""

UNSEEN = 1.15
"""The contrast below which text is not seen."""


@dataclass(slots=True)
class Run:
    """Letters that look the same. `colour` is None where the file does not tell it, `behind` that of a highlighter."""

    text: str
    size: float = DEFAULT_SIZE
    font: str = ""
    bold: bool = False
    colour: Colour | None = None
    behind: Colour | None = None
    struck: bool = False
    link: str = ""
    contrast: float | None = None

    @property
    def legible(self) -> float:
        """The contrast that WCAG AA asks for."""
        return 3.0 if self.size >= 18 or (self.bold and self.size >= 14) else 4.5

    def mark(self, ground: Colour | None) -> str:
        """What a person would not see, or see struck out."""
        if self.colour is not None and self.colour.alpha < 0.1:
            return "invisible"
        ground = self.behind or ground
        if self.contrast is not None and self.contrast < UNSEEN and ground is not None:
            return "white on white" if ground.luminance > 0.8 else "in the colour of its background"
        if self.size < TINY:
            return f"tiny text: {self.size:g} pt"
        return "struck out" if self.struck else ""


@dataclass(slots=True)
class Paragraph:
    """`before` is its bullet or number with its indentation; `spacing` its line height and `gap` the points around.

    `start` is what the numbers of a numbered list start from.
    """

    runs: list[Run] = field(default_factory=list)
    before: str = ""
    level: int = 0
    start: int = 0
    align: str = "l"
    spacing: float = 1.0
    gap: float = 0.0
    indent: float = 0.0

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)


class Context(NamedTuple):
    """What the text of one slide is read with: the number that it shows of itself, and that of the slide in a part."""

    look: Look
    links: dict[str, Relationship]
    shown_number: str
    slide_of: Callable[[str], int | None]


def link_of(click: Element | None, context: Context) -> str:
    """Where a click leads, in brackets; empty when nowhere."""
    if click is None:
        return ""
    link = context.links.get(click.get(f"{R}id") or "")
    if link is None:
        return ""
    if link.external:
        return f" ({link.target})" if link.target else ""
    number = context.slide_of(link.target)
    return f" (to slide {number})" if number else ""


def judge_contrast(runs: Iterable[Run], ground: Colour | None) -> None:
    """Give each run its contrast to what is behind it, where both are known."""
    for run in runs:
        if run.colour is not None and (behind := run.behind or ground) is not None:
            run.contrast = round(contrast(run.colour.over(behind), behind), 2)


def line_widths(paragraph: Paragraph) -> list[float]:
    """Points of its lines as written."""
    lines = [paragraph.indent]
    for run in paragraph.runs:
        for place, text in enumerate(run.text.split("\n")):
            if place:
                lines.append(paragraph.indent)
            wide = 0 if text.isascii() else sum(is_wide(letter) for letter in text)
            lines[-1] += run.size * (wide + (0.53 if run.bold else 0.5) * (len(text) - wide))
    return lines


def linked(runs: Sequence[Run]) -> Iterator[Run]:
    """With where they lead, once after neighbours that lead to the same."""
    for place, run in enumerate(runs):
        follower = runs[place + 1].link if place + 1 < len(runs) else ""
        yield replace(run, text=run.text + run.link) if run.link and run.link != follower else run


def is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def joined(pieces: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Neighbours with the same mark as one."""
    text, mark = "", ""
    for more, other in pieces:
        if other == mark or not more.strip():
            text += more
        else:
            yield text, mark
            text, mark = more, other
    yield text, mark
