"""Words in runs: found across them, replaced in the first, so that what is around them stays as it looks."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rubric_env.office._problems import Refused


def replace_words(pieces: Sequence[Any], find: str, new: str, changed: Callable[[Any], object] = lambda _: None) -> int:
    """Replace every `find` in the joined texts of `pieces` (elements). Says how many there were."""
    texts = [piece.text or "" for piece in pieces]
    whole = "".join(texts)
    starts = [match.start() for match in re.finditer(re.escape(find), whole)]
    for start in reversed(starts):
        end, begin = start + len(find), 0
        for place, text in enumerate(texts):
            first, last = max(start - begin, 0), min(end - begin, len(text))
            begin += len(text)
            if first < last:
                # The new words stand where the old ones began.
                inserted = new if begin - len(text) <= start else ""
                texts[place] = text[:first] + inserted + text[last:]
    for piece, text in zip(pieces, texts, strict=True):
        if text != (piece.text or ""):
            piece.text = text
            changed(piece)
    return len(starts)


def row_cells(text: str, count: int) -> list[str]:
    """The cells of a table's row, written as `a | b | c`; `\\|` is a bar. Raises Refused."""
    inside = text.strip()
    if inside.startswith("|") and inside.endswith("|") and len(inside) > 1:
        inside = inside[1:-1]
    cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inside)]
    if len(cells) != count:
        raise Refused(f"the row has {count} cells and `text` {len(cells)}; write them as `a | b | c`")
    return cells


def nearest(wanted: str, known: Iterable[str]) -> str:
    """What may have been meant, in words."""
    names = list(known)
    close = difflib.get_close_matches(wanted, names[:2000], 3, 0.5)
    if close:
        return f"near it are {', '.join(close)}"
    return f"there are {names[0]} … {names[-1]}" if names else "it has none"
