"""How documents look that are made here: one font, dark blue headings, room to breathe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docx.enum.style import WD_STYLE_TYPE
from docx.enum.text import WD_LINE_SPACING
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor

if TYPE_CHECKING:
    from docx.document import Document

FONT, EAST_ASIAN, CODE_FONT = "Calibri", "Microsoft YaHei", "Consolas"
INK, GREY = RGBColor(0x1F, 0x3A, 0x5F), RGBColor(0x59, 0x59, 0x59)
HEADER_FILL, CODE_FILL, LINE = "DCE6F1", "F3F4F6", "A6B4C4"

_HEADINGS = ((1, 18, 20, 6), (2, 14, 16, 4), (3, 12, 12, 3), (4, 11, 10, 2), (5, 11, 10, 2), (6, 11, 10, 2))
"""Level, points, points before and after."""


def dress(document: Document) -> None:
    """Give a new document its page and its styles."""
    for section in document.sections:
        section.page_width, section.page_height = Cm(21.0), Cm(29.7)
        section.left_margin = section.right_margin = Cm(2.5)
        section.top_margin = section.bottom_margin = Cm(2.3)
    styles: Any = document.styles
    normal = styles["Normal"]
    set_font(normal, FONT)
    normal.font.size = Pt(11)
    normal.paragraph_format.space_after = Pt(6)
    normal.paragraph_format.line_spacing_rule = WD_LINE_SPACING.MULTIPLE
    normal.paragraph_format.line_spacing = 1.12
    for level, size, before, after in _HEADINGS:
        style = styles[f"Heading {level}"]
        set_font(style, FONT)
        style.font.size, style.font.bold, style.font.italic = Pt(size), True, level > 4
        style.font.color.rgb = INK if level < 4 else GREY
        style.paragraph_format.space_before, style.paragraph_format.space_after = Pt(before), Pt(after)
        style.paragraph_format.keep_with_next = True
    title = styles["Title"]
    set_font(title, FONT)
    title.font.size, title.font.bold, title.font.color.rgb = Pt(26), True, INK
    title.paragraph_format.space_after = Pt(4)
    frame(title.element.get_or_add_pPr(), {"bottom": INK})
    subtitle = styles["Subtitle"]
    set_font(subtitle, FONT)
    subtitle.font.size, subtitle.font.italic, subtitle.font.color.rgb = Pt(13), False, GREY
    subtitle.paragraph_format.space_after = Pt(14)
    for name in ("List Bullet", "List Number"):
        for suffix in ("", " 2", " 3"):
            styles[name + suffix].paragraph_format.space_after = Pt(3)
    for name in ("Header", "Footer"):
        styles[name].font.size, styles[name].font.color.rgb = Pt(9), GREY


def complete(document: Document) -> None:
    """Add the styles that Markdown needs and the document lacks; those that it has stay as they are."""
    styles: Any = document.styles
    known = {style.name for style in styles}
    if "Hyperlink" not in known:
        link = styles.add_style("Hyperlink", WD_STYLE_TYPE.CHARACTER)
        link.font.color.rgb, link.font.underline = RGBColor(0x05, 0x63, 0xC1), True
    if "Code" not in known:
        code = styles.add_style("Code", WD_STYLE_TYPE.PARAGRAPH)
        code.base_style = styles.default(WD_STYLE_TYPE.PARAGRAPH)
        set_font(code, CODE_FONT)
        code.font.size = Pt(9.5)
        code.paragraph_format.space_after = Pt(0)
        code.paragraph_format.line_spacing = 1.0
        code.paragraph_format.left_indent = Cm(0.2)
        shade(code.element.get_or_add_pPr(), CODE_FILL)
    if "Block Quote" not in known:
        quote = styles.add_style("Block Quote", WD_STYLE_TYPE.PARAGRAPH)
        quote.base_style = styles.default(WD_STYLE_TYPE.PARAGRAPH)
        quote.font.italic, quote.font.color.rgb = True, GREY
        quote.paragraph_format.left_indent = Cm(0.8)
        frame(quote.element.get_or_add_pPr(), {"left": INK})
    for level, size, before, after in _HEADINGS:
        if f"Heading {level}" not in known:
            style = styles.add_style(f"Heading {level}", WD_STYLE_TYPE.PARAGRAPH, builtin=True)
            style.base_style = styles.default(WD_STYLE_TYPE.PARAGRAPH)
            style.font.size, style.font.bold = Pt(size), True
            style.paragraph_format.space_before, style.paragraph_format.space_after = Pt(before), Pt(after)
            style.paragraph_format.keep_with_next = True


def set_font(style: Any, name: str) -> None:
    """For all scripts: a theme font that the style names would win otherwise."""
    fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
    for attribute in list(fonts.attrib):
        del fonts.attrib[attribute]
    for script, font in (("ascii", name), ("hAnsi", name), ("cs", name), ("eastAsia", EAST_ASIAN)):
        fonts.set(qn(f"w:{script}"), font)


def shade(properties: Any, fill: str) -> None:
    """The ground of a paragraph or a cell, of which `properties` are given."""
    element = OxmlElement("w:shd")
    element.set(qn("w:val"), "clear")
    element.set(qn("w:color"), "auto")
    element.set(qn("w:fill"), fill)
    properties.insert_element_before(element, *_AFTER_SHADE)


def frame(properties: Any, sides: dict[str, object]) -> None:
    """Lines at the sides of a paragraph, in their colours."""
    for old in properties.findall(qn("w:pBdr")):
        properties.remove(old)
    borders = OxmlElement("w:pBdr")
    for side in ("top", "left", "bottom", "right"):
        if side in sides:
            line = OxmlElement(f"w:{side}")
            for name, value in (("val", "single"), ("sz", "12"), ("space", "6"), ("color", str(sides[side]))):
                line.set(qn(f"w:{name}"), value)
            borders.append(line)
    properties.insert_element_before(borders, "w:shd", *_AFTER_SHADE)


# In `w:pPr`, whose children have an order; in `w:tcPr` of a new cell the shade may come last.
_AFTER_SHADE = (
    *("w:tabs", "w:suppressAutoHyphens", "w:kinsoku", "w:wordWrap", "w:overflowPunct", "w:topLinePunct"),
    *("w:autoSpaceDE", "w:autoSpaceDN", "w:bidi", "w:adjustRightInd", "w:snapToGrid", "w:spacing", "w:ind"),
    *("w:contextualSpacing", "w:mirrorIndents", "w:suppressOverlap", "w:jc", "w:textDirection", "w:textAlignment"),
    *("w:textboxTightWrap", "w:outlineLvl", "w:divId", "w:cnfStyle", "w:rPr", "w:sectPr", "w:pPrChange"),
)
