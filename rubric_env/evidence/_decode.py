"""Bytes to text: encodings as people's tools write them, and nothing that a judge or an endpoint would choke on."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path

from rubric_env.evidence._extract import Limits, Unreadable
from rubric_env.submission import open_regular

MAX_CONTROL_SHARE = 0.01
"""More control characters than this is no text; logs with colour codes and stray NULs stay below."""

CHUNK = 2**17
"""Decoded, or looked at, in one go: whoever else is at work in the process waits so long (measured: 10 ms)."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}
"""Control characters become their pictures (U+2400 …): visible, and harmless in a prompt."""

_ANY_CONTROL = re.compile(f"[{''.join(map(chr, _VISIBLE))}]")
"""Looking for them is fifteen times faster than `translate`, which most texts do not need."""

_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")
_HAN = re.compile("[\u4e00-\u9fff]")
_GLUED_HAN = re.compile("(?<=[A-Za-z])[\u4e00-\u9fff]|[\u4e00-\u9fff](?=[A-Za-z])")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The text of one file. `notes` say what was assumed or left out; `cut` that its end was not read."""

    text: str
    notes: tuple[str, ...]
    cut: bool


def load(path: Path, limits: Limits) -> Loaded:
    """Read a text file, at most `limits.file_bytes` from its start.

    Raises Unreadable for binary data, OSError when the file cannot be opened.
    """
    with open_regular(path) as file:
        data = file.read(limits.file_bytes)
        rest = bool(file.read(1))
    text, notes = decode(data, partial=rest)
    if rest:
        notes.append(f"only the first {len(data):,} bytes were read")
    return Loaded(clean(text), tuple(notes), rest)


def decode(data: bytes, *, partial: bool = False) -> tuple[str, list[str]]:
    """Text and notes: UTF-8 and UTF-16 by their marks, UTF-8, GB18030, then Latin-1.

    `partial` data may end in the middle of a character. Raises Unreadable when the bytes are no text.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            text, notes = data[len(bom) :].decode(encoding, "replace"), _damage(data[len(bom) :], encoding, partial)
            break
    else:
        if len(data) - len(data.translate(None, _CONTROL)) > MAX_CONTROL_SHARE * len(data):
            raise Unreadable("binary data, not text")
        text, notes = _unmarked(data, partial)
    return text, notes


def _damage(data: bytes, encoding: str, partial: bool) -> list[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    for start in range(0, len(data), CHUNK):
        chunk = data[start : start + CHUNK]
        try:
            decoder.decode(chunk, final=not partial and start + CHUNK >= len(data))
        except UnicodeDecodeError as error:
            at = start + len(chunk) - len(error.object) + error.start
            return [f"not valid {encoding.upper()} at byte {at:,}: unreadable bytes are shown as \ufffd"]
    return []


def _gb18030(data: bytes) -> str:
    decoder = codecs.getincrementaldecoder("gb18030")("ignore")
    return "".join(decoder.decode(data[start : start + CHUNK]) for start in range(0, len(data), CHUNK))


def _is_chinese(text: str) -> bool:
    first = _HAN.search(text)
    start = first.start() - 1 if first and first.start() else 0
    sample = text[start : start + CHUNK]
    return 2 * len(_GLUED_HAN.findall(sample)) <= len(_HAN.findall(sample))


def _unmarked(data: bytes, partial: bool) -> tuple[str, list[str]]:
    damage = _damage(data, "utf-8", partial)
    text = data.decode("utf-8", "replace")
    if not damage:
        return text, []
    # A few broken bytes in a long UTF-8 text must not turn all of it into another script.
    broken = text.count("\ufffd")
    if 10 * broken < len(text) - len(text.encode("ascii", "ignore")):
        return text, damage
    gb18030 = None if _damage(data, "gb18030", partial) else _gb18030(data)
    # Accented letters of Latin-1 often pair up to a lone Han character in the middle of a word.
    if gb18030 is not None and _is_chinese(gb18030):
        return gb18030, ["not UTF-8: read as GB18030"]
    try:
        return data.decode("cp1252"), ["not UTF-8: read as Latin-1 (Windows-1252)"]
    except UnicodeDecodeError:
        return data.decode("latin-1"), ["not UTF-8: read as Latin-1"]


def clean(text: str) -> str:
    """The same text with `\\n` line ends, visible control characters and no lone surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _ANY_CONTROL.search(text):
        text = text.translate(_VISIBLE)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
