"""What the prose around a candidate makes of it: a judge that quotes a file or echoes a format mostly says so.

Such a candidate gives no verdict, but it still contradicts other ones: prose is no safe ground for that, either.
"""

from __future__ import annotations

import re

_INTRODUCES = re.compile(
    r"""(?:
      \b(?:says|said|stat(?:es|ed)|claim(?:s|ed)?|writes?|wrote|written|contain(?:s|ed|ing)?|holds?|holding
        |includ(?:es|ed|ing)|quot(?:es?|ed|ing)|past(?:es|ed)|embed(?:s|ded)?|assert(?:s|ed)?|e\.g\.?)
        (?:\s+(?:the\ following|this|the\ text|the\ line|the\ words))?
    | \b(?:such\ as|instead\ of|rather\ than) | \b(?:like|not|would\ be|could\ be)\b(?![^\n]*\n)
    | (?:^|[.!?\n])\s*(?:(?!(?:in|json)\b)\w+\s){0,2}(?:format|schema|template|example|sample|draft|quotation|excerpt)
        (?:\s(?:is|was|looks\ like))?\s*[:=]
    | (?<![未不没])(?:写道|写着|写有|写了|包含|含有|声称|自称|例如|比如|诸如)
    | (?:^|[。！？\n])\s*\w{0,2}(?:格式|示例|例子|草稿|模板|原文|引用)(?:如下|是|为)?\s*:
    | <(?:submission|documents?|files?|examples?|format|output_format|schema|template|draft|input|prompt|task)
        \b[^<>]*>
    )[\s"'“‘「『:*,]*(?:(?:`{1,3}|~{3})[\w+.-]*\s*)?(?:<\w[^<>]*>\s*)*$""",
    re.VERBOSE | re.IGNORECASE,
)
_LABEL = re.compile(
    r"""(?:^|\n)[ \t>*_\#-]*
    (?:reason(?:ing)?|rationale|explanation|justification|evidence|quot(?:e|ation)|citation|excerpt
      |理由|原因|说明|证据|依据|引用|原文)
    [ \t*_`]*:(?:[^\n]*(?:\n[ \t]*[*+-][ \t][^\n]*)*|[\s*_]*(?:(?:`{3}|~{3})[\w+.-]*\s*)?)\Z""",
    re.VERBOSE | re.IGNORECASE,
)
"""A line of a reason or of evidence, in an answer that is written as a list of such lines."""
_DISOWNS = re.compile(
    r"""[ \t`"'”’」』,.)]*+(?:
      \(?which\b | is\ (?:what|not|only|just|an\ example|from|how)\b | was\b | as\ an\ example\b | appears\b | says\b
    | (?:from|in)\ (?:the\ )?(?:file|submission|document|memo|report|cell|slide|page|sheet|line)\b
    | 是(?:文件|原文|示例) | 只是 | 这是
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_CODE_GOES_ON = re.compile(r"`[ \t]+\w")
_SPECIAL = re.compile(r"<\|[^|<>\n]{0,30}\|>")
"""A token of a chat template that leaked into the text."""
_QUOTE_LINE = re.compile(r"[ \t]*+>")
_PAIRS = ("“”", "「」", "『』", "«»")
_LEAD, _TAIL = 160, 40


class Prose:
    """Reads the prose between candidates, from left to right, and knows whether a quotation is open."""

    def __init__(self, flat: str, start: int = 0):
        self._flat = flat
        self._start = self._read_to = start
        self._odd = False
        self._quote_line = False

    def quotes(self, start: int, end: int) -> bool:
        """Whether the prose marks the candidate from `start` to `end` as quoted, as an example, or as not meant."""
        before = self._flat[self._read_to : start]
        line = before[before.rfind("\n") + 1 :]
        if len(line) < len(before) or self._read_to == self._start:
            self._odd, self._quote_line = False, _QUOTE_LINE.match(line) is not None
        self._odd ^= line.count('"') % 2 == 1
        self._read_to = end
        in_code = line.endswith("`") and _CODE_GOES_ON.match(self._flat, end)
        in_cell = "|" in line and "|" in _SPECIAL.sub("", line)
        if self._odd or self._quote_line or in_cell or in_code or _DISOWNS.match(self._flat[end : end + _TAIL]):
            return True
        if not before.strip(", \t\r\n"):
            return False
        lead = before if len(before) <= _LEAD else f"…{before[-_LEAD:]}"
        open_pair = any(line.rfind(pair[0]) > line.rfind(pair[1]) for pair in _PAIRS)
        return open_pair or line.endswith(("'", "‘")) or any(p.search(lead) for p in (_INTRODUCES, _LABEL))
