"""Files to be drawn, made here: what is on their pages is known."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from tests.evidence.office import changed, saved

COLOURS = ((192, 0, 0), (0, 128, 0), (0, 0, 192), (255, 192, 0))
"""Of the four slides."""

EXTERNAL = '<Relationship Id="rIdX" TargetMode="External" Type="{type}/image" Target="{url}"/></Relationships>'
TYPES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def samples() -> dict[str, bytes]:
    """One file of each kind."""
    return {
        "deck.pptx": deck(),
        "report.docx": report(),
        "book.xlsx": workbook(),
        "page.html": "<h1>The heading of this page</h1><p>It has words: Grüße, 你好, 안녕.</p>".encode(),
        "paper.pdf": paper(),
    }


def deck() -> bytes:
    """A slide of each of `COLOURS`; the second is hidden."""
    from pptx import Presentation
    from pptx.dml.color import RGBColor

    presentation = Presentation()
    for number, colour in enumerate(COLOURS, 1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = f"Slide {number} 第{number}页"
        slide.background.fill.solid()
        slide.background.fill.fore_color.rgb = RGBColor(*colour)
    presentation.slides[1]._element.set("show", "0")
    return saved(presentation)


def document(text: str) -> bytes:
    from docx import Document

    made = Document()
    made.add_paragraph(text)
    return saved(made)


def report() -> bytes:
    """A page full of words, and one with a single line."""
    from docx import Document

    made = Document()
    made.add_paragraph("words and numbers " * 120)
    made.add_page_break()
    made.add_paragraph("The second page. 第二页。")
    return saved(made)


def workbook() -> bytes:
    """Two sheets, a page each."""
    from openpyxl import Workbook

    made = Workbook()
    made.active.append(["Quarter", "Revenue"])
    made.active.append(["Q1", 4.5])
    made.create_sheet("Notes").append(["Seen by people"])
    return saved(made)


def paper() -> bytes:
    """Two pages, wide and tall."""
    import pypdfium2

    made = pypdfium2.PdfDocument.new()
    made.new_page(800, 400)
    made.new_page(400, 800)
    return saved(made)


def long_page() -> bytes:
    """Takes LibreOffice most of a minute."""
    return ("<html><body>" + f"<p>{'word ' * 200}</p>" * 8000).encode()


def _linking_document(url: str) -> bytes:
    picture = (
        '<w:p><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
        'wordprocessingDrawing"><wp:extent cx="900000" cy="900000"/><wp:docPr id="1" name="p"/>'
        f"{_picture('pic', 'http://schemas.openxmlformats.org/drawingml/2006/picture')}"
        "</wp:inline></w:drawing></w:r></w:p>"
    )
    return changed(
        document("A picture:"),
        {
            "word/document.xml": lambda text: text.replace("<w:sectPr", picture + "<w:sectPr", 1),
            "word/_rels/document.xml.rels": _with_link(url),
        },
    )


def naming_a_file(path: Path) -> bytes:
    """A document with a drawing (SVG) that shows a file of the machine it is opened on."""
    drawing = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:x="http://www.w3.org/1999/xlink" width="99" height="99">'
        f'<image x:href="file://{path}" width="99" height="99"/></svg>'
    )
    return changed(
        _linking_document("media/a.svg"),
        {
            "word/_rels/document.xml.rels": lambda text: text.replace('TargetMode="External" ', ""),
            "word/document.xml": lambda text: text.replace("r:link", "r:embed"),
            "word/media/a.svg": drawing,
            "[Content_Types].xml": lambda text: text.replace(
                "<Default", '<Default Extension="svg" ContentType="image/svg+xml"/><Default', 1
            ),
        },
    )


def _linking_deck(url: str) -> bytes:
    picture = (
        '<p:pic><p:nvPicPr><p:cNvPr id="9" name="p"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr>'
        f'<p:blipFill><a:blip xmlns:r="{TYPES}" r:link="rIdX"/><a:stretch><a:fillRect/></a:stretch></p:blipFill>'
        '<p:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="900000" cy="900000"/></a:xfrm>'
        '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>'
    )
    return changed(
        deck(),
        {
            "ppt/slides/slide1.xml": lambda text: text.replace("</p:spTree>", picture + "</p:spTree>"),
            "ppt/slides/_rels/slide1.xml.rels": _with_link(url),
        },
    )


def _linking_page(url: str) -> bytes:
    return f'<p>A picture: <img src="{url}"></p><link rel="stylesheet" href="{url}.css">'.encode()


LINKING: Mapping[str, Callable[[str], bytes]] = MappingProxyType(
    {"report.docx": _linking_document, "deck.pptx": _linking_deck, "page.html": _linking_page}
)
"""Files that link a picture at a URL."""


def _with_link(url: str) -> Callable[[str], str]:
    return lambda text: text.replace("</Relationships>", EXTERNAL.format(type=TYPES, url=url))


def _picture(prefix: str, namespace: str) -> str:
    """The drawing of a linked picture."""
    return (
        f'<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:graphicData uri="{namespace}">'
        f'<{prefix}:pic xmlns:{prefix}="{namespace}"><{prefix}:nvPicPr><{prefix}:cNvPr id="0" name="p"/>'
        f'<{prefix}:cNvPicPr/></{prefix}:nvPicPr><{prefix}:blipFill><a:blip xmlns:r="{TYPES}" r:link="rIdX"/>'
        f"<a:stretch><a:fillRect/></a:stretch></{prefix}:blipFill><{prefix}:spPr><a:xfrm>"
        '<a:off x="0" y="0"/><a:ext cx="900000" cy="900000"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'
        f"</{prefix}:spPr></{prefix}:pic></a:graphicData></a:graphic>"
    )


_OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
_LIBRARY = "http://openoffice.org/2000/library"

MACROS_ALLOWED = """<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel"
 oor:op="fuse"><value>0</value></prop></item></oor:items>"""


def with_macro(written: Path) -> bytes:
    """A text document whose macro writes a file when the document is opened."""
    entries = {
        "/": "application/vnd.oasis.opendocument.text",
        **dict.fromkeys(
            ("content.xml", "Basic/script-lc.xml", "Basic/Standard/script-lb.xml", "Basic/Standard/Module1.xml"),
            "text/xml",
        ),
    }
    listed = "".join(f'<m:file-entry m:full-path="{name}" m:media-type="{kind}"/>' for name, kind in entries.items())
    parts = {
        "mimetype": entries["/"],
        "META-INF/manifest.xml": f'<m:manifest xmlns:m="{_OFFICE}:manifest:1.0" m:version="1.2">{listed}</m:manifest>',
        "content.xml": (
            f'<o:document-content xmlns:o="{_OFFICE}:office:1.0" xmlns:t="{_OFFICE}:text:1.0" xmlns:s="{_OFFICE}:'
            'script:1.0" xmlns:x="http://www.w3.org/1999/xlink" xmlns:ooo="http://openoffice.org/2004/office" '
            'xmlns:dom="http://www.w3.org/2001/xml-events" o:version="1.2"><o:scripts><o:event-listeners>'
            '<s:event-listener s:language="ooo:script" s:event-name="dom:load" x:type="simple" x:href="'
            'vnd.sun.star.script:Standard.Module1.Main?language=Basic&amp;location=document"/></o:event-listeners>'
            "</o:scripts><o:body><o:text><t:p>Text</t:p></o:text></o:body></o:document-content>"
        ),
        "Basic/script-lc.xml": (
            f'<l:libraries xmlns:l="{_LIBRARY}"><l:library l:name="Standard" l:link="false"/></l:libraries>'
        ),
        "Basic/Standard/script-lb.xml": (
            f'<l:library xmlns:l="{_LIBRARY}" l:name="Standard" l:readonly="false" l:passwordprotected="false">'
            '<l:element l:name="Module1"/></l:library>'
        ),
        "Basic/Standard/Module1.xml": (
            '<s:module xmlns:s="http://openoffice.org/2000/script" s:name="Module1" s:language="StarBasic">'
            f'Sub Main\nOpen "{written}" For Output As #1\nPrint #1, "ran"\nClose #1\nEnd Sub</s:module>'
        ),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as package:
        for name, text in parts.items():
            package.writestr(name, text)
    return buffer.getvalue()
