"""Rows with a quote that was not escaped: json_repair reads them, under conditions that leave no second reading.

A text like `"reason":"he wrote "fine","hit":true, and left"` can carry a verdict that is no verdict. So a row counts only
if its braces hold no other brace, one id, one verdict key and at most one level, each standing before the string whose
end is a guess (or, alone, behind it, when the quotes inside that string come in pairs), and if json_repair, which
guesses in its own way, comes to the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from verdict_parsers._chars import SKIP
from verdict_parsers._ids import ID_KEYS, NAME_KEYS, IdBook
from verdict_parsers._tokens import QUOTES
from verdict_parsers._values import Bare, Fields, Obj, Value
from verdict_parsers._words import EVIDENCE_KEYS, REASON_KEYS, VERDICT_KEYS, answer_of, squash

_KEY = re.compile(rf"[{QUOTES}]?([^\W\d][\w -]{{0,40}}+)[{QUOTES}]?{SKIP}:")
_LITERAL_TAIL = re.compile(rf"(?:{SKIP},{SKIP}[{QUOTES}]?[\w -]{{1,40}}[{QUOTES}]?{SKIP}:{SKIP}[\w.+-]++)*+{SKIP},?{SKIP}")


def mend(text: str, flat: str, row: Obj, book: IdBook) -> bool:
    """Read a broken row again; False when what it says is not certain. Only its texts may change, never its verdict."""
    deciding = [n for n, (key, _) in enumerate(row.pairs) if _kind(key)]
    if not row.closed or not _one_of_each(flat[row.start : row.end]) or not _stand_clear(text, flat, row, deciding):
        return False
    before = [row.pairs[n] for n in deciding]
    after = _fields(text[row.start : row.end])
    ours, theirs = answer_of(before), answer_of([field for field in after if _kind(field[0])])
    if ours is None or theirs is None or (ours.state, ours.hit, ours.level) != (theirs.state, theirs.hit, theirs.level):
        return False
    if book.named(before) != book.named([field for field in after if _kind(field[0])]):
        return False
    row.pairs = before + [field for field in after if squash(field[0]) in REASON_KEYS | EVIDENCE_KEYS]
    row.mended = True
    return True


def _kind(key: str) -> str:
    """Which of the deciding fields a key is; "" for none."""
    key = squash(key)
    if key in ID_KEYS | NAME_KEYS:
        return "id"
    if key in VERDICT_KEYS:
        return "verdict"
    return "level" if key == "level" else ""


def _one_of_each(raw: str) -> bool:
    if "{" in raw[1:-1] or "}" in raw[1:-1]:
        return False
    kinds = [_kind(key) for key in _KEY.findall(raw)]
    return kinds.count("id") == 1 and kinds.count("verdict") == 1 and kinds.count("level") <= 1


def _stand_clear(text: str, flat: str, row: Obj, deciding: Iterable[int]) -> bool:
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
