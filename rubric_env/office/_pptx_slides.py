"""Slides from what they say: a layout, text that fits, tables, charts, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from pptx.enum.dml import MSO_THEME_COLOR
from pptx.enum.text import MSO_ANCHOR
from pptx.oxml.ns import qn
from pptx.util import Emu, Inches, Pt

from rubric_env.office._pictures import image
from rubric_env.office._pptx_charts import add_chart
from rubric_env.office._pptx_fit import POINT, Box, Line, fitting, lines_of, size_of
from rubric_env.office._pptx_tables import add_table
from rubric_env.office._problems import Problems, Refused

PPI = 96
"""Pixels per inch that a picture keeps at least, else it looks soft."""

_TITLE_SIZES, _COVER_SIZES = (28, 24, 20), (40, 34, 28)
_TEXT_SIZES, _NARROW_SIZES = (24, 20, 18, 16, 14), (20, 18, 16, 14, 12)

_USUAL = 44
"""Points of titles in common templates: what fits then is left as the template has it."""


class Slides:
    """Adds slides to a deck, which is a new one of ours or somebody's. What is wrong with one goes to `problems`."""

    def __init__(self, deck: Any, root: str, problems: Problems, *, ours: bool) -> None:
        self._ours = ours
        places = [place for slide in deck.slides for place in slide.placeholders]
        self._numbered = ours or any(one.placeholder_format.type.name == "SLIDE_NUMBER" for one in places)
        self._deck = deck
        self._root = root
        self._problems = problems

    def add(self, wanted: dict[str, Any], where: str, *, first: bool) -> Any:
        """The new slide, at the end of the deck."""
        content = [name for name in ("bullets", "columns", "table", "chart", "picture") if wanted[name]]
        visual = [name for name in content if name in ("table", "chart", "picture")]
        slide = self._deck.slides.add_slide(self._layout(self._kind(wanted, content, visual, first)))
        with self._problems.of(where):
            if len(visual) > 1:
                raise Refused(f"{' and '.join(visual)}: a slide has room for one of them")
            if "columns" in content and len(content) > 1:
                raise Refused("columns fill a slide: no bullets, table, chart or picture beside them")
            self._title(slide, wanted["title"], cover=not content)
            if not content:
                self._subtitle(slide, wanted["subtitle"])
            elif "columns" in content:
                self._columns(slide, wanted)
            else:
                self._body(slide, wanted, visual)
            if wanted["notes"]:
                slide.notes_slide.notes_text_frame.text = wanted["notes"]
        self._finish(slide, numbered=bool(content) and self._numbered)
        return slide

    def _kind(self, wanted: dict[str, Any], content: list[str], visual: list[str], first: bool) -> str:
        if not content:
            return "Title Slide" if first else "Section Header"
        if "columns" in content:
            headed = any(column["heading"] for column in wanted["columns"])
            return "Title Only" if len(wanted["columns"]) != 2 else "Comparison" if headed else "Two Content"
        if visual:
            return "Two Content" if "bullets" in content else "Title Only"
        return "Title and Content"

    def _layout(self, name: str) -> Any:
        """That of this name; in a foreign deck without it, one that has what it takes."""
        layouts = list(self._deck.slide_layouts)
        for layout in layouts:
            if layout.name == name:
                return layout
        bodies = {"Title Only": 0, "Two Content": 2, "Comparison": 4}.get(name, 1)

        def fit(layout: Any) -> tuple[int, int]:
            kinds = [one.placeholder_format.type.name for one in layout.placeholders]
            titles = sum("TITLE" in kind and kind != "SUBTITLE" for kind in kinds)
            texts = sum(kind in ("BODY", "OBJECT", "SUBTITLE") for kind in kinds)
            return (0 if titles else 1, abs(texts - bodies))

        return min(layouts, key=fit)

    def _title(self, slide: Any, text: str, *, cover: bool) -> None:
        title = slide.shapes.title
        if not text.strip():
            raise Refused("its title is empty")
        if title is None:
            title = slide.shapes.add_textbox(Inches(0.6), Inches(0.4), self._deck.slide_width - Inches(1.2), Inches(1))
        sizes = _COVER_SIZES if cover else _TITLE_SIZES
        line = Line(0, [(" ".join(text.split()), True)])
        size = fitting([line], _box(title), (_USUAL, *sizes), "title")
        title.text_frame.text = line.text
        if not (title.is_placeholder and size in ((_USUAL, sizes[0]) if self._ours else (_USUAL,))):
            title.text_frame.paragraphs[0].runs[0].font.size = Pt(size)

    def _subtitle(self, slide: Any, text: str | None) -> None:
        if not text:
            return
        places = self._places(slide)
        box = _box(places[0]) if places else self._area(slide).below(Inches(2))
        lines = lines_of(text.split("\n"))
        size = fitting(lines, box, _TEXT_SIZES, "subtitle")
        if places:
            _fill(places[0], lines, size)
        else:
            self._text_box(slide, box, lines, size, bullets=False)

    def _body(self, slide: Any, wanted: dict[str, Any], visual: list[str]) -> None:
        area = self._area(slide)
        if wanted["subtitle"]:
            line = Line(0, [(wanted["subtitle"], False)])
            fitting([line], Box(area.left, area.top, area.width, Inches(0.55)), (16,), "subtitle")
            self._text_box(slide, Box(area.left, area.top, area.width, Inches(0.5)), [line], 16, bullets=False)
            area = area.below(Inches(0.55))
        side = bool(visual) and bool(wanted["bullets"])
        if wanted["bullets"]:
            box = area.part(0, 0.42) if side else area
            lines = lines_of(wanted["bullets"])
            size = fitting(lines, box, _NARROW_SIZES if side else _TEXT_SIZES, "bullets")
            places = self._places(slide)
            if places:
                _move(places[0], box)
                _fill(places[0], lines, size)
            else:
                self._text_box(slide, box, lines, size, bullets=True)
        rest = area.part(0.46, 0.54) if side else area
        if "table" in visual:
            add_table(slide, wanted["table"], rest)
        elif "chart" in visual:
            add_chart(slide, wanted["chart"], rest)
        elif "picture" in visual:
            self._picture(slide, wanted["picture"], rest)

    def _columns(self, slide: Any, wanted: dict[str, Any]) -> None:
        columns = wanted["columns"]
        if not 2 <= len(columns) <= 3:
            raise Refused(f"columns: two or three, not {len(columns)}")
        area = self._area(slide)
        if wanted["subtitle"]:
            raise Refused("subtitle: there is no room for one above columns; say it in the title or the headings")
        headed = any(column["heading"] for column in columns)
        head = Inches(0.6) if headed else 0
        share, gap = (0.485, 0.03) if len(columns) == 2 else (0.31, 0.035)
        places = self._places(slide)
        texts = [lines_of(column["bullets"]) for column in columns]
        boxes = [area.part(number * (share + gap), share) for number in range(len(columns))]
        # Columns of one slide have letters of one size.
        size = min(
            fitting(lines, box.below(head), _NARROW_SIZES, f"column {number}")
            for number, (lines, box) in enumerate(zip(texts, boxes, strict=True), 1)
        )
        for number, (column, lines, box) in enumerate(zip(columns, texts, boxes, strict=True)):
            placed = len(places) == (4 if headed else 2)
            if headed and column["heading"]:
                line = Line(0, [(column["heading"], True)])
                points = fitting([line], Box(box.left, box.top, box.width, head), (18, 16, 14), "heading")
                if placed:
                    _move(places[2 * number], Box(box.left, box.top, box.width, head))
                    _fill(places[2 * number], [line], points)
                else:
                    self._text_box(slide, Box(box.left, box.top, box.width, head), [line], points, bullets=False)
            if placed:
                place = places[2 * number + 1] if headed else places[number]
                _move(place, box.below(head))
                _fill(place, lines, size)
            elif lines:
                self._text_box(slide, box.below(head), lines, size, bullets=True)

    def _picture(self, slide: Any, wanted: dict[str, Any], area: Box) -> None:
        picture = image(self._root, wanted["path"])
        inch = Inches(1)
        scale = min(area.width / picture.width, area.height / picture.height, inch / PPI)
        width, height = int(picture.width * scale), int(picture.height * scale)
        left, top = area.left + (area.width - width) // 2, area.top + (area.height - height) // 2
        shape = slide.shapes.add_picture(picture.stream, left, top, width, height)
        shape._element.nvPicPr.cNvPr.set("descr", wanted["alt"])

    def _places(self, slide: Any) -> list[Any]:
        """Empty placeholders for text, from left to right and top to bottom as the layout numbers them."""
        kinds = ("BODY", "OBJECT", "SUBTITLE")
        found = [one for one in slide.placeholders if one.placeholder_format.type.name in kinds]
        return sorted(found, key=lambda one: one.placeholder_format.idx)

    def _area(self, slide: Any) -> Box:
        """Where the content of a slide goes: below the title, above the footers."""
        width, height = self._deck.slide_width, self._deck.slide_height
        places = [_box(one) for one in self._places(slide)]
        title = slide.shapes.title
        if places and title is not None:
            left, top = min(one.left for one in places), min(one.top for one in places)
            right, bottom = max(one.left + one.width for one in places), max(one.top + one.height for one in places)
            return Box(left, top, right - left, bottom - top)
        left = title.left if title is not None else width // 20
        top = title.top + title.height + Inches(0.2) if title is not None else height // 5
        return Box(left, top, width - 2 * left, int(height * 0.907) - top)

    def _text_box(self, slide: Any, box: Box, lines: Sequence[Line], size: int, *, bullets: bool) -> None:
        shape = slide.shapes.add_textbox(*box)
        shape.text_frame.word_wrap = True
        shape.text_frame.vertical_anchor = MSO_ANCHOR.TOP
        _fill(shape, lines, size)
        for paragraph, line in zip(shape.text_frame.paragraphs, lines, strict=True):
            if bullets:
                properties = paragraph._p.get_or_add_pPr()
                properties.set("marL", str(18 * POINT * (line.level + 1)))
                properties.set("indent", str(-16 * POINT))
                properties.insert_element_before(_bullet(), "a:tabLst", "a:defRPr", "a:extLst")
                paragraph.space_before = Pt(6)
            else:
                paragraph.font.color.theme_color = MSO_THEME_COLOR.TEXT_2

    def _finish(self, slide: Any, *, numbered: bool) -> None:
        """No empty placeholders; the number of the slide where its layout has a place for it."""
        for place in list(slide.placeholders):
            if not place.has_text_frame or not place.text_frame.text.strip():
                place._element.getparent().remove(place._element)
        if not numbered:
            return
        for place in slide.slide_layout.placeholders:
            if place.placeholder_format.type.name == "SLIDE_NUMBER":
                copy = deepcopy(place._element)
                named = copy.find(f"{qn('p:nvSpPr')}/{qn('p:cNvPr')}")
                named.set("id", str(max((shape.shape_id for shape in slide.shapes), default=1) + 1))
                properties = copy.find(qn("p:spPr"))
                for child in list(properties):
                    properties.remove(child)
                slide.shapes._spTree.append(copy)
                return


def _bullet() -> Any:
    from lxml import etree

    bullet = etree.Element(qn("a:buChar"))
    bullet.set("char", "•")
    return bullet


def _box(shape: Any) -> Box:
    return Box(shape.left or 0, shape.top or 0, shape.width or 0, shape.height or 0)


def _move(shape: Any, box: Box) -> None:
    """Only where it is not already: what a layout places stays with it."""
    if _box(shape) != box:
        shape.left, shape.top, shape.width, shape.height = map(Emu, box)


def _fill(shape: Any, lines: Iterable[Line], size: int) -> None:
    frame = shape.text_frame
    for number, line in enumerate(lines):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.level = line.level
        for text, bold in line.runs:
            run = paragraph.add_run()
            run.text = text
            run.font.size = Pt(size_of(line.level, size))
            if bold:
                run.font.bold = True
