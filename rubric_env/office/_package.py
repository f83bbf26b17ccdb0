"""Office files as zip containers: checked before a library opens them, and written so that equal content is equal."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime
from pathlib import Path

from rubric_env.evidence._extract import Unreadable
from rubric_env.evidence._zip import Archive
from rubric_env.office._problems import Refused

MADE = datetime(2025, 1, 1)
"""When files say that they were made: the clock would make equal files differ."""

UNPACKED = 128 * 2**20
"""Bytes of a file that is edited: the libraries hold all of it."""

_ENTITIES = tuple("<!ENTITY".encode(encoding) for encoding in ("ascii", "utf-16-le", "utf-16-be"))
_STRICT = b"http://purl.oclc.org/ooxml/"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_CORE = "docProps/core.xml"
_BOOK = re.compile(r"ppt/embeddings/.*\.xlsx")
_TIME = re.compile(rb"(<dcterms:(created|modified)[^>]*>)([^<]*)(?=<)")


def check(path: Path, main: str) -> None:
    """Raises Refused for what would harm its reader, and for a file without the part `main`."""
    try:
        archive = Archive(path)
        if main not in archive:
            raise Refused(f"it is not the kind of file that its name says ({main} is missing)")
        unpacked = 0
        for info in archive.members:
            data = archive.unpack(info, UNPACKED)
            unpacked += len(data)
            if unpacked > UNPACKED:
                raise Refused(f"it unpacks to more than {UNPACKED // 2**20} MB")
            if info.filename.lower().endswith((".xml", ".rels", ".vml")) and any(one in data for one in _ENTITIES):
                raise Refused(f"{info.filename} declares entities, which no office file may")
            if info.filename == main and _STRICT in data:
                raise Refused("it is in the Strict form of the format, which the library does not open")
    except Unreadable as error:
        raise Refused(str(error)) from None


def settle(path: Path, source: Path | None = None) -> None:
    """Write the container again without the time at which it was written.

    The times inside stay those of `source`, of which it is a changed copy; so do the files embedded in both.
    """
    known: dict[str, bytes] = {}
    if source is not None:
        with zipfile.ZipFile(source) as opened:
            known = {name: opened.read(name) for name in opened.namelist() if name == _CORE or _BOOK.fullmatch(name)}
    path.write_bytes(_settled(path.read_bytes(), known))


def _settled(data: bytes, known: dict[str, bytes]) -> bytes:
    times = {match[2]: match[3] for match in _TIME.finditer(known.get(_CORE, b""))}
    made = MADE.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == _CORE:
                content = _TIME.sub(lambda match: match[1] + times.get(match[2], made), content)
            elif _BOOK.fullmatch(info.filename) and content not in known.values():
                content = _settled(content, {})
            named = zipfile.ZipInfo(info.filename, _EPOCH)
            named.compress_type = zipfile.ZIP_DEFLATED
            named.external_attr = 0o600 << 16
            new.writestr(named, content)
    return result.getvalue()
