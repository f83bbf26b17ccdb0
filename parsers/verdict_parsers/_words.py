"""The spellings of keys and verdict words, and what one row's fields say. Exact words only, never substrings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from verdict_parsers._chars import ZERO_WIDTH, drop_zero_width
from verdict_parsers._values import Bare, Fields, Obj, Value, literal


def names(listed: str) -> frozenset[str]:
    """The words of a list with spaces between."""
    return frozenset(listed.split())


VERDICT_KEYS = names(
    "hit met ismet criteriamet criterionmet iscriteriatrue iscriterionmet verdict satisfied issatisfied"
    " passed pass result score 命中 是否命中 满足 是否满足 通过 是否通过"
)
WORD_ONLY_KEYS = frozenset({"score", "verdict"})
REASON_KEYS = names("reason reasons reasoning rationale explanation justification 理由 原因 说明 解释")
EVIDENCE_KEYS = names("evidence quote quotes quotation citation citations excerpt source 证据 依据 引用 原文")
OPAQUE_KEYS = REASON_KEYS | EVIDENCE_KEYS | names("analysis thought thoughts thinking comment comments note notes")
"""What stands below one of these is never an answer, and does not contradict one."""

_ANSWER_WORDS = names(
    "verdict verdicts result results evaluation evaluations answer answers judgment judgments judgement judgements"
    " assessment assessments criteria criterion rubric rubrics scores rating ratings grading grade grades check checks"
)
_NEUTRAL_WORDS = names("all by detailed final individual item items judge list my of overall per row rows the")
_WRAPPER_KEYS = names(
    "output outputs response responses content row rows item items data final json object arguments parameters"
    " 结果 判定 评判 评估 评分"
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_a-zA-Z]+")

PLAIN_KEYS = VERDICT_KEYS | OPAQUE_KEYS | names("level confidence certainty summary suggestion suggestions")
"""Keys that cannot tell whose row it is, under whatever name."""

_TRUE = names("true yes pass passed met satisfied hit 是 满足 命中 通过 符合")
_FALSE = names("false no fail failed unmet unsatisfied 否 未满足 不满足 未命中 不命中 未通过 不通过 不符合") | {
    "not met",
    "not satisfied",
    "not hit",
    "not passed",
}
_EXAMPLE = re.compile(
    r"(?:true|yes|pass|met|是)\s*+(?:[|/]|or\b|或)\s*+(?:false|no|fail|not met|否)(?:\s*+(?:[|/]|or\b)\s*+\S++)?"
    r"|bool(?:ean)?|\.{3}|…|<(?!/)[^<>]++>",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?")
_GAPS = re.compile(r"[\s_\-]+")
_KEY_GAPS = re.compile(rf"[\s_\-{ZERO_WIDTH}]+")

State = Literal["verdict", "null", "unreadable", "silent", "conflict", "example"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the fields of one row say. `state` tells whether it is a verdict; only then do `hit` and `level` count.

    "silent": a reason without a verdict. "example": an echoed format line (`true|false`). `echo` marks a row whose
    reason is a placeholder.
    """

    state: State
    hit: bool | None = None
    level: float | None = None
    spelled: str = ""
    boolean: bool = False
    reason: str = ""
    evidence: str = ""
    echo: bool = False


@dataclass(frozen=True, slots=True)
class _Word:
    state: State
    hit: bool | None = None
    spelled: str = ""
    boolean: bool = False


@lru_cache(1024)
def _squash(key: str) -> str:
    return _KEY_GAPS.sub("", key).casefold()


def squash(key: str) -> str:
    """The form in which keys are compared: `is_criteria_true`, `isCriteriaTrue` and `Is criteria true` are one."""
    return _squash(key) if len(key) <= 64 else key


def may_hold_answers(key: str) -> bool:
    """Whether an answer may stand below this key: `verdicts`, `rubric_results`. Below any other it only contradicts."""
    words = {word.lower() for word in _WORD.findall(key)}
    known = words <= _ANSWER_WORDS | _NEUTRAL_WORDS and not words.isdisjoint(_ANSWER_WORDS)
    return known or squash(key) in _WRAPPER_KEYS


def answer_of(fields: Fields) -> Answer | None:
    """Read one row; None when it carries no verdict, no level and no reason. A key that comes twice is a conflict, but
    for a second reason or quotation."""
    keys = [squash(key) for key, _ in fields]
    words = [word for key, (name, value) in zip(keys, fields, strict=True) if (word := _word(key, name, value))]
    levels = [value for key, (_, value) in zip(keys, fields, strict=True) if key == "level"]
    level = number(levels[0]) if levels else None
    if words:
        word = _decide(words, keys)
    elif level is not None:
        word = _Word("verdict", None, f"level:{levels[0]}")
    elif OPAQUE_KEYS.isdisjoint(keys):
        return None
    else:
        word = _Word("silent")
    deciding = [key for key in keys if key not in OPAQUE_KEYS]
    if len(set(deciding)) < len(deciding):
        word = _Word("conflict")
    reason = _text(value for key, (_, value) in zip(keys, fields, strict=True) if key in REASON_KEYS)
    evidence = _text(value for key, (_, value) in zip(keys, fields, strict=True) if key in EVIDENCE_KEYS)
    echo = any(_EXAMPLE.fullmatch(text.strip()) for text in (reason, evidence))
    return Answer(word.state, word.hit, level, word.spelled, word.boolean, reason, evidence, echo)


def hit_of(word: str) -> bool | None:
    """What an exact word says; None for any other."""
    word = _GAPS.sub(" ", word.casefold())
    return True if word in _TRUE else False if word in _FALSE else None


def spellings() -> str:
    """A pattern of all words that `hit_of` knows."""
    longest_first = sorted(_TRUE | _FALSE, key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"[\s_\-]+") for word in longest_first)


def number(value: Value) -> float | None:
    """A finite number from a JSON number or a numeric string."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value.strip()):
        return None
    parsed = float(value)
    return parsed if math.isfinite(parsed) else None


def bare_verdict(value: Value) -> Answer | None:
    """The verdict that stands alone under its row's id. A lone number may be a score, so it is unreadable."""
    if isinstance(value, Obj | list):
        return None
    word = _scalar("", value, numbers=False)
    return Answer(word.state, word.hit, None, word.spelled, word.boolean)


def _decide(words: list[_Word], keys: list[str]) -> _Word:
    if "hit" in keys:
        return next(word for word in words if word.spelled.startswith("hit:"))
    if any((word.state, word.hit) != (words[0].state, words[0].hit) for word in words):
        return _Word("conflict")
    return words[0]


def _word(key: str, name: str, value: Value) -> _Word | None:
    """The verdict under one key. None: no verdict key, or what no verdict can stand in (a score that is a number)."""
    if key not in VERDICT_KEYS:
        return None
    if isinstance(value, Obj | list):
        return _Word("unreadable", spelled="hit:") if key == "hit" else None
    if key in WORD_ONLY_KEYS and (isinstance(value, str) and _NUMBER.fullmatch(value.strip())):
        return None
    return _scalar("hit" if key == "hit" else name.strip().lower(), value, numbers=True)


def _scalar(name: str, value: bool | str | None, *, numbers: bool) -> _Word:
    if value is None:
        return _Word("null", spelled=f"{name}:null")
    if isinstance(value, bool):
        return _Word("verdict", value, f"{name}:{str(value).lower()}", boolean=True)
    written = drop_zero_width(value).strip()
    spelled = f"{name}:{written}"
    hit = written == "1" if numbers and written in {"0", "1"} else hit_of(written)
    if hit is not None:
        return _Word("verdict", hit, spelled)
    return _Word("example" if _EXAMPLE.fullmatch(written) else "unreadable", spelled=spelled)


def _text(values: Iterable[Value]) -> str:
    """The first value that is text, or the texts of a list, a line each. Half a surrogate pair becomes `?`."""
    for value in values:
        parts = value if isinstance(value, list) else [value]
        if text := "\n".join(part for part in parts if isinstance(part, str)):
            return str(text).encode("utf-8", "replace").decode("utf-8")
    return ""


def field_value(key: str, text: str) -> Value:
    """The text of an XML element or a table cell under a (squashed) key: a literal where a verdict stands."""
    return literal(text) if key in VERDICT_KEYS else Bare(text.strip())
