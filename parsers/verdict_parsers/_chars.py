"""Characters that judges put where JSON has none: zero-width ones and full-width punctuation."""

from __future__ import annotations

import re

ZERO_WIDTH = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
"""Inside a regex character class. Soft hyphen, joiners, direction marks, byte order mark."""

SKIP = rf"[\s{ZERO_WIDTH}]*+"
END = re.compile(rf"{SKIP}\Z")
"""Nothing but blanks to the end of the text."""

BLANK = " \t\r\n\f\v\u00a0\u3000\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""What may surround a reply, for `str.strip`."""

_ZERO_WIDTH = re.compile(f"[{ZERO_WIDTH}]+")
_WIDE_QUOTES = "＂＇"
_FULL_WIDTH = {
    code: code - 0xFEE0
    for code in range(0xFF01, 0xFF5F)
    if not chr(code - 0xFEE0).isalnum() and chr(code) not in _WIDE_QUOTES
}


def drop_zero_width(text: str) -> str:
    return _ZERO_WIDTH.sub("", text)


def flatten(text: str) -> str:
    """`text` with full-width punctuation as ASCII, character for character: an offset means the same in both.

    Full-width quotes stay: a string that one of them opens is closed by the same one.
    """
    return text.translate(_FULL_WIDTH)
