"""The words of JSON as judges write it: strings in any quotes, bare words, brackets; comments and thinking left out."""

from __future__ import annotations

import re
from typing import NamedTuple

from verdict_parsers._chars import SKIP
from verdict_parsers._think import CLOSE, OPEN, end_of_thinking

CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "’": "’", "＂": "＂", "＇": "＇"}
QUOTES = "".join(CLOSING_QUOTE)

_TOKEN = re.compile(
    rf"""{SKIP}(?:
    (?P<mark>[{{}}\[\],:])
  | (?P<quote>[{QUOTES}])
  | (?P<line>(?://|\#)[^\n]*+)
  | (?P<block>/\*)
  | (?P<stop>`{{3,}}|~{{3,}}|{CLOSE})
  | (?P<think>{OPEN})
  | (?P<bare>(?:[^\s{{}}\[\],:"“”＂`\#/]|/(?![/*]))(?:[^{{}}\[\],:"“”＂`\n\#/]|/(?![/*]))*+)
  | (?P<junk>.)
    )""",
    re.VERBOSE,
)
_BODY = {
    closing: re.compile(rf"[^{closing}\\]*+(?:\\.[^{closing}\\]*+)*+{closing}", re.DOTALL)
    for closing in set(CLOSING_QUOTE.values())
}


class Token(NamedTuple):
    """`kind` is "mark" (a bracket, comma or colon), "string", "bare" (words without quotes), "junk", "stop" (a fence or
    the end of a thinking section: no container goes on behind it), "end" (of the text), or "open" (a string that has
    none). A comment or a thinking section that is never closed is the end of the text too.
    """

    kind: str
    start: int
    end: int


def next_token(text: str, flat: str, position: int) -> Token:
    """The token at or behind `position`: structure is read from `flat`, strings from `text`."""
    while match := _TOKEN.match(flat, position):
        kind = match.lastgroup or ""
        start, end = match.span(kind)
        if kind == "quote":
            body = _BODY[CLOSING_QUOTE[flat[start]]].match(text, end)
            return Token("string", start, body.end()) if body else Token("open", start, len(text))
        if kind == "block":
            close = flat.find("*/", end)
            position = close + 2 if close >= 0 else len(text)
        elif kind == "think":
            after = end_of_thinking(flat, start)
            position = after if after is not None else len(text)
        elif kind == "line":
            position = end
        else:
            return Token(kind, start, end)
    return Token("end", len(text), len(text))
