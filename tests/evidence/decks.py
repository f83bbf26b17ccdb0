"""Decks for tests: made by python-pptx, and pieces of slide XML that it cannot write."""

from __future__ import annotations

import io
from collections.abc import Callable

import pptx
from PIL import Image
from pptx.util import Inches

from tests.evidence.office import changed, saved

SLIDE = "ppt/slides/slide{}.xml"
RELS = "ppt/slides/_rels/slide{}.xml.rels"
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
NAMESPACES = " ".join(
    f'xmlns:{name}="http://schemas.openxmlformats.org/{rest}"'
    for name, rest in (
        ("a", "drawingml/2006/main"),
        ("p", "presentationml/2006/main"),
        ("r", "officeDocument/2006/relationships"),
        ("m", "officeDocument/2006/math"),
        ("mc", "markup-compatibility/2006"),
    )
)


def deck(*titles: str, layout: int = 5) -> pptx.presentation.Presentation:
    """A slide for each title, in the layout "Title Only", without properties."""
    made = pptx.Presentation()
    made.core_properties.author = made.core_properties.title = made.core_properties.last_modified_by = ""
    made.core_properties.comments = ""
    for title in titles:
        made.slides.add_slide(made.slide_layouts[layout]).shapes.title.text = title
    return made


def text_box(slide, text: str, left: float, top: float, width: float = 2, height: float = 0.5):
    """In inches."""
    box = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(width), Inches(height))
    box.text_frame.text = text
    return box


def png(width: int = 40, height: int = 30, form: str = "PNG") -> io.BytesIO:
    picture = io.BytesIO()
    one = Image.new("RGB", (width, height), "red")
    more = {"save_all": True, "append_images": [one]} if form == "MPO" else {}
    one.save(picture, form, **more)
    picture.seek(0)
    return picture


def with_shapes(xml: str, made=None) -> bytes:
    """The first slide with more shapes at its end."""
    declared = f"<p:spTree {NAMESPACES}>"

    def rewrite(text: str) -> str:
        return text.replace("<p:spTree>", declared).replace("</p:spTree>", f"{xml}</p:spTree>")

    return changed(saved(made or deck("Title")), {SLIDE.format(1): rewrite})


def shape(text: str = "", *, place: str = "", extra: str = "", properties: str = "", xfrm: bool = True) -> str:
    """A shape of 100 × 50 points at 0, 144 unless `place` says `x,y,width,height` in points."""
    x, y, width, height = (round(float(n) * 12700) for n in (place or "0,144,100,50").split(","))
    where = f'<a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>' if xfrm else ""
    paragraphs = text if text.startswith("<") else f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="90" name="Made" {extra}/><p:cNvSpPr/><p:nvPr/></p:nvSpPr>'
        f"<p:spPr>{where}{properties}</p:spPr><p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"
    )


def words(text: str) -> str:
    return f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"


def related(kind: str, target: str, identity: str = "rIdX", mode: str = "") -> Callable[[str], str]:
    """One more relationship."""
    kind = kind if "/" in kind else f"{TYPES}/{kind}"
    entry = f'<Relationship Id="{identity}" Type="{kind}" Target="{target}"{mode and f" TargetMode={mode!r}"}/>'
    return lambda text: text.replace("</Relationships>", f"{entry}</Relationships>")


def shown(extract) -> list[str]:
    """What stands in the evidence, less measured facts."""
    return [unit.shown for unit in extract.units if not unit.label.endswith("/layout")]
