"""Changes of a Word document, at the addresses that its reader gives."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docx import Document as open_document
from docx.oxml.ns import qn
from docx.text.paragraph import Paragraph

from rubric_env.evidence._docx import Story
from rubric_env.evidence._ooxml import Package
from rubric_env.evidence._pptx_deck import counted
from rubric_env.evidence._reading import Reading
from rubric_env.office._docx_markdown import Writer, parse, parse_inline
from rubric_env.office._package import check, settle
from rubric_env.office._problems import Problems, Refused
from rubric_env.office._text import nearest, replace_words, row_cells

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

    from rubric_env.office._run import Task

_MAIN = "word/document.xml"
_UNSEEN = ("w:vanish", "w:strike", "w:dstrike")
"""What the first words may be and new ones are not."""

_ROOTS = (qn("w:hdr"), qn("w:ftr"))
_OTHERS = ("header", "footer", "footnotes", "endnotes")


def edit(task: Task) -> str:
    """Raises Refused with everything that is wrong, and writes nothing then."""
    source = Path(task.source)
    check(source, _MAIN)
    document = open_document(task.source)
    places = _Places(document, source)
    problems = Problems()
    edits = _Edits(document, places, Writer(document, task.root, problems))
    changed = 0
    # All addresses are those of the file as it was read, so they are looked up before anything moves.
    found = []
    for number, one in enumerate(task.arguments["edits"], 1):
        with problems.of(f"edit {number}"):
            found.append((number, one, edits.place(one)))
    for number, one, element in found:
        with problems.of(f"edit {number}"):
            changed += edits.apply(one, element)
    problems.raise_any()
    document.save(task.target)
    settle(Path(task.target), source)
    return f"{counted(changed, 'changes')}; read_file shows the new addresses"


class _Places(Story):
    """Where each address of the document is. `parts` are the roots of all text, by their address or name."""

    def __init__(self, document: Any, source: Path) -> None:
        reading = Reading(source, source.parent)
        package = Package(reading)
        main = package.main(_MAIN)
        super().__init__(package, main, reading)
        self.places: dict[str, Any] = {}
        self.roots: list[Any] = [document.element.body]
        for _ in self.body(document.element.body):
            pass
        loaded = {str(part.partname).lstrip("/"): part for part in document.part.package.iter_parts()}
        for link in package.relationships(main).values():
            root = getattr(loaded.get(link.target), "element", None)
            if link.kind in _OTHERS and root is not None:
                self.roots.append(root)
                for _ in self.part(link.target, root, link.kind):
                    pass

    def met(self, label: str, element: Any) -> None:
        self.places[label] = element
        if element.tag == qn("w:tr"):
            self.places.setdefault(label.partition("/")[0], next(element.iterancestors(qn("w:tbl"))))


class _Edits:
    def __init__(self, document: Any, places: _Places, writer: Writer) -> None:
        self._document = document
        self._places = places
        self._writer = writer
        self._after: dict[Any, Any] = {}

    def place(self, edit: dict[str, Any]) -> Any:
        """The element that an edit is about; None for everywhere."""
        at = (edit["at"] or "").strip().strip("[]")
        if not at:
            if edit["find"] is None:
                raise Refused("it needs `at`, an address as read_file shows it, or `find`")
            return None
        # Some write the address as they would say it.
        for spelled in (at, f"¶{at}", at.replace("paragraph ", "¶").replace("¶ ", "¶"), at.lower()):
            if spelled in self._places.places:
                return self._places.places[spelled]
        raise Refused(f"{at!r} is no address of this file; {nearest(at, self._places.places)}")

    def apply(self, edit: dict[str, Any], element: Any) -> int:
        """Changes made."""
        action, text = edit["action"], edit["text"]
        if element is not None and element.getparent() is None and element.tag not in _ROOTS:
            raise Refused(f"{edit['at']} was deleted or replaced by an edit before this one")
        if edit["find"] is not None:
            return self._find(edit, element)
        if action != "delete" and text is None:
            raise Refused(f"{action} needs `text`")
        if element.tag == qn("w:tr"):
            self._row(action, element, text)
        elif element.tag in _ROOTS:
            self._margin(action, element, text)
        elif action == "delete":
            self._delete(element)
        elif action == "replace" and element.tag == qn("w:p"):
            self._replace(element, text)
        else:
            self._insert(element, text, before=action == "insert_before")
            if action == "replace":
                self._delete(element)
        return 1

    def _find(self, edit: dict[str, Any], element: Any) -> int:
        if edit["action"] != "replace":
            raise Refused("`find` goes with the action replace")
        if not edit["find"]:
            raise Refused("`find` is empty")
        roots = self._places.roots if element is None else [element]
        paragraphs = [one for root in roots for one in root.iter(qn("w:p"))]
        count = sum(replace_words(_pieces(one), edit["find"], edit["text"] or "", _keep_spaces) for one in paragraphs)
        if not count:
            where = edit["at"] or "the document"
            raise Refused(
                f"{edit['find'][:80]!r} does not occur in {where}; copy it exactly as read_file shows it, "
                "without list signs and addresses, and within one paragraph"
            )
        return count

    def _replace(self, paragraph: Any, text: str) -> None:
        """New words in an old paragraph, unless the new text is another kind of block."""
        nodes = parse(text)
        if len(nodes) == 1 and nodes[0].type in ("bullet_list", "ordered_list") and len(nodes[0].children) == 1:
            numbered = paragraph.pPr is not None and paragraph.pPr.numPr is not None
            style = (Paragraph(paragraph, self._document._body).style or self._document.styles["Normal"]).name or ""
            if numbered or style.startswith("List"):
                nodes = list(nodes[0].children[0].children)
        if len(nodes) != 1 or nodes[0].type != "paragraph":
            self._insert(paragraph, text, before=True)
            self._delete(paragraph)
            return
        self._words(paragraph, nodes[0].children)

    def _words(self, paragraph: Any, nodes: Sequence[SyntaxTreeNode]) -> None:
        """Put `nodes` in place of what the paragraph says, looking as its first words did."""
        first = next(paragraph.iter(qn("w:r")), None)
        look: Any = first.find(qn("w:rPr")) if first is not None else None
        for unseen in [one for name in _UNSEEN for one in look.findall(qn(name))] if look is not None else ():
            look.remove(unseen)
        _empty(paragraph)
        self._writer.inline(nodes, Paragraph(paragraph, self._document._body))
        for run in paragraph.iter(qn("w:r")):
            if look is not None and run.rPr is None:
                run.insert(0, deepcopy(look))

    def _insert(self, element: Any, text: str, *, before: bool) -> None:
        body = self._document.element.body
        known = set(body)
        self._writer.blocks(parse(text))
        made = [one for one in body if one not in known]
        if not made:
            raise Refused("`text` is empty")
        for one in made:
            self._put(one, element, before=before)

    def _put(self, new: Any, element: Any, *, before: bool) -> None:
        """Beside an element; what several edits put after it keeps their order."""
        if before:
            element.addprevious(new)
        else:
            self._after.get(element, element).addnext(new)
            self._after[element] = new

    def _delete(self, element: Any) -> None:
        parent = element.getparent()
        section = element.find(f"{qn('w:pPr')}/{qn('w:sectPr')}")
        alone = parent.tag in (qn("w:tc"), qn("w:txbxContent")) and len(parent.findall(qn("w:p"))) == 1
        if section is None and not alone:
            parent.remove(element)
            return
        # Such a paragraph ends a section or is the last of its cell: without it the file is damaged.
        _empty(element)

    def _row(self, action: str, row: Any, text: str | None) -> None:
        table = row.getparent()
        if action == "delete":
            table.remove(row)
            if table.find(qn("w:tr")) is None:
                table.getparent().remove(table)
            return
        cells = row_cells(text or "", len(row.findall(qn("w:tc"))))
        target = row
        if action != "replace":
            target = deepcopy(row)
            for mark in target.iter(qn("w:tblHeader")):
                mark.getparent().remove(mark)
                break
            self._put(target, row, before=action == "insert_before")
        for cell, words in zip(target.findall(qn("w:tc")), cells, strict=True):
            first, *others = cell.findall(qn("w:p"))
            for other in others:
                cell.remove(other)
            self._words(first, parse_inline(words))

    def _margin(self, action: str, root: Any, text: str | None) -> None:
        if action not in ("replace", "delete"):
            raise Refused("a header or footer can be replaced or deleted")
        first, *others = root.findall(qn("w:p")) or [None]
        if first is None:
            raise Refused("it holds no paragraph of its own; change its words with `find`")
        for other in others:
            root.remove(other)
        _empty(first)
        if action == "replace":
            Paragraph(first, self._document._body).add_run(text or "")


def _keep_spaces(element: Any) -> None:
    element.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")


def _empty(paragraph: Any) -> None:
    for child in list(paragraph):
        if child.tag != qn("w:pPr"):
            paragraph.remove(child)


def _pieces(paragraph: Any) -> list[Any]:
    """Its texts, without those of text boxes in it."""
    inside = qn("w:p")
    return [one for one in paragraph.iter(qn("w:t")) if next(one.iterancestors(inside)) is paragraph]
