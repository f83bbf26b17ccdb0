"""The text of a shape or cell: its runs as they look, its paragraphs as lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rubric_env.evidence._ooxml import A, M, children, descendants, math_text
from rubric_env.evidence._pptx_geometry import Box, number, points, share
from rubric_env.evidence._pptx_look import Colour, text_fill
from rubric_env.evidence._pptx_runs import (
    DEFAULT_SIZE,
    Context,
    Paragraph,
    Run,
    is_wide,
    joined,
    line_widths,
    link_of,
    linked,
)

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_A14M = "{http://schemas.microsoft.com/office/drawing/2010/main}m"
_LINE = 1.2
"""Line height of common fonts, in font sizes."""

_ON = ("1", "true", "on")


class Body:
    """A `p:txBody` or `a:txBody`, with the list styles that it inherits, the nearest first.

    `font_colour` is what a shape's style gives its text. `plain` text takes no colour from its styles: that of tables,
    whose own styles we do not follow.
    """

    def __init__(
        self,
        element: Element,
        inherited: Sequence[Element],
        context: Context,
        *,
        bodies: Sequence[Element] = (),
        font_colour: Colour | None = None,
        plain: bool = False,
    ) -> None:
        own = element.find(f"{A}lstStyle")
        self._own = [own] if own is not None else []
        self._styles = [*self._own, *inherited]
        self._properties = [found for one in (element, *bodies) if (found := one.find(f"{A}bodyPr")) is not None]
        self._context = context
        self._font_colour = font_colour
        self._plain = plain
        self._levels: dict[int, list[tuple[Element, bool]]] = {}
        fit = next((fit for one in self._properties if (fit := _fit(one)) is not None), None)
        self.fit = fit.tag.removeprefix(A) if fit is not None else "noAutofit"
        scale = share(fit.get("fontScale"), 1.0) if fit is not None else 1.0
        self._scale = scale if 0 < scale <= 1 else 1.0
        self.paragraphs = [self._paragraph(one) for one in descendants(element, f"{A}p")]
        self._count()

    @property
    def runs(self) -> Iterator[Run]:
        for paragraph in self.paragraphs:
            yield from paragraph.runs

    @property
    def blank(self) -> bool:
        return not any(run.text.strip() for run in self.runs)

    def lines(self, ground: Colour | None = None) -> list[str]:
        """Its paragraphs; what is not seen as it stands is marked in place."""
        lines = []
        for paragraph in self.paragraphs:
            pieces = joined((run.text, run.mark(ground)) for run in linked(paragraph.runs))
            text = "".join(f"[{mark}: {text}]" if mark and text.strip() else text for text, mark in pieces)
            if text.strip():
                lines.append(paragraph.before + text.strip())
        return lines

    def shown(self, ground: Colour | None = None) -> tuple[str, str]:
        """Its text, and a mark when all of it has the same."""
        marks = {run.mark(ground) for run in self.runs if run.text.strip()}
        if len(marks) == 1 and (mark := marks.pop()):
            texts = ((one.before, "".join(run.text for run in linked(one.runs)).strip()) for one in self.paragraphs)
            return "\n".join(before + text for before, text in texts if text), mark
        return "\n".join(self.lines(ground)), ""

    def ink(self, box: Box) -> Box:
        """About where the letters are when the text stands in `box`: from mean widths of letters, not from a font."""
        if self._get("vert", "horz") != "horz":
            return box
        left, right = (points(self._get(name, "91440")) or 0.0 for name in ("lIns", "rIns"))
        top, bottom = (points(self._get(name, "45720")) or 0.0 for name in ("tIns", "bIns"))
        columns = max(1.0, number(self._get("numCol", "1"), 1.0))
        room = max((box.width - left - right) / columns, 1.0)
        wraps = self._get("wrap", "square") != "none"
        height = widest = 0.0
        for paragraph in self.paragraphs:
            width = line_widths(paragraph)
            rows = sum(math.ceil(line / room) or 1 for line in width) if wraps else len(width)
            size = max((run.size for run in paragraph.runs), default=DEFAULT_SIZE if len(self.paragraphs) > 1 else 0.0)
            height += rows * size * _LINE * paragraph.spacing + paragraph.gap
            widest = max(widest, *width) if not wraps else max(widest, min(room, max(width)))
        height /= columns
        align = self.paragraphs[0].align if self.paragraphs else "l"
        spare = box.width - left - right - widest * columns
        x = box.left + left + {"ctr": spare / 2, "r": spare}.get(align, 0.0)
        room_below = box.height - top - bottom - height
        y = box.top + top + {"ctr": room_below / 2, "b": room_below}.get(self._get("anchor", "t"), 0.0)
        return Box(round(x, 1), round(y, 1), round(x + widest * columns, 1), round(y + height, 1))

    def _get(self, name: str, default: str) -> str:
        return next((value for one in self._properties if (value := one.get(name)) is not None), default)

    def _paragraph(self, element: Element) -> Paragraph:
        own = element.find(f"{A}pPr")
        level = min(8, max(0, int(number(own.get("lvl"))))) if own is not None else 0
        styles = [(own, True)] if own is not None else []
        styles += self._level(level)
        align = next((value for style, _ in styles if (value := style.get("algn"))), "l")
        indent = next((value for style, _ in styles if (value := points(style.get("marL"))) is not None), 0.0)
        before, start = _bullet(styles, level)
        paragraph = Paragraph([], before, level, start, align, indent=max(0.0, indent))
        for child in children(element):
            if (run := self._run(child, level)) is not None and run.text:
                paragraph.runs.append(run)
        size = max((run.size for run in paragraph.runs), default=DEFAULT_SIZE)
        for name in ("lnSpc", "spcBef", "spcAft"):
            holder = next((found for style, _ in styles if (found := style.find(f"{A}{name}")) is not None), None)
            percent, exact = _spacing(holder)
            if name == "lnSpc" and (percent or exact):
                paragraph.spacing = percent or (exact or 0.0) / (size * _LINE)
            elif name != "lnSpc":
                paragraph.gap += exact or (percent or 0.0) * size * _LINE
        return paragraph

    def _run(self, element: Element, level: int) -> Run | None:
        match element.tag:
            case tag if tag in (f"{A}r", f"{A}fld"):
                text = "".join(part.text or "" for part in element.iterchildren(f"{A}t"))
                if element.get("type") == "slidenum":
                    text = self._context.shown_number  # what the file keeps may be of another day
                return self._styled(text, element.find(f"{A}rPr"), level)
            case tag if tag == f"{A}br":
                return Run("\n", self._styled("", element.find(f"{A}rPr"), level).size)
            case tag if tag in (_A14M, f"{M}oMath", f"{M}oMathPara"):
                return self._styled(math_text(element), None, level)
            case tag if tag in (f"{A}pPr", f"{A}endParaRPr"):
                return None
        return self._styled("".join(part.text or "" for part in descendants(element, f"{A}t")), None, level)

    def _styled(self, text: str, own: Element | None, level: int) -> Run:
        styles = [(own, True)] if own is not None else []
        styles += [(d, near) for style, near in self._level(level) if (d := style.find(f"{A}defRPr")) is not None]
        size = next((found for style, _ in styles if (found := number(style.get("sz"))) > 0), 0) / 100 or DEFAULT_SIZE
        bold = next((found for style, _ in styles if (found := style.get("b"))), "0")
        strike = next((found for style, _ in styles if (found := style.get("strike"))), "noStrike")
        run = Run(text, round(size * self._scale, 2), self._font(text, styles), bold in _ON, self._colour(own, styles))
        run.struck = strike != "noStrike"
        if own is not None:
            run.link = link_of(own.find(f"{A}hlinkClick"), self._context)
            run.behind = self._context.look.colour(own.find(f"{A}highlight"))
        return run

    def _font(self, text: str, styles: Iterable[tuple[Element, bool]]) -> str:
        script = "ea" if any(map(is_wide, text[:20])) else "latin"
        for style, _ in styles:
            if (font := style.find(f"{A}{script}")) is not None and (
                name := self._context.look.font(font.get("typeface"))
            ):
                return name
        return self._context.look.font("+mn-lt")

    def _colour(self, own: Element | None, styles: Iterable[tuple[Element, bool]]) -> Colour | None:
        if own is not None and own.find(f"{A}hlinkClick") is not None:
            return self._context.look.named("hlink")
        for style, near in styles:
            if style is not own and (self._plain or (self._font_colour is not None and not near)):
                break
            if (fill := text_fill(style)) is not None:
                if fill.tag == f"{A}noFill":
                    return Colour(0, 0, 0, 0.0)
                found = self._context.look.fill(style)
                return found.colour if found else None
        return self._font_colour

    def _level(self, level: int) -> list[tuple[Element, bool]]:
        """The list styles of a level, with whether the shape itself has it."""
        if level not in self._levels:
            found = [(style.find(f"{A}lvl{level + 1}pPr"), style in self._own) for style in self._styles]
            found += [(style.find(f"{A}defPPr"), False) for style in self._styles]
            self._levels[level] = [(style, near) for style, near in found if style is not None]
        return self._levels[level]

    def _count(self) -> None:
        """Number what is numbered, as it is shown."""
        counts: dict[int, int] = {}
        for paragraph in self.paragraphs:
            if not paragraph.text.strip():
                continue
            counts = {
                level: count for level, count in counts.items() if level < paragraph.level + bool(paragraph.start)
            }
            if paragraph.start:
                counts[paragraph.level] = counts.get(paragraph.level, paragraph.start - 1) + 1
                paragraph.before += f"{counts[paragraph.level]}. "


def _bullet(styles: Iterable[tuple[Element, bool]], level: int) -> tuple[str, int]:
    """What stands before a paragraph, and the first number of its list when that is numbered."""
    for style, _ in styles:
        for child in children(style):
            match child.tag.removeprefix(A):
                case "buNone":
                    return "", 0
                case "buChar" | "buBlip":
                    return "  " * level + "- ", 0
                case "buAutoNum":
                    return "  " * level, max(1, int(number(child.get("startAt"), 1)))
    return "", 0


def _fit(properties: Element) -> Element | None:
    fits = (f"{A}noAutofit", f"{A}normAutofit", f"{A}spAutoFit")
    return next((child for child in children(properties) if child.tag in fits), None)


def _spacing(holder: Element | None) -> tuple[float | None, float | None]:
    """A share of the line height, or points."""
    if holder is None:
        return None, None
    percent, exact = holder.find(f"{A}spcPct"), holder.find(f"{A}spcPts")
    if percent is not None:
        return share(percent.get("val")), None
    return None, number(exact.get("val")) / 100 if exact is not None else None
