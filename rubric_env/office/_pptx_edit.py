"""Changes of a deck, at the addresses that its reader gives."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pptx import Presentation
from pptx.oxml.ns import qn

from rubric_env.evidence._ooxml import Package
from rubric_env.evidence._pptx_deck import Deck, counted
from rubric_env.evidence._pptx_slide import Slide
from rubric_env.evidence._reading import Reading
from rubric_env.office._package import check, settle
from rubric_env.office._pptx_charts import data_of, entitle
from rubric_env.office._pptx_fit import Line, lines_of
from rubric_env.office._pptx_make import layout_facts
from rubric_env.office._pptx_slides import Slides
from rubric_env.office._problems import Problems, Refused
from rubric_env.office._text import nearest, replace_words, row_cells

if TYPE_CHECKING:
    from rubric_env.office._run import Task

_MAIN = "ppt/presentation.xml"
_P14 = "{http://schemas.microsoft.com/office/powerpoint/2010/main}"


def edit(task: Task) -> str:
    """Raises Refused with everything that is wrong, and writes nothing then."""
    source = Path(task.source)
    check(source, _MAIN)
    deck = Presentation(task.source)
    problems = Problems()
    edits = _Edits(deck, _Places(deck, source), Slides(deck, task.root, problems, ours=False))
    found = []
    # All addresses are those of the file as it was read, so they are looked up before anything moves.
    for number, one in enumerate(task.arguments["edits"], 1):
        with problems.of(f"edit {number}"):
            found.append((number, one, edits.place(one)))
    changes = 0
    for number, one, place in found:
        with problems.of(f"edit {number}"):
            changes += edits.apply(one, place, f"edit {number}")
    problems.raise_any()
    # The library names a new slide by how many there are, which is not free where one was deleted.
    deck.part.rename_slide_parts([entry.rId for entry in deck.slides._sldIdLst])
    deck.save(task.target)
    settle(Path(task.target), source)
    return f"{counted(changes, 'changes')}, {counted(len(deck.slides), 'slides')}{layout_facts(Path(task.target))}"


class _Places:
    """Where each address of the deck is: a slide, or a slide and an element of it."""

    def __init__(self, deck: Any, source: Path) -> None:
        self.known: dict[str, tuple[Any, Any]] = {}
        reading = Reading(source, source.parent / "read")
        read = Deck(Package(reading), reading)
        slides = {str(slide.part.partname).lstrip("/"): slide for slide in deck.slides}
        for number, entry in enumerate(read.slides, 1):
            slide = slides.get(entry.part)
            if slide is None:
                continue
            address = f"slide {number}"
            self.known[address] = self.known[f"{address}/notes"] = (slide, None)
            # The reader has a tree of its own; its elements stand in the same order.
            sheet = read.slide(entry.part, address)
            own = dict(zip(_elements(sheet.root), _elements(slide.element), strict=True))
            for shape in Slide(read, sheet, number).shapes():
                element = own[shape.element]
                self.known[shape.address] = (slide, element)
                for place, row in enumerate(element.iter(qn("a:tr")), 1):
                    self.known[f"{shape.address}/row {place}"] = (slide, row)


def _elements(root: Any) -> list[Any]:
    return [one for one in root.iter() if isinstance(one.tag, str)]


class _Edits:
    def __init__(self, deck: Any, places: _Places, slides: Slides) -> None:
        self._deck = deck
        self._known = places.known
        self._slides = slides
        self._after: dict[Any, Any] = {}

    def place(self, edit: dict[str, Any]) -> Any:
        """A slide and an element of it, as an edit names them; None for everywhere."""
        at = (edit["at"] or "").strip().strip("[]").lower()
        if not at:
            if edit["find"] is None:
                raise Refused("it needs `at`, an address as read_file shows it, or `find`")
            return None
        if at not in self._known:
            raise Refused(f"{at!r} is no address of this file; {nearest(at, self._known)}")
        return (*self._known[at], at)

    def apply(self, edit: dict[str, Any], place: Any, where: str) -> int:
        """Changes made. Raises Refused."""
        if place is not None and place[1] is not None and place[1].getparent() is None:
            raise Refused(f"{place[2]} was deleted by an edit before this one")
        if edit["find"] is not None:
            return self._find(edit, place)
        slide, element, at = place
        action = edit["action"]
        if at.endswith("/notes"):
            self._notes(slide, edit)
        elif element is None:
            self._slide(slide, edit, where)
        elif element.tag == qn("a:tr"):
            self._row(element, edit)
        elif action == "delete":
            element.getparent().remove(element)
        elif action != "replace":
            raise Refused(f"{action} goes with a slide or a row of a table; new content needs a new slide, as `slide`")
        elif edit["chart"] is not None:
            self._chart(slide, element, edit["chart"])
        else:
            self._text(element, edit["text"])
        return 1

    def _find(self, edit: dict[str, Any], place: Any) -> int:
        if edit["action"] != "replace" or not edit["find"]:
            raise Refused("`find` goes with the action replace, and is not empty")
        if place is None:
            roots = [root for slide in self._deck.slides for root in self._roots(slide)]
        else:
            slide, element, at = place
            roots = self._roots(slide) if element is None else [element]
            roots = roots[1:] if at.endswith("/notes") else roots
        count = sum(
            replace_words(list(paragraph.iter(qn("a:t"))), edit["find"], edit["text"] or "")
            for root in roots
            for paragraph in root.iter(qn("a:p"))
        )
        if not count:
            raise Refused(
                f"{edit['find'][:80]!r} does not occur in {edit['at'] or 'the text of the deck'}; copy it exactly as "
                "read_file shows it, without list signs, and within one paragraph"
            )
        return count

    def _roots(self, slide: Any) -> list[Any]:
        return [slide.element, *([slide.notes_slide.element] if slide.has_notes_slide else [])]

    def _notes(self, slide: Any, edit: dict[str, Any]) -> None:
        if edit["action"] not in ("replace", "delete"):
            raise Refused("notes can be replaced or deleted")
        slide.notes_slide.notes_text_frame.text = (edit["text"] or "") if edit["action"] == "replace" else ""

    def _slide(self, slide: Any, edit: dict[str, Any], where: str) -> None:
        action = edit["action"]
        entries = self._deck.slides._sldIdLst
        old = next((one for one in entries if self._deck.part.related_part(one.rId) is slide.part), None)
        if old is None:
            raise Refused(f"{edit['at']} was deleted by an edit before this one")
        if action != "delete":
            if edit["slide"] is None:
                raise Refused(f"{action} at a slide needs `slide`, the new one")
            before = action == "insert_before"
            self._slides.add(edit["slide"], where, first=before and list(entries).index(old) == 0)
            new = entries[-1]
            if before:
                old.addprevious(new)
            else:
                self._after.get(old, old).addnext(new)
                self._after[old] = new
        if action in ("delete", "replace"):
            if len(entries) == 1:
                raise Refused("a deck has at least one slide")
            for section in list(self._deck.part._element.iter(f"{_P14}sldId")):
                if section.get("id") == str(old.id):
                    section.getparent().remove(section)
            self._deck.part.drop_rel(old.rId)
            entries.remove(old)

    def _row(self, row: Any, edit: dict[str, Any]) -> None:
        action, table = edit["action"], row.getparent()
        if action == "delete":
            if len(table.findall(qn("a:tr"))) == 1:
                raise Refused("it is the last row; delete the table's shape")
            table.remove(row)
            return
        if edit["text"] is None:
            raise Refused(f"{action} at a row needs `text`, its cells as `a | b | c`")
        cells = row_cells(edit["text"], len(row.findall(qn("a:tc"))))
        target = row
        if action != "replace":
            target = deepcopy(row)
            for extra in target.findall(qn("a:extLst")):
                target.remove(extra)
            if action == "insert_before":
                row.addprevious(target)
            else:
                self._after.get(row, row).addnext(target)
                self._after[row] = target
        for cell, words in zip(target.findall(qn("a:tc")), cells, strict=True):
            body = cell.find(qn("a:txBody"))
            if body is not None:
                _fill(body, lines_of([words]) or [Line(0, [("", False)])])

    def _chart(self, slide: Any, element: Any, wanted: dict[str, Any]) -> None:
        shape = next((one for one in slide.shapes if one._element is element), None)
        if shape is None or not getattr(shape, "has_chart", False):
            raise Refused("`chart` goes with the shape of a chart")
        shape.chart.replace_data(data_of(wanted))
        if wanted["title"]:
            entitle(shape.chart, wanted["title"])

    def _text(self, element: Any, text: str | None) -> None:
        body = element.find(qn("p:txBody"))
        if text is None:
            raise Refused("replace needs `text`, or `chart` for a chart")
        if body is None:
            raise Refused("this shape holds no text; of tables the rows can be replaced, as slide 3/shape 7/row 2")
        _fill(body, lines_of(text.split("\n")) or [Line(0, [("", False)])])


def _fill(body: Any, lines: Sequence[Line]) -> None:
    """New paragraphs that look as those of the same level did."""
    old = body.findall(qn("a:p"))
    for line in lines:
        model = next((one for one in old if _level(one) == line.level), old[0])
        paragraph = deepcopy(model)
        first = next((one for one in paragraph if one.tag in (qn("a:r"), qn("a:fld"))), paragraph)
        look = next((one for one in first if one.tag in (qn("a:rPr"), qn("a:endParaRPr"))), None)
        for child in list(paragraph):
            if child.tag not in (qn("a:pPr"), qn("a:endParaRPr")):
                paragraph.remove(child)
        if line.level:
            paragraph.get_or_add_pPr().set("lvl", str(line.level))
        for text, bold in line.runs:
            run = paragraph.add_r(text)
            if look is not None:
                own = run.get_or_add_rPr()
                own.attrib.update(look.attrib)
                own.extend(deepcopy(one) for one in look)
            if bold:
                run.get_or_add_rPr().set("b", "1")
        old[0].addprevious(paragraph)
    for paragraph in old:
        body.remove(paragraph)


def _level(paragraph: Any) -> int:
    properties = paragraph.find(qn("a:pPr"))
    return int(properties.get("lvl", "0")) if properties is not None else 0
