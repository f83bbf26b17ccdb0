"""A Word document from Markdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docx import Document as new_document
from docx.enum.section import WD_ORIENT
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from rubric_env.evidence._pptx_deck import counted
from rubric_env.office._docx_markdown import Writer, parse
from rubric_env.office._docx_styles import dress
from rubric_env.office._package import MADE, settle
from rubric_env.office._problems import Problems

if TYPE_CHECKING:
    from docx.document import Document

    from rubric_env.office._run import Task

_FRONT = re.compile(r"\A---[ \t]*\n(?P<lines>(?:[ \t]*[A-Za-z_]+[ \t]*:[^\n]*\n)+)---[ \t]*(?:\n|\Z)")
_KEYS = ("title", "subtitle", "author", "header", "footer", "page_numbers", "landscape")
_SWITCHES = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def make(task: Task) -> str:
    """Raises Refused."""
    problems = Problems()
    settings, text = _settings(task.arguments["markdown"], problems)
    document = new_document()
    dress(document)
    if settings.get("landscape"):
        _turn(document)
    core = document.core_properties
    core.author, core.comments, core.title = settings.get("author", ""), "", settings.get("title", "")
    core.created = core.modified = MADE
    writer = Writer(document, task.root, problems)
    for name in ("title", "subtitle"):
        if words := settings.get(name):
            document.add_paragraph(words, style=name.capitalize())
    nodes = parse(text)
    if not nodes and not settings:
        problems.add("markdown", "it is empty")
    writer.blocks(nodes)
    _margins(document, settings)
    problems.raise_any()
    document.save(task.target)
    settle(Path(task.target))
    tables, pictures = len(document.tables), len(document.inline_shapes)
    said = (counted(len(document.paragraphs), "paragraphs"), counted(tables, "tables"), counted(pictures, "pictures"))
    return ", ".join(said)


def _settings(text: str, problems: Problems) -> tuple[dict[str, Any], str]:
    """The lines `key: value` between two `---` at the start, and the rest."""
    text = text.replace("\r\n", "\n")
    front = _FRONT.match(text)
    if front is None:
        return {}, text
    settings: dict[str, Any] = {}
    for line in front["lines"].splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        key, value = key.lower(), value.strip("\"'")
        if key not in _KEYS:
            problems.add("markdown", f"unknown setting {key!r} at its start; there are {', '.join(_KEYS)}")
        elif key in ("page_numbers", "landscape"):
            if value.lower() not in _SWITCHES:
                problems.add("markdown", f"{key} is yes or no, not {value!r}")
            settings[key] = _SWITCHES.get(value.lower(), False)
        else:
            settings[key] = value
    return settings, text[front.end() :]


def _turn(document: Document) -> None:
    section: Any = document.sections[0]
    section.orientation = WD_ORIENT.LANDSCAPE
    section.page_width, section.page_height = section.page_height, section.page_width


def _margins(document: Document, settings: dict[str, Any]) -> None:
    section: Any = document.sections[0]
    if words := settings.get("header"):
        section.header.paragraphs[0].text = words
    numbers = settings.get("page_numbers", True)
    if not numbers and not settings.get("footer"):
        return
    footer = section.footer.paragraphs[0]
    footer.alignment = WD_ALIGN_PARAGRAPH.CENTER
    if words := settings.get("footer"):
        footer.add_run(f"{words}   |   " if numbers else words)
    if numbers:
        footer.add_run("Page " if str(settings.get("footer", "") + document.core_properties.title).isascii() else "")
        _field(footer, "PAGE")


def _field(paragraph: Any, code: str) -> None:
    field = OxmlElement("w:fldSimple")
    field.set(qn("w:instr"), code)
    run = paragraph.add_run("1")
    paragraph._p.append(field)
    field.append(run._r)
