"""Text → what can be compared: figures, dates, codes and word stems, English and Chinese, spelled one way each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

MAGNITUDES = {
    "hundred": 2, "thousand": 3, "million": 6, "mn": 6, "billion": 9, "bn": 9, "trillion": 12, "k": 3, "m": 6, "b": 9,
    "百": 2, "千": 3, "万": 4, "萬": 4, "百万": 6, "千万": 7, "亿": 8, "億": 8, "万亿": 12,
}  # fmt: skip
"""Power of ten of each magnitude word; one letter counts only right behind a digit (`1.2M`, `€3m`)."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SMALL_NUMBERS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "twelve": 12,
}  # fmt: skip
_HAN_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九十")} | {"两": 2}
_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "一": 1, "二": 2, "三": 3, "四": 4}
_CURRENCIES = {"$": "usd", "US$": "usd", "€": "eur", "£": "gbp", "¥": "cny"}

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,40})(?:\.\d{1,40})?"
_MAGNITUDE = (
    r"\s?(?:hundred|thousand|million|billion|trillion|mn|bn)\b|[kKmMbB](?![A-Za-z])"
    r"|\s?(?:百万|千万|万亿|[百千万亿萬億])"
)
_FILE_SUFFIXES = "md|txt|csv|tsv|json|jsonl|xml|html?|ya?ml|docx?|xlsx?|pptx?|pdf|png|jpe?g|svg|py|sql|ipynb|zip"

_SCANNER = re.compile(
    rf"""
      (?P<file>(?<![\w./-])[\w./-]{{0,200}}\w\.(?:{_FILE_SUFFIXES})(?!\w))
    | (?P<mail>(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,64}}(?:\.[\w-]{{1,64}})+)
    | (?P<time>(?<!\d)\d{{1,2}}:\d{{2}}(?!\d))
    | (?P<iso>(?<!\d)(?P<iy>\d{{4}})[-/.](?P<im>0?[1-9]|1[0-2])[-/.](?P<id>0?[1-9]|[12]\d|3[01])(?!\d))
    | (?P<zh>(?:(?P<zy>\d{{4}})\s?年\s?)?(?P<zm>\d{{1,2}})\s?月(?:\s?(?P<zd>\d{{1,2}})\s?[日号])?)
    | (?P<dmy>(?<!\d)(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?(?P<dm>{_MONTH})(?:,?\s(?P<dy>\d{{4}}))?(?!\d))
    | (?P<mdy>\b(?P<mm>{_MONTH})(?:\s(?P<md>\d{{1,2}})(?:st|nd|rd|th)?(?![\d,]\d))?(?:,?\s(?P<my>\d{{4}})(?!\d))?)
    | (?P<quarter>(?i:(?P<qe>first|second|third|fourth)[\s-]quarter)
        | 第?(?P<qz>[一二三四1-4])季度 | \bQ(?P<qn>[1-4])(?![A-Za-z\d]))
    | (?P<code>\\[A-Za-z]+|[A-Za-z][A-Za-z_-]{{0,40}}\d[\w-]*|[A-Za-z]+_\w+)
    | (?P<number>(?:(?P<currency>US\$|[$€£¥])\s?)?(?P<digits>{_DIGITS})(?P<magnitude>{_MAGNITUDE})?元?
        (?P<percent>\s?(?:%|percent\b|per\scent\b|percentage\spoints?\b|pp\b|个百分点))?)
    | 百分之(?P<hundredths>{_DIGITS}|[一二两三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])
    | (?P<count>[一二两三四五六七八九十](?=[个条项点种家名类份次页年天季大]))
    | (?P<word>[A-Za-zÀ-ÖØ-öø-ÿ]+(?:['’][A-Za-z]+)?)
    | (?P<han>[\u3400-\u9fff]+)
    | (?P<symbol>[$€£¥])
    """,
    re.VERBOSE,
)
_GLUED_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_STEM = re.compile(
    r"(.{4,}?)(?:ization|ation|ating|ator|ated|ate|ment|ingly|ity|ness|ing|ied|ion|ively|ive|edly|ed|ally|al|ly"
    r"|ence|ance|ent|ant|able|ible|e|y)"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number. `value` holds its magnitude, `mantissa` is the number as written, `step` the unit of its last digit.

    `sign` is "+" or "-" only where it was written; `percent` marks percentages.
    """

    value: Decimal
    mantissa: Decimal
    step: Decimal
    power: int = 0
    percent: bool = False
    sign: str = ""

    def agrees(self, found: Figure, exact: bool = False) -> bool:
        """Whether `found` says this figure or, unless `exact`, rounds to it at this figure's own last digit."""
        if self.percent != found.percent or (self.sign and found.sign and self.sign != found.sign):
            return False
        if exact or found.step >= self.step:
            return found.value == self.value
        return abs(found.value - self.value) * 2 < self.step


@dataclass(frozen=True, slots=True)
class Date:
    """A calendar date; a part that was not written is None."""

    year: int | None
    month: int
    day: int | None

    def agrees(self, found: Date) -> bool:
        """Whether `found` names the same day or month; a year may be left out in either."""
        years = {self.year, found.year} - {None}
        return len(years) < 2 and self.month == found.month and self.day in (None, found.day)


@dataclass(frozen=True, slots=True)
class Token:
    """One unit of text: `kind` is word, han, code, file, figure or date; `key` its one spelling; `start` its place."""

    kind: str
    key: str
    start: int
    end: int
    raw: str
    figure: Figure | None = None
    date: Date | None = None


def normalise(text: str) -> str:
    """Full-width forms and odd spaces as plain ones; offsets of tokens count in this text."""
    text = unicodedata.normalize("NFKC", _GLUED_SPACE.sub("", text))
    return text.replace("−", "-").replace("‑", "-").replace("`", " ").replace("**", "  ")


def scan(text: str) -> Iterator[Token]:
    """The tokens of a normalised text, in order. A number with a currency sign gives two, and so does a quarter."""
    for m in _SCANNER.finditer(text):
        raw, place = m.group(), m.span()
        word = raw.lower()
        if m["file"]:
            yield Token("file", word.removeprefix("./"), *place, raw)
        elif m["iso"] or m["zh"] or m["dmy"] or m["mdy"]:
            yield _date(m)
        elif m["quarter"]:
            name = (m["qe"] or m["qz"] or m["qn"]).lower()
            yield Token("code", f"q{_QUARTERS.get(name, name)}", *place, raw)
            yield Token("word", "quarter", *place, raw)
        elif m["code"] or m["mail"] or m["time"]:
            yield Token("code", word.lstrip("0"), *place, raw)
        elif m["number"]:
            yield from _number(m)
        elif m["hundredths"]:
            yield _percentage(m)
        elif m["count"]:
            yield _count(_HAN_DIGITS[raw], m)
        elif word in _SMALL_NUMBERS:
            yield _count(_SMALL_NUMBERS[word], m)
        elif m["word"]:
            yield Token("word", stem(word), *place, raw)
        elif m["symbol"]:
            yield Token("word", _CURRENCIES[raw], *place, raw)
        else:
            yield Token("han", raw, *place, raw)


def _date(m: re.Match[str]) -> Token:
    if m["iso"]:
        year, month, day = m["iy"], int(m["im"]), m["id"]
    elif m["zh"]:
        year, month, day = m["zy"], int(m["zm"]), m["zd"]
    else:
        name = m["dm"] or m["mm"]
        year, month, day = m["dy"] or m["my"], _MONTHS.index(name[:3].lower()) + 1, m["dd"] or m["md"]
    date = Date(int(year) if year else None, month, int(day) if day else None)
    return Token("date", f"{date.year or '?'}-{month}-{date.day or '?'}", *m.span(), m.group().strip(), date=date)


def _number(m: re.Match[str]) -> Iterator[Token]:
    if m["currency"]:
        yield Token("word", _CURRENCIES[m["currency"]], *m.span("currency"), m["currency"])
    digits = _decimal(m["digits"])
    power = MAGNITUDES[m["magnitude"].strip().lower()] if m["magnitude"] else 0
    start = m.start("digits")
    before = m.string[max(0, start - 2) : start]
    sign = before[-1:] if before[-1:] in ("+", "-") and not before[:-1].isalnum() else ""
    figure = Figure(digits.scaleb(power), digits, _step(digits).scaleb(power), power, bool(m["percent"]), sign)
    key = f"{figure.value.normalize():f}{'%' if figure.percent else ''}"
    yield Token("figure", key, start, m.end(), m.string[start : m.end()], figure)


def _percentage(m: re.Match[str]) -> Token:
    digits = m["hundredths"]
    tens, _, ones = digits.rpartition("十")
    if digits[0] not in _HAN_DIGITS:
        value = _decimal(digits)
    elif "十" in digits:
        value = Decimal(10 * _HAN_DIGITS.get(tens, 1) + _HAN_DIGITS.get(ones, 0))
    else:
        value = Decimal(_HAN_DIGITS[digits])
    return Token("figure", f"{value}%", *m.span(), m.group(), Figure(value, value, _step(value), percent=True))


def _count(value: int, m: re.Match[str]) -> Token:
    number = Decimal(value)
    return Token("figure", str(value), *m.span(), m.group(), Figure(number, number, Decimal(1)))


def _decimal(digits: str) -> Decimal:
    return Decimal(digits.replace(",", ""))


def _step(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(min(0, int(value.as_tuple().exponent)))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A light English stem: lower case, the plural off, then the longest known ending, four letters kept."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if word.endswith("ies") and len(word) > 4:
        word = f"{word[:-3]}y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        word = word[:-1]
    ending = _STEM.fullmatch(word)
    return ending.group(1) if ending else word


def bigrams(run: str, stops: re.Pattern[str]) -> list[str]:
    """Overlapping pairs of a run of Chinese characters, cut where `stops` matches; a lone one stands for itself."""
    parts = stops.sub(" ", run).split()
    return [pair for part in parts for pair in ([part[i : i + 2] for i in range(len(part) - 1)] or [part])]
