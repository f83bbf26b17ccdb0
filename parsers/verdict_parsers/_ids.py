"""Which of the block's rows an answer names: by id, or by the row's text; never by position."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from verdict_parsers._chars import drop_zero_width
from verdict_parsers._values import Fields, Obj
from verdict_parsers._words import names, squash

ID_KEYS = names("id ids criterionid criteriaid rowid itemid rubricid 编号 序号")
NAME_KEYS = names("criterion criteria row item name key title text description requirement 标准 条目 要求")
"""Keys that may name the row; unlike an id key, they may also hold something else."""

_LEADING = re.compile(r"criterion(?:[\s:#]++|(?=[\[({<【（「《]))(?=\S)")
_PAIRS = {"[": "]", "(": ")", "{": "}", "<": ">", "【": "】", "［": "］", "（": "）", "「": "」", "《": "》"}


class IdBook:
    """The ids of one block; `order` gives their positions, for telling whether rows come in the block's order."""

    def __init__(self, ids: Sequence[str], texts: Mapping[str, str] | None = None):
        self.order = {name: n for n, name in enumerate(ids)}
        mine = {name: name for name in self.order}
        self._known: dict[str, str | None] = dict(mine)
        my_texts = {name: text for name, text in (texts or {}).items() if name in mine}
        spellings = ((_trim, mine), (_fold, mine), (_fold_text, my_texts))
        self._steps = tuple((fold, _unambiguous(spelled, fold)) for fold, spelled in spellings)

    def match(self, written: str) -> str | None:
        """The id as written; else folded, unless two ids fold alike; else the one row with that text."""
        if written not in self._known:
            folded = (meant.get(fold(written)) for fold, meant in self._steps)
            self._known[written] = next((name for name in folded if name), None)
        return self._known[written]

    def named(self, fields: Fields) -> tuple[str, ...] | None:
        """The ids of the block that a row's fields name; None when an id key names a row that is not of the block."""
        found: dict[str, None] = {}
        for key, value in fields:
            squashed = squash(key)
            if squashed not in ID_KEYS | NAME_KEYS:
                continue
            name = self.match(value) if isinstance(value, str) else None
            if name is not None:
                found[name] = None
            elif squashed in ID_KEYS:
                return None
        return tuple(found)


def names_something(fields: Fields) -> bool:
    """Whether a row has a key that tells whose it is, known or not."""
    keys = {squash(key) for key, value in fields if not isinstance(value, Obj | list)}
    return not keys.isdisjoint(ID_KEYS | NAME_KEYS)


def _unambiguous(spellings: Mapping[str, str], fold: Callable[[str], str]) -> dict[str, str]:
    """Folded spelling → id, without what is empty and without what two ids share."""
    meant: dict[str, list[str]] = {}
    for name, spelling in spellings.items():
        meant.setdefault(fold(spelling), []).append(name)
    return {key: same[0] for key, same in meant.items() if key and len(same) == 1}


def _trim(name: str) -> str:
    return drop_zero_width(name).strip()


def _fold(name: str) -> str:
    """Trimmed, in one case, without a leading "criterion" and enclosing brackets."""
    name = _trim(name).casefold()
    for _ in range(3):
        name = _LEADING.sub("", name, count=1) if _LEADING.match(name) else name
        if len(name) > 1 and _PAIRS.get(name[0]) == name[-1]:
            name = name[1:-1].strip()
    return name


def _fold_text(text: str) -> str:
    return " ".join(drop_zero_width(text).split()).casefold()
