"""Files as plain text, and text in the form in which quotes are compared."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from rubric_env.evidence import NotExtracted, Unreadable, read_passages

CJK = re.compile("[\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff]")

_POINT = "\ue000"
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DECIMAL = re.compile(r"(?<=\d)[.,](?=\d)")
_LINK = re.compile(r"\[([^\[\]]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){1,2000}\)")
_DROPPED = re.compile(rf"[^\w%‰{_POINT}]+|_+")


class UnreadableText(ValueError):
    """A file that holds no text that we can read; the message says why."""


def read_text_of(path: Path) -> str:
    """The text of a file. Raises UnreadableText for what the file is, OSError for what the machine does."""
    try:
        passages = read_passages(path)
        if passages.text is not None:
            return passages.text
        # What a reader of the page does not see cannot be quoted from it.
        shown = (unit.text for unit in passages.units() if not unit.mark.startswith(("hidden", "comment")))
        return "\n\n".join(shown)
    except NotExtracted as error:
        raise OSError(f"{path.name}: {error}") from None
    except Unreadable as error:
        raise UnreadableText(f"{path.name}: {error}") from None


def canonical(text: str) -> str:
    """Letters, digits, per cent signs and decimal points of a text, in one form and without case.

    What makes two spellings of one passage differ is gone: quotation marks, dashes, emphasis, line breaks, hyphens,
    width of characters, separators of thousands, the addresses of markdown links.
    """
    plain = _LINK.sub(r"\1", unicodedata.normalize("NFKC", text)).casefold()
    return _DROPPED.sub("", _DECIMAL.sub(_POINT, _GROUPED.sub("", plain)))


def size_in_words(text: str) -> float:
    """Words of a text, two Chinese, Japanese or Korean characters counting as one."""
    characters = len(CJK.findall(text))
    return len(re.findall(r"\w+(?:['’.,-]\w+)*", CJK.sub(" ", text))) + characters / 2
