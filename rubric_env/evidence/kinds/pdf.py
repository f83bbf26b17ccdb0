"""PDF, by pages: text, comments, form fields, links, attachments. A page without text is named: it may be a scan."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading

PAGES = 2000
"""Read of one file."""

_METADATA = ("Title", "Author", "Subject", "Keywords")
_PASSWORD = 4
_LINE = re.compile(r"[ \t]*\r?\n")
_MARKED = {1: "comment", 3: "text box", 9: "highlight", 10: "underlined", 12: "struck out"}
"""Annotation subtypes of PDF that carry words of a person, by pdfium's numbers."""


def units(reading: Reading) -> Iterator[Unit]:
    """Page by page, each page's own words first."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(reading.path)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        raise Unreadable("it is encrypted" if code == _PASSWORD else f"it cannot be opened ({error})") from None
    form = document.get_formtype()
    if form:
        document.init_forms()
    yield from _metadata(document)
    textless = []
    for number in range(min(len(document), PAGES)):
        address = f"p{number + 1}"
        try:
            page = document[number]
            found = list(_page(page, address, document))
            page.close()
        except pypdfium2.PdfiumError as error:
            reading.lost(address, Unreadable(error))
            continue
        if not any(unit.label == address and not unit.mark for unit in found):
            textless.append(number + 1)
        yield from found
    yield from _attachments(document, reading)
    if len(document) > PAGES:
        reading.skipped(f"only the first {PAGES:,} of {len(document):,} pages were read")
    pages = f"{len(document):,} page{'s' if len(document) != 1 else ''}"
    reading.note(pages + (f", no text on {_numbers(textless)}: pictures, or scanned" if textless else ""))
    reading.facts |= {"pages": len(document), "textless": textless}


def _page(page: Any, address: str, document: Any) -> Iterator[Unit]:
    text = _LINE.sub("\n", page.get_textpage().get_text_bounded()).replace("\ufffe", "-").strip()
    if text:
        yield Unit(address, text)
    yield from _annotations(page, address, document)


def _annotations(page: Any, address: str, document: Any) -> Iterator[Unit]:
    import pypdfium2.raw as pdfium

    for index in range(pdfium.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(annotation)
            label = f"{address}/annotation {index + 1}"
            if kind in _MARKED and (words := _string(annotation, b"Contents")):
                author = _string(annotation, b"T")
                yield Unit(label, words, f"{_MARKED[kind]} by {author}" if author else _MARKED[kind])
            elif kind == pdfium.FPDF_ANNOT_LINK and (target := _link(annotation, document)):
                yield Unit(label, target, "link")
            elif kind == pdfium.FPDF_ANNOT_WIDGET and (value := _string(annotation, b"V")):
                name = _string(annotation, b"T")
                yield Unit(label, f"{name} = {value}" if name else value, "form field")
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _string(annotation: Any, key: bytes) -> str:
    import pypdfium2.raw as pdfium

    size = pdfium.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDFAnnot_GetStringValue(annotation, key, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), size)
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0").strip()


def _link(annotation: Any, document: Any) -> str:
    import pypdfium2.raw as pdfium

    link = pdfium.FPDFAnnot_GetLink(annotation)
    action = pdfium.FPDFLink_GetAction(link) if link else None
    if not action:
        return ""
    size = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
    buffer = ctypes.create_string_buffer(size)
    pdfium.FPDFAction_GetURIPath(document, action, buffer, size)
    return buffer.raw.rstrip(b"\0").decode("utf-8", "replace")


def _metadata(document: Any) -> Iterator[Unit]:
    for name in _METADATA:
        if value := document.get_metadata_value(name).strip():
            yield Unit(f"metadata/{name.lower()}", value, "metadata")


def _attachments(document: Any, reading: Reading) -> Iterator[Unit]:
    import pypdfium2

    for index in range(document.count_attachments()):
        try:
            name = document.get_attachment(index).get_name()
        except pypdfium2.PdfiumError as error:
            reading.lost(f"attachment {index + 1}", Unreadable(error))
        else:
            yield Unit(f"attachment {index + 1}", name, "attached file, not read")


def _numbers(pages: list[int]) -> str:
    shown = ", ".join(f"p{number}" for number in pages[:10])
    return shown + (f" and {len(pages) - 10} more" if len(pages) > 10 else "")


KINDS = (Kind("pdf", (".pdf",), units=units, magic=(b"%PDF-",)),)
