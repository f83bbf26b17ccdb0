"""Markdown to the blocks of a Word document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from docx.enum.text import WD_ALIGN_PARAGRAPH, WD_BREAK
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Emu, Pt, Twips
from docx.text.paragraph import Paragraph
from docx.text.run import Run
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from rubric_env.office._docx_lists import Lists, in_list, indent_of
from rubric_env.office._docx_styles import CODE_FONT, LINE, complete, frame
from rubric_env.office._docx_tables import add_table
from rubric_env.office._pictures import image
from rubric_env.office._problems import Problems, Refused

if TYPE_CHECKING:
    from docx.document import Document

DPI = 144
"""Pixels of a picture in an inch, where the page has room for it."""

_READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_PAGE_BREAK = re.compile(r"\\(pagebreak|newpage)|<!--\s*page-?break\s*-->|<div[^>]*page-break[^>]*>(\s*</div>)?", re.I)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAGS = {"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "sub": "sub", "sup": "super"}


@dataclass(frozen=True, slots=True)
class Look:
    """How the letters of a run look."""

    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    underline: bool = False
    sub: bool = False
    super: bool = False

    def put_on(self, run: Run) -> None:
        font = run.font
        for name, on in (("bold", self.bold), ("italic", self.italic), ("strike", self.strike)):
            if on:
                setattr(font, name, True)
        if self.underline:
            font.underline = True
        if self.sub:
            font.subscript = True
        if self.super:
            font.superscript = True
        if self.code:
            font.name = CODE_FONT
            font.size = Pt(10)


def parse(text: str) -> list[SyntaxTreeNode]:
    """The blocks of a text."""
    return list(SyntaxTreeNode(_READER.parse(text)).children)


def parse_inline(text: str) -> list[SyntaxTreeNode]:
    """A text that is no more than words, whatever it begins with."""
    return list(SyntaxTreeNode(_READER.parseInline(text)).children)


class Writer:
    """Adds blocks at the end of a document. What is wrong goes to `problems`."""

    def __init__(self, document: Document, root: str, problems: Problems) -> None:
        complete(document)
        self.document = document
        self.lists = Lists(document)
        self._root = root
        self._problems = problems
        self._known = {style.name for style in document.styles}
        section: Any = document.sections[-1]
        self.width: int = section.page_width - section.left_margin - section.right_margin
        self._height: int = section.page_height - section.top_margin - section.bottom_margin

    def blocks(self, nodes: Iterable[SyntaxTreeNode]) -> None:
        for node in nodes:
            self._block(node)

    def _block(self, node: SyntaxTreeNode, *, style: str = "", indent: int = 0) -> None:
        match node.type:
            case "heading":
                self.inline(node.children, self._paragraph(f"Heading {node.tag[1:]}"))
            case "paragraph":
                text = node.children[0].content.strip() if node.children else ""
                if _PAGE_BREAK.fullmatch(text):
                    self._break()
                else:
                    self.inline(node.children, self._paragraph(style, indent))
            case "bullet_list" | "ordered_list":
                self._list(node, 0)
            case "blockquote":
                for child in node.children:
                    self._block(child, style="Block Quote", indent=indent)
            case "fence" | "code_block":
                self._code(node.content, indent)
            case "table":
                self.table(node)
            case "hr":
                frame(self._paragraph()._p.get_or_add_pPr(), {"bottom": LINE})
            case "html_block":
                self._html(node.content, style, indent)
            case _:
                for child in node.children:
                    self._block(child, style=style, indent=indent)

    def _paragraph(self, style: str = "", indent: int = 0) -> Paragraph:
        paragraph = self.document.add_paragraph(style=style if style in self._known else None)
        if indent:
            paragraph.paragraph_format.left_indent = Twips(indent)
        return paragraph

    def _break(self) -> None:
        self.document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)

    def _html(self, content: str, style: str, indent: int) -> None:
        if _PAGE_BREAK.fullmatch(content.strip()):
            self._break()
        elif text := _COMMENT.sub("", content).strip():
            self._paragraph(style, indent).add_run(text)

    def _list(self, node: SyntaxTreeNode, level: int) -> None:
        ordered = node.type == "ordered_list"
        identity = self.lists.begin(ordered, int(node.attrs.get("start", 1)))
        style = "List Number" if ordered else "List Bullet"
        style += f" {level + 1}" if 0 < level < 3 else " 3" if level >= 3 else ""
        for item in node.children:
            numbered = False
            for child in item.children:
                if child.type in ("bullet_list", "ordered_list"):
                    self._list(child, level + 1)
                elif child.type == "paragraph" and not numbered:
                    numbered = True
                    paragraph = self._paragraph(style)
                    in_list(paragraph, identity, level)
                    self.inline(child.children, paragraph)
                else:
                    self._block(child, indent=indent_of(level))

    def _code(self, content: str, indent: int) -> None:
        paragraph = self._paragraph("Code", indent)
        paragraph.add_run(content.rstrip("\n"))
        paragraph.paragraph_format.space_after = Pt(8)

    def table(self, node: SyntaxTreeNode) -> None:
        """A table of Markdown, with its first row as the heading."""
        rows = [list(row.children) for part in node.children for row in part.children]
        add_table(self, rows)

    def inline(self, nodes: Sequence[SyntaxTreeNode], paragraph: Paragraph, look: Look = Look()) -> None:
        """The words of a block into its paragraph."""
        for node in nodes:
            if node.type == "inline":
                self._runs(node.children, paragraph, paragraph._p, look)

    def _runs(self, nodes: Iterable[SyntaxTreeNode], paragraph: Paragraph, place: Any, look: Look) -> None:
        for node in nodes:
            match node.type:
                case "strong":
                    self._runs(node.children, paragraph, place, replace(look, bold=True))
                case "em":
                    self._runs(node.children, paragraph, place, replace(look, italic=True))
                case "s":
                    self._runs(node.children, paragraph, place, replace(look, strike=True))
                case "code_inline":
                    self._run(node.content, paragraph, place, replace(look, code=True))
                case "link":
                    self._link(node, paragraph, place, look)
                case "image":
                    self._picture(node, paragraph)
                case "softbreak":
                    self._run(" ", paragraph, place, look)
                case "hardbreak":
                    self._run("\n", paragraph, place, look)
                case "html_inline":
                    look = self._tag(node.content, paragraph, place, look)
                case _:
                    self._run(node.content, paragraph, place, look)

    def _run(self, text: str, paragraph: Paragraph, place: Any, look: Look) -> None:
        if not text:
            return
        run = paragraph.add_run(text)
        look.put_on(run)
        if place is not paragraph._p:
            run.style = "Hyperlink"
            place.append(run._r)

    def _tag(self, tag: str, paragraph: Paragraph, place: Any, look: Look) -> Look:
        """A tag that stands among the words: how the words after it look."""
        match = re.fullmatch(r"<(/?)(\w+)\s*/?>", tag)
        if match and match[2].lower() == "br":
            self._run("\n", paragraph, place, look)
        elif match and match[2].lower() in _TAGS:
            return replace(look, **{_TAGS[match[2].lower()]: not match[1]})
        elif not _COMMENT.fullmatch(tag):
            self._run(tag, paragraph, place, look)
        return look

    def _link(self, node: SyntaxTreeNode, paragraph: Paragraph, place: Any, look: Look) -> None:
        target = str(node.attrs.get("href", ""))
        link = OxmlElement("w:hyperlink")
        if target.startswith("#") or not target:
            self._runs(node.children, paragraph, place, look)
            return
        link.set(qn("r:id"), paragraph.part.relate_to(target, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
        paragraph._p.append(link)
        self._runs(node.children, paragraph, link, look)

    def _picture(self, node: SyntaxTreeNode, paragraph: Paragraph) -> None:
        path, alt = str(node.attrs.get("src", "")), node.content
        with self._problems.of(""):
            if re.match(r"[a-z]+:", path, re.I):
                raise Refused(f"picture {path[:100]}: only pictures of the workspace can be shown")
            picture = image(self._root, path)
            natural = picture.width * 914400 / DPI, picture.height * 914400 / DPI
            scale = min(1.0, self.width / natural[0], 0.7 * self._height / natural[1])
            width = Emu(int(natural[0] * scale))
            shape = paragraph.add_run().add_picture(picture.stream, width=width)
            for side in "TBLR":
                shape._inline.set(f"dist{side}", "0")  # without it some programs leave room around it
            shape._inline.docPr.set("descr", alt)
            shape._inline.docPr.set("name", f"Picture {shape._inline.docPr.id}")
            if len(list(_siblings(node))) == 1:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.CENTER


def _siblings(node: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    parent = node.parent
    yield from parent.children if parent is not None else ()
