"""How many tokens a text costs, without a tokenizer."""

from __future__ import annotations

import re

# Han, kana, hangul, their punctuation and full-width forms.
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")
# One comparison a character: most texts end here.
_MAYBE_WIDE = re.compile("[\u2e80-\U0003ffff]")
_DENSE = bytes(range(0x21, 0x41)) + b"[\\]^_`{|}~"


def estimate_tokens(text: str) -> int:
    """Estimated tokens of `text`, the same for every model.

    The rule: a CJK character is 1 token, digits and ASCII punctuation are 2 to a token, and of everything else 4 bytes
    (UTF-8) are one. Measured with the SmolLM2 tokenizer: English reports +3 %, CSV +6 %, JSON +26 %; a tokenizer that
    takes every digit for itself, as that one does, makes twice as many tokens of a pure table of numbers.
    """
    wide = 0
    if not text.isascii() and _MAYBE_WIDE.search(text):
        narrow = _WIDE.sub("", text)
        wide = len(text) - len(narrow)
        text = narrow
    raw = text.encode("utf-8", "replace")
    plain = len(raw.translate(None, _DENSE))
    return wide + (2 * (len(raw) - plain) + plain + 3) // 4
