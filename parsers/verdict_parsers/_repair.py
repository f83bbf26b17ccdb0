"""Rows with a quote that is not escaped: json_repair reads them, under conditions that leave no second reading.

A text like `"reason":"he wrote "fine","hit":true, and left"` can carry a verdict that is no verdict. So a row counts
only if its braces hold no other brace, one id, one verdict key and at most one level; if each of these stands before
the first string whose end is a guess, or behind the last with nothing but literals to follow, provided that the quotes
inside the strings come in pairs; and if json_repair, which guesses in its own way, comes to the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from verdict_parsers._chars import SKIP
from verdict_parsers._ids import ID_KEYS, NAME_KEYS, IdBook
from verdict_parsers._tokens import QUOTES
from verdict_parsers._values import Bare, Fields, Obj, Value
from verdict_parsers._words import EVIDENCE_KEYS, REASON_KEYS, VERDICT_KEYS, answer_of, squash

_KEY = re.compile(rf"[{QUOTES}]?([^\W\d][\w -]{{0,40}}+)[{QUOTES}]?{SKIP}:")
_LITERAL_FIELD = rf"{SKIP},?{SKIP}[{QUOTES}]?[\w -]{{1,40}}[{QUOTES}]?{SKIP}:{SKIP}[\w.+-]++"
_LITERAL_TAIL = re.compile(rf"(?:{_LITERAL_FIELD})*+{SKIP},?{SKIP}")


def mend(text: str, flat: str, row: Obj, book: IdBook) -> bool:
    """Read a broken row again; False when what it says is not certain. Only its texts may change, never its verdict."""
    raw = flat[row.start : row.end]
    clear = [n for n, (key, _) in enumerate(row.pairs) if _kind(key)]
    if not row.closed or not _one_of_each(raw, len(clear)) or not _stand_clear(text, flat, row, clear):
        return False
    ours = [row.pairs[n] for n in clear]
    repaired = _fields(text[row.start : row.end])
    theirs = [field for field in repaired if _kind(field[0])]
    if _said(ours) != _said(theirs) or book.named(ours) != book.named(theirs):
        return False
    row.pairs = ours + [field for field in repaired if squash(field[0]) in REASON_KEYS | EVIDENCE_KEYS]
    row.mended = True
    return True


def _said(fields: Fields) -> tuple[str, bool | None, float | None] | None:
    answer = answer_of(fields)
    return (answer.state, answer.hit, answer.level) if answer else None


def _kind(key: str) -> str:
    """Which of the deciding fields a key is; "" for none."""
    key = squash(key)
    if key in ID_KEYS | NAME_KEYS:
        return "id"
    if key in VERDICT_KEYS:
        return "verdict"
    return "level" if key == "level" else ""


def _one_of_each(raw: str, expected: int) -> bool:
    """Whether the text between the braces has one id, one verdict and at most one level, `expected` keys in all."""
    if "{" in raw[1:-1] or "}" in raw[1:-1]:
        return False
    kinds = [kind for key in _KEY.findall(raw) if (kind := _kind(key))]
    return sorted(kinds) in (["id", "verdict"], ["id", "level", "verdict"]) and len(kinds) == expected


def _stand_clear(text: str, flat: str, row: Obj, deciding: Sequence[int]) -> bool:
    """Whether every deciding field stands where no reading of the broken strings can reach it."""
    first, last = row.breaks[0][0], row.breaks[-1][1]
    if all(row.spans[n][1] <= first for n in deciding):
        return True
    paired = all(_paired(text[start:end]) for start, end in row.breaks)
    behind = all(row.spans[n][1] <= first or row.spans[n][0] >= last for n in deciding)
    return paired and behind and _LITERAL_TAIL.fullmatch(flat, last, row.end - 1) is not None


def _paired(string: str) -> bool:
    """Whether the quotes inside a string come in pairs: a quoted passage that runs on past it leaves one over."""
    inner = string[1:-1]
    return sum(inner.count(quote) for quote in {string[0], string[-1]}) % 2 == 0


def _fields(raw: str) -> Fields:
    import json_repair  # costs a tenth of a second to import, and most replies never need it

    try:
        repaired = json_repair.loads(raw, skip_json_loads=True)
    except (ValueError, RecursionError):
        return []
    return [(key, _value(value)) for key, value in repaired.items()] if isinstance(repaired, dict) else []


def _value(value: object) -> Value:
    if value is None or isinstance(value, bool | str):
        return value
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else Bare(value)
