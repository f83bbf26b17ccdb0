"""The form in which texts are compared and searched."""

from __future__ import annotations

import unicodedata

_USUAL = tuple((form, unicodedata.normalize("NFKC", form)) for form in "，：；（）？！‑\u3000\xa0")
"""Why most texts that are not in NFKC are not. The check for NFKC is ten times faster than the change to it."""


def fold(text: str) -> str:
    """`text` in NFKC and without case, so that `Ｉｇｎｏｒｅ` is `ignore`."""
    if not text.isascii():
        for form, plain in _USUAL:
            text = text.replace(form, plain)
        text = "\n".join([unicodedata.normalize("NFKC", line) for line in text.split("\n")])
    return text.casefold()
