"""The addresses in what a judge writes: as the evidence spells them, and as people do, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rubric_env.evidence._shown import Cells

_WORDS = {"pp": "p", "page": "p", "line": "l", "paragraph": "¶", "幻灯片": "slide"}
_UNITS = {"页": "p", "张": "slide", "段": "¶", "行": "row"}
_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")}

_END = r"(?![a-z0-9_%])(?!\.[a-z])"
"""After a number that is one: not "3rd", "3 %" or the "slide 3.png" of a file."""

_HAN_NUMBER = r"[\d一二三四五六七八九十]{1,7}"
_PART = re.compile(
    # Not the "2-page 2024 budget", nor "5 slides. 12 were asked for".
    r"(?P<mark>[#!] ?)?\[?(?:(?P<word>¶|(?<![a-z0-9])(?<!\w-)(?:(?:slide|page|row|line|message|paragraph|cell|table"
    r"|footnote|endnote|comment|header|footer|attachment)s?[ _#-]{1,3}(?:no\. ?|number )?|pp?\. ?|[pl](?=\d))|幻灯片 ?)"
    rf"(?P<number>\d{{1,7}}){_END}(?! ?[页张个])"
    rf"|第 ?(?P<chinese>{_HAN_NUMBER})(?: ?[-–—~至到、和] ?第? ?(?P<until>{_HAN_NUMBER}))?"
    r" ?(?P<unit>页|张(?= ?(?:幻灯片|ppt|slide))|段|行))"
)
_RANGE = re.compile(rf"(?:[-–—~至到]| to )(?:¶|l|p|row |slide )?(?P<number>\d{{1,7}}){_END}")
_LIST = re.compile(
    r" ?(?:-|–|—|~|to|through|至|到|(?P<last>and|&|和)|[,、](?= ?\d+ ?(?:[-–—,.;:)\]&、]|and |$)))"
    rf" ?(?P<number>\d{{1,7}}){_END}"
)
_WORD = re.compile(r"[a-z]+|\W|幻灯片")
_SUB = re.compile(
    r"(?P<slash>/)?(?:, ?| ?\()?(?P<word>shape|row|output|comment|annotation|text box|¶)s? ?"
    r"(?P<number>\d{1,7})(?![a-z0-9_])"
)
_CELL = r"\$?[a-z]{1,3}\$?\d{1,7}"
_CELLS = re.compile(
    r"(?:(?P<how>'?! ?|# ?|(?<![a-z])(?:cells?|range) \[?|单元格 ?)"
    rf"(?P<place>{_CELL}(?: ?: ?{_CELL})?|(?<=!)\$?[a-z]{{1,3}}:\$?[a-z]{{1,3}})(?![a-z0-9_(])(?!\.[a-z])"
    rf"|(?<![a-z0-9])(?P<before>{_CELL}) ?单元格)"
)
_PATH = re.compile(r"# ?\[?(\$(?:\.[\w-]+|\[\d+\]|\[\"(?:[^\"\\]|\\.)*\"\])*)")

_LAST_ROW = 9_999_999


class Part(NamedTuple):
    """`deck.pptx#slide 3/shape 7`: `word` is `slide`, `sub` is (`shape`, 7). `marked`: its form says that it is one."""

    word: str
    numbers: tuple[int, ...]
    sub: tuple[str, int] | None
    marked: bool
    start: int
    end: int


class CellRange(NamedTuple):
    """`how` is `!` after the name of a sheet, `#` after that of a file, else empty; it stands at `start`."""

    cells: Cells
    how: str
    start: int
    end: int


def parts(text: str) -> Iterator[Part]:
    """Slides, pages, paragraphs and other numbered parts in a folded text."""
    at = 0
    while match := _PART.search(text, at):
        at = match.end()
        if match["chinese"]:
            word = _UNITS[match["unit"]]
            numbers = [_number(match[name]) for name in ("chinese", "until") if match[name]]
        else:
            word, numbers, at = _numbered(text, match)
        sub = _SUB.match(text, at)
        if sub and (sub["slash"] or text[at] in ", ("):
            at = sub.end()
        else:
            sub = None
        marked = bool(match["mark"]) or bool(sub and sub["slash"])
        yield Part(word, tuple(numbers), (sub["word"], int(sub["number"])) if sub else None, marked, match.start(), at)


def _numbered(text: str, match: re.Match[str]) -> tuple[str, list[int], int]:
    """`slides 1, 3-5 and 7`: several numbers after a plural, one range after anything else."""
    found = _WORD.match(match["word"])
    word = found.group() if found else ""
    plural = word.endswith("s") or word == "pp"
    word = word.removesuffix("s")
    numbers, at = [int(match["number"])], match.end()
    following = _LIST if plural else _RANGE
    while more := following.match(text, at):
        numbers.append(int(more["number"]))
        at = more.end()
        if not plural or more["last"]:
            break
    return _WORDS.get(word, word), numbers, at


def cells(text: str) -> Iterator[CellRange]:
    """Cells and ranges of cells in a folded text: `sheet1!b7`, `cell b7`, `#b2:b9`, `单元格b7`."""
    for match in _CELLS.finditer(text):
        place = (match["place"] or match["before"]).replace("$", "").replace(" ", "")
        if not any(map(str.isdigit, place)):
            first, _, last = place.partition(":")
            place = f"{first}1:{last}{_LAST_ROW}"
        if found := Cells.of(place):
            how = (match["how"] or "").strip(" '")
            yield CellRange(found, how if how in ("!", "#") else "", match.start(), match.end())


def paths(text: str) -> Iterator[tuple[str, int]]:
    """JSON paths after a `#`, and where it stands."""
    for match in _PATH.finditer(text):
        yield match[1], match.start()


def _number(digits: str) -> int:
    if digits.isdecimal():
        return int(digits)
    tens, mark, ones = digits.rpartition("十")
    if not mark:
        return _DIGITS.get(digits, 0)
    return 10 * _DIGITS.get(tens, 1) + _DIGITS.get(ones, 0)
