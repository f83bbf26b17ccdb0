"""Lists as Word numbers them: each ordered list counts for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from docx.parts.numbering import NumberingPart

if TYPE_CHECKING:
    from docx.document import Document

_BULLETS = "•–▪"
_NUMBERS = (("decimal", "%{}."), ("lowerLetter", "%{})"), ("lowerRoman", "%{}."))
_LEVELS = 9
_INDENT, _HANGING = 425, 283
"""Twentieths of a point."""


class Lists:
    """The list definitions of one document, added as they are needed."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._kinds: dict[bool, str] = {}
        self._bullets = ""

    def begin(self, ordered: bool, start: int = 1) -> str:
        """The number of a list; bullets need but one."""
        if not ordered:
            self._bullets = self._bullets or self._add(False, 1)
            return self._bullets
        return self._add(True, start)

    def _add(self, ordered: bool, start: int) -> str:
        if ordered not in self._kinds:
            self._kinds[ordered] = self._define(ordered)
        numbering = self._numbering
        number = numbering.add_num(int(self._kinds[ordered]))
        if ordered:
            for level in range(_LEVELS):
                number.add_lvlOverride(level).add_startOverride(start if level == 0 else 1)
        return str(number.numId)

    def _define(self, ordered: bool) -> str:
        numbering = self._numbering
        used = [int(one.get(qn("w:abstractNumId"), "0")) for one in numbering.findall(qn("w:abstractNum"))]
        identity = str(max(used, default=-1) + 1)
        definition = OxmlElement("w:abstractNum")
        definition.set(qn("w:abstractNumId"), identity)
        kind = OxmlElement("w:multiLevelType")
        kind.set(qn("w:val"), "hybridMultilevel")
        definition.append(kind)
        for level in range(_LEVELS):
            form, text = _NUMBERS[level % 3] if ordered else ("bullet", _BULLETS[level % 3])
            definition.append(
                parse_xml(
                    f'<w:lvl {nsdecls("w")} w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
                    f'<w:lvlText w:val="{text.format(level + 1)}"/><w:lvlJc w:val="left"/><w:pPr><w:ind '
                    f'w:left="{_INDENT * (level + 1)}" w:hanging="{_HANGING}"/></w:pPr></w:lvl>'
                )
            )
        first = numbering.find(qn("w:num"))
        if first is None:
            numbering.append(definition)
        else:
            first.addprevious(definition)  # definitions come before their uses
        return identity

    @property
    def _numbering(self) -> Any:
        part: Any = self._document.part
        try:
            return part.numbering_part.element
        except NotImplementedError:  # the library cannot make one
            blob = f"<w:numbering {nsdecls('w')}/>".encode()
            made = NumberingPart.load(PackURI("/word/numbering.xml"), CONTENT_TYPE.WML_NUMBERING, blob, part.package)
            part.relate_to(made, RELATIONSHIP_TYPE.NUMBERING)
            return made.element


def in_list(paragraph: Any, identity: str, level: int) -> None:
    """Make the paragraph an item."""
    properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
    properties.get_or_add_ilvl().val = min(level, _LEVELS - 1)
    properties.get_or_add_numId().val = int(identity)


def indent_of(level: int) -> int:
    """Where the text of an item stands, in twentieths of a point: for what belongs to it without being numbered."""
    return _INDENT * (level + 1)
