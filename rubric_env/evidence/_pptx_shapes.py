"""The shapes of a slide: what each is, where it is, what it takes over, and what is behind its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rubric_env.evidence._ooxml import A, P, children
from rubric_env.evidence._pptx_deck import Deck, Sheet, frame_of, placeholder_of
from rubric_env.evidence._pptx_geometry import Box, Matrix, group_matrix, in_reading_order
from rubric_env.evidence._pptx_look import NOTHING, Colour, Fill
from rubric_env.evidence._pptx_runs import Context, judge_contrast
from rubric_env.evidence._pptx_text import Body

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

LAYERS = 500
"""Shapes behind a text that are looked at for its ground; it costs the square."""

TITLES = ("title", "ctrTitle")
FOOTERS = {"dt": "date", "ftr": "footer", "sldNum": "slide number", "hdr": "header"}

_KINDS = {
    f"{P}sp": "shape",
    f"{P}cxnSp": "connector",
    f"{P}pic": "picture",
    f"{P}graphicFrame": "frame",
    f"{P}contentPart": "ink",
}
_FRAMES = {"table": "table", "chart": "chart", "chartex": "chart", "diagram": "diagram", "ole": "embedded object"}
_STYLES = {"title": "titleStyle", "ctrTitle": "titleStyle", **dict.fromkeys((*FOOTERS, "none"), "otherStyle")}


@dataclass
class Shape:
    """One shape, or a group with its `members`. `order` is its place from back to front.

    `placeholder` is its type (`title`, `body`, `pic`), empty when it is none. `turned` says that its text does not run
    from left to right. `body` is None for what has no text of its own, `cells` are those of a table once it was read;
    `error` is what its text raised when it was read; `facts` end up in the JSON of its slide.
    """

    element: Element
    kind: str
    box: Box | None
    order: int
    placeholder: str = ""
    hidden: bool = False
    turned: bool = False
    above: list[Element] = field(default_factory=list)
    fill: Fill = NOTHING
    members: list[Shape] = field(default_factory=list)
    body: Body | None = None
    cells: list[Body] = field(default_factory=list)
    ink: Box | None = None
    ground: Colour | None = None
    address: str = ""
    error: Exception | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def _named(self) -> Element | None:
        return self.element.find(f"*/{P}cNvPr")

    def told(self, name: str) -> str:
        """An attribute that every kind of shape has: `id`, `name`, `descr`, `title`."""
        element = self._named
        return (element.get(name) or "").strip() if element is not None else ""

    @property
    def alt(self) -> str:
        """What the author says for those who cannot see it."""
        return "\n".join(dict.fromkeys(filter(None, (self.told("title"), self.told("descr")))))

    @property
    def click(self) -> Element | None:
        """The hyperlink of the shape as a whole."""
        element = self._named
        return element.find(f"{A}hlinkClick") if element is not None else None

    @property
    def bodies(self) -> list[Body]:
        """All its text."""
        return [self.body, *self.cells] if self.body is not None else self.cells

    @property
    def has_text(self) -> bool:
        return self.body is not None and not self.body.blank

    @property
    def content(self) -> bool:
        """Something to look at rather than decoration."""
        return self.has_text or self.kind in ("picture", "table", "chart", "diagram", "embedded object", "video")


def read_shapes(deck: Deck, sheet: Sheet, context: Context) -> list[Shape]:
    """Those of a slide, layout or master, groups as trees, from back to front, with their text."""
    if sheet.shapes is None:
        return []
    shapes = list(_walk(sheet.shapes, Matrix(), False, NOTHING, sheet, [0]))
    for shape in flat(shapes):
        text = shape.element.find(f"{P}txBody")
        try:
            if text is not None:
                shape.body = _body(deck, sheet, shape, text, context)
                if shape.box is not None and not shape.body.blank:
                    shape.ink = shape.box if shape.turned else shape.body.ink(shape.box)
        except Exception as error:
            shape.error = error
    return shapes


def flat(shapes: Sequence[Shape]) -> Iterator[Shape]:
    """Without the groups around them."""
    for shape in shapes:
        if shape.kind == "group":
            yield from flat(shape.members)
        else:
            yield shape


def groups(shapes: Sequence[Shape]) -> Iterator[Shape]:
    """The groups themselves, outer ones first."""
    for shape in shapes:
        if shape.kind == "group":
            yield shape
            yield from groups(shape.members)


def as_read(shapes: Sequence[Shape]) -> Iterator[Shape]:
    """In the order of a reader: titles, what stands on the slide with groups kept together, then footers."""
    first = [shape for shape in shapes if shape.placeholder in TITLES]
    last = [shape for shape in shapes if shape.placeholder in FOOTERS]
    rest = [shape for shape in shapes if shape.placeholder not in TITLES and shape.placeholder not in FOOTERS]
    ordered = in_reading_order(rest, lambda shape: shape.box, lambda shape: shape.kind in ("shape", "picture"))
    for shape in (*first, *ordered, *last):
        if shape.kind == "group":
            yield from as_read(shape.members)
        else:
            yield shape


def see(shapes: Sequence[Shape], behind: Sequence[tuple[Box, Fill]], background: Fill) -> None:
    """Find the ground of each text, and its contrast. `behind` is what layout and master paint, from back to front."""
    painted = list(behind)
    for shape in shapes:
        if shape.hidden:
            continue
        if shape.box is not None and shape.fill.painted:
            painted.append((shape.box, shape.fill))
        if shape.box is not None and (shape.ink is not None or shape.kind == "table"):
            bare = shape.ink is not None and not shape.fill.painted
            shape.ground = _ground(
                _within(shape.ink, shape.box) if bare and shape.ink else shape.box, painted, background
            )
        if shape.body is not None:
            judge_contrast(shape.body.runs, shape.ground)


def _within(ink: Box, box: Box) -> Box:
    return Box(max(ink.left, box.left), max(ink.top, box.top), min(ink.right, box.right), min(ink.bottom, box.bottom))


def _ground(area: Box, painted: Sequence[tuple[Box, Fill]], background: Fill) -> Colour | None:
    glass: list[Colour] = []
    ground = background.colour
    for box, fill in reversed(painted[-LAYERS:]):
        if not box.holds(area):
            if box.common(area) > 0.05 * area.area:
                return None
        elif fill.colour is None:
            return None
        elif fill.colour.alpha < 1:
            glass.append(fill.colour)
        else:
            ground = fill.colour
            break
    else:
        if len(painted) > LAYERS:
            return None
    for colour in reversed(glass):
        ground = colour.over(ground) if ground else None
    return ground


def _walk(
    tree: Element, matrix: Matrix, hidden: bool, group: Fill, sheet: Sheet, count: list[int], turned: bool = False
) -> Iterator[Shape]:
    for element in children(tree):
        inside = element.tag == f"{P}grpSp"
        kind = "group" if inside else _KINDS.get(element.tag, "")
        if not kind and element.find(f"*/{P}cNvPr") is None:
            continue
        count[0] += 1
        shape = Shape(element, kind or "unknown", None, count[0])
        shape.hidden = hidden or (shape.told("hidden") in ("1", "true"))
        own = frame_of(element)
        mark = placeholder_of(element)
        if mark is not None:
            shape.placeholder = mark.get("type") or "body"
            shape.above = sheet.takes_after(mark)
            own = own or next((found for one in shape.above if (found := frame_of(one)) is not None), None)
        shape.turned = turned or (own is not None and own.rotation % 360 != 0)
        shape.box = own.box(matrix) if own is not None else None
        if inside:
            properties = element.find(f"{P}grpSpPr")
            xfrm = properties.find(f"{A}xfrm") if properties is not None else None
            fill = sheet.look.fill(properties, group) or group
            deeper = matrix.after(group_matrix(xfrm))
            shape.members = list(_walk(element, deeper, shape.hidden, fill, sheet, count, shape.turned))
            shape.box = _around(shape.members) or shape.box
        else:
            shape.kind = _kind(shape)
            shape.fill = _fill(shape, sheet, group)
        yield shape


def _around(shapes: Sequence[Shape]) -> Box | None:
    boxes = [shape.box for shape in shapes if shape.box is not None]
    if not boxes:
        return None
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


def _kind(shape: Shape) -> str:
    if shape.kind == "frame":
        data = shape.element.find(f"{A}graphic/{A}graphicData")
        uri = (data.get("uri") or "") if data is not None else ""
        return _FRAMES.get(uri.rpartition("/")[2], "frame")
    media = shape.element.find(f"*/{P}nvPr")
    for child in children(media) if media is not None else ():
        if child.tag in (f"{A}videoFile", f"{A}quickTimeFile"):
            return "video"
        if child.tag in (f"{A}audioFile", f"{A}wavAudioFile", f"{A}audioCd"):
            return "audio"
    return shape.kind


def _fill(shape: Shape, sheet: Sheet, group: Fill) -> Fill:
    if shape.kind in ("picture", "video", "chart", "embedded object"):
        return Fill(True)
    if shape.kind != "shape":
        return NOTHING
    own = sheet.look.fill(shape.element.find(f"{P}spPr"), group)
    own = own or sheet.look.referred(shape.element.find(f"{P}style/{A}fillRef"))
    inherited = (fill for one in shape.above if (fill := sheet.look.fill(one.find(f"{P}spPr"))))
    return own or next(inherited, NOTHING)


def _body(deck: Deck, sheet: Sheet, shape: Shape, text: Element, context: Context) -> Body:
    bodies = [found for one in shape.above if (found := one.find(f"{P}txBody")) is not None]
    inherited = [style for one in bodies if (style := one.find(f"{A}lstStyle")) is not None]
    master = list(sheet.chain)[-1].root
    if shape.placeholder:
        name = _STYLES.get(shape.placeholder, "bodyStyle")
        inherited += master.findall(f"{P}txStyles/{P}{name}")
    inherited += other_styles(deck, master)
    font = sheet.look.colour(shape.element.find(f"{P}style/{A}fontRef"))
    return Body(text, inherited, context, bodies=bodies, font_colour=font)


def other_styles(deck: Deck, master: Element) -> list[Element]:
    """What text outside placeholders looks like."""
    found = (deck.text_style, master.find(f"{P}txStyles/{P}otherStyle"))
    return [style for style in found if style is not None]
