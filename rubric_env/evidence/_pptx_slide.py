"""One slide: its passages in the order of a reader, and its JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rubric_env.evidence._extract import Unit
from rubric_env.evidence._ooxml import P, descendants
from rubric_env.evidence._pptx_comments import comments
from rubric_env.evidence._pptx_content import Content, paragraphs, rescued
from rubric_env.evidence._pptx_deck import Deck, Sheet, counted, placeholder_of
from rubric_env.evidence._pptx_geometry import Box
from rubric_env.evidence._pptx_layout import facts, off
from rubric_env.evidence._pptx_look import Fill, background
from rubric_env.evidence._pptx_runs import Context, Run, link_of
from rubric_env.evidence._pptx_shapes import TITLES, Shape, as_read, flat, groups, read_shapes, see
from rubric_env.evidence._pptx_text import Body

_OFF = ("0", "false")
_COUNTED = ("picture", "chart", "table", "diagram", "video", "audio", "embedded object")
_TITLE = 120
"""Characters of a line that can be a title."""


@dataclass
class Slide:
    """Reads slide `number`, whose address is `slide 3`; `page` is its JSON once its units were read."""

    deck: Deck
    sheet: Sheet
    number: int

    def __post_init__(self) -> None:
        self.address = f"slide {self.number}"
        self.hidden = self.sheet.root.get("show") in _OFF
        self.page: dict[str, Any] = {}
        numbers = {entry.part: place for place, entry in enumerate(self.deck.slides, 1)}
        shown = self.deck.shown_number(self.number)
        self._context = Context(self.sheet.look, self.sheet.links, shown, numbers.get)

    def units(self) -> Iterator[Unit]:
        """Title, shapes, notes, comments, and one line of layout facts where there is something to say."""
        drawn = read_shapes(self.deck, self.sheet, self._context)
        see(list(flat(drawn)), list(_painted(self.deck, self.sheet)), _background(self.sheet))
        shapes = list(as_read(drawn))
        _address(shapes, self.address)
        content = Content(self.deck, self.sheet, self._context)
        said = False
        if self.sheet.shapes is None and (text := "\n".join(rescued(self.sheet.root))):
            # What is damaged too much to be a slide may still hold words.
            said = True
            yield self._marked(Unit(self.address, text, "not fully read"))
        for shape in shapes:
            for unit in self._of(shape, content):
                said = True
                yield self._marked(unit, self._state(shape))
        for unit in self._together(drawn, shapes):
            said = True
            yield self._marked(unit)
        for unit in self._beside():
            said = True
            yield self._marked(unit)
        if not said:
            shapes_there = [shape for shape in shapes if not shape.placeholder]
            words = f"no text, {counted(len(shapes_there), 'shapes')}" if shapes_there else "an empty slide"
            yield self._marked(Unit(self.address, words))
        measured = facts(shapes, self.deck.size)
        self.page = self._json(shapes, measured)
        if said and measured["notable"]:
            yield self._marked(Unit(f"{self.address}/layout", "; ".join(measured["notable"]), "layout facts"))

    def shapes(self) -> list[Shape]:
        """Those that its passages are of, with their addresses."""
        shapes = list(as_read(read_shapes(self.deck, self.sheet, self._context)))
        _address(shapes, self.address)
        return shapes

    def _of(self, shape: Shape, content: Content) -> list[Unit]:
        try:
            if shape.error is not None:
                raise shape.error
            return list(content.units(shape))
        except Exception as error:
            # Broken shapes raise anything; the others, and the words of this one, stay.
            self.deck.reading.lost(shape.address, error)
            text = "\n".join([*rescued(shape.element), *([shape.alt] if shape.alt else [])])
            return [Unit(shape.address, text, f"{shape.kind}, not fully read")] if text else []

    def _together(self, drawn: Sequence[Shape], shapes: Sequence[Shape]) -> Iterator[Unit]:
        """What several shapes say as one."""
        if strokes := [shape for shape in shapes if shape.kind == "ink"]:
            yield Unit(strokes[0].address, f"handwriting, {len(strokes)} parts", "ink")
        for place, group in enumerate(groups(drawn), 1):
            group.address = f"{self.address}/group {place}"
            text = "\n".join(filter(None, (group.alt, link_of(group.click, self._context).strip())))
            if text:
                members = ", ".join(shape.address.rpartition("/")[2] for shape in flat([group]))
                yield Unit(group.address, text, f"alt text of {members}")

    def _state(self, shape: Shape) -> list[str]:
        marks = ["hidden shape"] if shape.hidden else []
        return [*marks, "off the slide"] if shape.box is not None and off(shape.box, self.deck.size) else marks

    def _marked(self, unit: Unit, marks: Sequence[str] = ()) -> Unit:
        hidden = ["hidden slide"] if self.hidden else []
        return unit._replace(mark=", ".join(filter(None, (*hidden, *marks, unit.mark))))

    def _beside(self) -> Iterator[Unit]:
        """Notes and comments, each lost alone."""
        try:
            if text := self._notes():
                yield Unit(f"{self.address}/notes", text, "notes")
        except Exception as error:
            self.deck.reading.lost(f"{self.address}/notes", error)
        yield from comments(self.deck, self.sheet, self.address, self.deck.authors)

    def _notes(self) -> str:
        part = next((link.target for link in self.sheet.links.values() if link.kind == "notesSlide"), "")
        if not part:
            return ""
        root = self.deck.xml(part)
        links = self.deck.package.relationships(part)
        context = self._context._replace(links=links)
        lines: list[str] = []
        for shape in descendants(root, f"{P}sp"):
            mark, text = placeholder_of(shape), shape.find(f"{P}txBody")
            if text is not None and (mark is None or mark.get("type") != "sldNum"):
                lines += Body(text, [], context).lines()
        lines += [line for frame in descendants(root, f"{P}graphicFrame") for line in paragraphs(frame)]
        return "\n".join(lines)

    def _json(self, shapes: Sequence[Shape], measured: dict[str, Any]) -> dict[str, Any]:
        title, placeholder = _title(shapes, self.deck.size)
        root = self.sheet.root
        effects = sum(1 for node in root.iter(f"{P}cTn") if node.get("presetClass"))
        kinds = [shape.kind for shape in shapes]
        return {
            "number": self.number,
            "part": self.sheet.part,
            "title": title,
            "title_is_placeholder": placeholder,
            "hidden": self.hidden,
            "layout": self.sheet.parent.name if self.sheet.parent else "",
            "background": _colour(_background(self.sheet)),
            "counts": {
                "shapes": len(shapes),
                **{f"{kind}s": kinds.count(kind) for kind in _COUNTED},
                "animations": effects,
                "transitions": sum(1 for _ in descendants(root, f"{P}transition")),
            },
            "words": sum(_words(body) for shape in shapes for body in shape.bodies),
            "layout_facts": measured,
            "shapes": [_shape(shape, self.deck.size) for shape in shapes],
        }


def shown_behind(sheet: Sheet) -> list[Sheet]:
    """The master and the layout whose own shapes are seen on a slide, the farthest first."""
    found = []
    for one in sheet.chain:
        if one.root.get("showMasterSp") in _OFF or one.parent is None:
            break
        found.append(one.parent)
    return found[::-1]


def _own(deck: Deck, sheet: Sheet) -> list[Shape]:
    """What a layout or master shows on its slides: everything but placeholders, whose prompts nobody sees."""
    if sheet.part not in deck.shown:
        shapes = [shape for shape in read_shapes(deck, sheet, _anywhere(sheet)) if not shape.placeholder]
        see(list(flat(shapes)), list(_painted(deck, sheet)), _background(sheet))
        deck.shown[sheet.part] = shapes
    return deck.shown[sheet.part]


def _anywhere(sheet: Sheet) -> Context:
    """That of a layout or master, which has no number of its own."""
    return Context(sheet.look, sheet.links, "#", lambda part: None)


def _painted(deck: Deck, sheet: Sheet) -> Iterator[tuple[Box, Fill]]:
    """What layout and master paint behind a sheet."""
    for one in shown_behind(sheet):
        for shape in flat(_own(deck, one)):
            if shape.box is not None and shape.fill.painted and not shape.hidden:
                yield shape.box, shape.fill


def _background(sheet: Sheet) -> Fill:
    return background((one.root, one.look) for one in sheet.chain)


def _address(shapes: Sequence[Shape], address: str) -> None:
    """`slide 3/shape 7` is the seventh in the order of a reader; the first title is `slide 3/title`."""
    titled = False
    for place, shape in enumerate(shapes, 1):
        titles = shape.placeholder in TITLES and not titled
        shape.address = f"{address}/title" if titles else f"{address}/shape {place}"
        titled = titled or titles


def _title(shapes: Sequence[Shape], slide: Box) -> tuple[str, bool]:
    """Its text, and whether it stands in a placeholder for titles; else the largest text of the upper half."""
    for shape in shapes:
        if shape.placeholder in TITLES and shape.has_text and shape.body is not None:
            return _line(shape.body), True
    best, largest = "", 0.0
    for shape in shapes:
        if shape.body is None or shape.box is None or shape.hidden or shape.box.top > slide.height / 2:
            continue
        size = max((run.size for run in shape.body.runs if run.text.strip()), default=0.0)
        text = _line(shape.body)
        if size > largest and len(text) <= _TITLE:
            best, largest = text, size
    return best, False


def _line(body: Body) -> str:
    return " ".join(" ".join(paragraph.text for paragraph in body.paragraphs).split())


def _words(body: Body) -> int:
    return sum(len(paragraph.text.split()) for paragraph in body.paragraphs)


def _colour(fill: Fill) -> str:
    return str(fill.colour) if fill.colour else "picture or pattern" if fill.painted else ""


def _shape(shape: Shape, slide: Box) -> dict[str, Any]:
    box, found = shape.box, shape.facts
    text = shape.body.lines() if shape.body is not None else []
    described: dict[str, Any] = {
        "address": shape.address,
        "id": shape.told("id"),
        "name": shape.told("name"),
        "kind": shape.kind,
        "placeholder": shape.placeholder,
        "hidden": shape.hidden,
        "box": _rounded(box, 1, 1, 2) if box else None,
        "share": _rounded(box, slide.width, slide.height, 4) if box else None,
        "fill": _colour(shape.fill),
        "alt": shape.alt,
        "text": "\n".join(text),
        "runs": [_run(run) for body in shape.bodies for run in _alike(body)],
    }
    return {key: value for key, value in (described | found).items() if value not in ("", None, [], False)}


def _rounded(box: Box, width: float, height: float, digits: int) -> list[float]:
    """Left, top, width, height."""
    values = box.left / width, box.top / height, box.width / width, box.height / height
    return [round(value, digits) for value in values]


def _alike(body: Body) -> Iterator[Run]:
    """Runs with neighbours that look the same as one."""
    last: Run | None = None
    for run in body.runs:
        if not run.text.strip():
            continue
        if last is not None and _look(last) == _look(run):
            last.text += run.text
            continue
        if last is not None:
            yield last
        last = Run(run.text, run.size, run.font, run.bold, run.colour, contrast=run.contrast)
    if last is not None:
        yield last


def _look(run: Run) -> tuple[object, ...]:
    return run.size, run.font, run.bold, run.colour


def _run(run: Run) -> dict[str, Any]:
    described = {"text": run.text, "size": run.size, "font": run.font, "bold": run.bold}
    described |= {"colour": str(run.colour) if run.colour else "", "contrast": run.contrast}
    return {key: value for key, value in described.items() if value not in ("", None, False)}


def behind(deck: Deck, part: str) -> Iterator[Unit]:
    """What a layout or master says on the slides that use it: `layout 2/shape 1`, `master 1/shape 4`."""
    sheet = deck.sheets[part]
    kind = "layout" if sheet.parent is not None else "master"
    same = [one.part for one in deck.sheets.values() if (one.parent is not None) == (sheet.parent is not None)]
    shapes = list(as_read(_own(deck, sheet)))
    _address(shapes, f"{kind} {same.index(part) + 1}")
    content = Content(deck, sheet, _anywhere(sheet))
    for shape in shapes:
        if shape.has_text or shape.alt or shape.kind not in ("shape", "connector", "picture"):
            try:
                yield from content.units(shape)
            except Exception as error:
                deck.reading.lost(shape.address, error)
