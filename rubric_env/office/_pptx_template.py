"""The deck that a new one begins as: the library's own template, widened to 16:9 and dressed."""

from __future__ import annotations

from typing import Any

from lxml import etree
from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls, qn
from pptx.util import Inches, Pt

WIDTH, HEIGHT = Inches(13.333), Inches(7.5)

COLORS = {
    "dk2": "1F3A5F",
    "lt2": "EEF3F8",
    "accent1": "1F4E79",
    "accent2": "2E9E8F",
    "accent3": "E07B39",
    "accent4": "8A6FB0",
    "accent5": "C8A415",
    "accent6": "6B7A8F",
    "hlink": "0563C1",
}

TITLE = (0.6, 0.4, 12.13, 1.0)
BODY = (0.6, 1.6, 12.13, 5.2)
_HALF = 5.9
"""Inches, as all places here: left, top, width, height."""

_PLACES = {
    "Title Slide": {0: (0.9, 1.9, 11.5, 1.9), 1: (0.9, 4.0, 11.5, 1.3)},
    "Section Header": {0: (0.9, 2.3, 11.5, 1.5), 1: (0.9, 4.0, 11.5, 1.2)},
    "Title and Content": {0: TITLE, 1: BODY},
    "Two Content": {0: TITLE, 1: (0.6, 1.6, _HALF, 5.2), 2: (6.83, 1.6, _HALF, 5.2)},
    "Comparison": {
        0: TITLE,
        1: (0.6, 1.55, _HALF, 0.6),
        2: (0.6, 2.2, _HALF, 4.6),
        3: (6.83, 1.55, _HALF, 0.6),
        4: (6.83, 2.2, _HALF, 4.6),
    },
    "Title Only": {0: TITLE},
}
_NUMBER = (11.53, 6.95, 1.2, 0.35)
_BODY_SIZES = (20, 18, 16, 14, 14)


def new_deck() -> Any:
    """A presentation without slides."""
    deck = Presentation()
    wide = WIDTH / deck.slide_width
    deck.slide_width, deck.slide_height = WIDTH, HEIGHT
    master = deck.slide_master
    _color(master)
    for sheet in (master, *deck.slide_layouts):
        for shape in sheet.shapes:
            if shape.element.spPr.xfrm is not None:
                shape.left, shape.width = int(shape.left * wide), int(shape.width * wide)
    for shape in master.placeholders:
        kind = shape.placeholder_format.type.name
        if kind in ("TITLE", "BODY"):
            _place(shape, TITLE if kind == "TITLE" else BODY)
        elif kind == "SLIDE_NUMBER":
            _place(shape, _NUMBER)
            for color in shape.element.iter(qn("a:schemeClr")):
                color.set("val", "tx2")
                for tint in list(color):
                    color.remove(tint)
    _styles(master)
    _line(master)
    for layout in deck.slide_layouts:
        for shape in layout.placeholders:
            index = shape.placeholder_format.idx
            if index in _PLACES.get(layout.name, {}):
                _place(shape, _PLACES[layout.name][index])
            elif shape.placeholder_format.type.name == "SLIDE_NUMBER":
                _place(shape, _NUMBER)
        if layout.name in ("Title Slide", "Section Header"):
            _cover(layout)
        elif layout.name == "Comparison":
            for index in (1, 3):
                _look(layout, index, 18, "tx2", bold=True, anchor="b")
    return deck


def _place(shape: Any, place: tuple[float, float, float, float]) -> None:
    shape.left, shape.top, shape.width, shape.height = map(Inches, place)


def _color(master: Any) -> None:
    """The theme is a part that the library keeps as bytes."""
    part = master.part.part_related_by(RELATIONSHIP_TYPE.THEME)
    theme = etree.fromstring(part.blob)
    for name, color in COLORS.items():
        for element in theme.iter(qn(f"a:{name}")):
            for old in list(element):
                element.remove(old)
            etree.SubElement(element, qn("a:srgbClr")).set("val", color)
    part._blob = etree.tostring(theme, xml_declaration=True, encoding="UTF-8", standalone=True)


def _styles(master: Any) -> None:
    """Titles to the left, bold and dark; text of sizes that fill a slide with five points."""
    styles = master.element.find(qn("p:txStyles"))
    title = styles.find(f"{qn('p:titleStyle')}/{qn('a:lvl1pPr')}")
    title.set("algn", "l")
    letters = title.find(qn("a:defRPr"))
    letters.set("sz", "2800")
    letters.set("b", "1")
    letters.find(f"{qn('a:solidFill')}/{qn('a:schemeClr')}").set("val", "tx2")
    for level, size in enumerate(_BODY_SIZES, 1):
        style = styles.find(f"{qn('p:bodyStyle')}/{qn(f'a:lvl{level}pPr')}")
        style.set("marL", str(Pt(18 * level)))
        style.set("indent", str(-Pt(16)))
        style.find(qn("a:defRPr")).set("sz", str(size * 100))
        before = style.find(qn("a:spcBef"))
        for old in list(before):
            before.remove(old)
        etree.SubElement(before, qn("a:spcPts")).set("val", "600")
    for shape in master.placeholders:
        if shape.placeholder_format.type.name == "TITLE":
            shape.text_frame._txBody.bodyPr.set("anchor", "b")
        for fit in shape.text_frame._txBody.bodyPr.findall(qn("a:normAutofit")):
            shape.text_frame._txBody.bodyPr.remove(fit)


def _line(master: Any) -> None:
    """Under the title, on every slide but covers."""
    left, top, width, height = (Inches(one) for one in (0.7, 1.45, 1.1, 0.05))
    master.shapes._spTree.append(
        parse_xml(
            f'<p:sp {nsdecls("p", "a")}><p:nvSpPr><p:cNvPr id="90" name="Line"/><p:cNvSpPr/><p:nvPr userDrawn="1"/>'
            f'</p:nvSpPr><p:spPr><a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>'
            '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom><a:solidFill><a:schemeClr val="accent2"/></a:solidFill>'
            "<a:ln><a:noFill/></a:ln></p:spPr></p:sp>"
        )
    )


def _cover(layout: Any) -> None:
    """White on dark, without the line."""
    layout.element.set("showMasterSp", "0")
    fill = layout.background.fill
    fill.solid()
    fill.fore_color.theme_color = 15  # text 2: the dark of the theme
    _look(layout, 0, 40 if layout.name == "Title Slide" else 34, "bg1", bold=True, anchor="b")
    _look(layout, 1, 20, "bg2", anchor="t")


def _look(layout: Any, index: int, size: int, color: str, *, bold: bool = False, anchor: str = "t") -> None:
    shape = next(one for one in layout.placeholders if one.placeholder_format.idx == index)
    body = shape.text_frame._txBody
    body.bodyPr.set("anchor", anchor)
    for fit in list(body.bodyPr):
        body.bodyPr.remove(fit)
    old = body.find(qn("a:lstStyle"))
    body.replace(
        old,
        parse_xml(
            f'<a:lstStyle {nsdecls("a")}><a:lvl1pPr marL="0" indent="0" algn="l"><a:buNone/><a:defRPr cap="none" '
            f'sz="{size * 100}" b="{int(bold)}"><a:solidFill><a:schemeClr val="{color}"/></a:solidFill></a:defRPr>'
            "</a:lvl1pPr></a:lstStyle>"
        ),
    )
