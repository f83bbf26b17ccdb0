"""A rubric row → what must be found in an answer; a piece of an answer → what is there to be found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rubric_env.local.terms import MAGNITUDES, Date, Figure, Token, bigrams, normalise, scan, stem

# Words with which a row speaks about an answer; what the answer itself must hold are the others.
_ROW_WORDS = """
    a about above accurately all also an and any anything are as at be been before begin being below between both but by
    call can clearly column contain correctly deliver describe do does did document each either every exactly explain
    explicitly fewer file for from give given has have header heading how identify if in include indicate into is it its
    least less line list made make mention more most name need no none nor not note of on one only or other output own
    paragraph present properly provide reply report response answer right said say section sentence shall should show so
    some state submission such table than that the their them there these they this those through to under was were what
    when where whether which while who why will with within without must may
"""
_TEXT_WORDS = "a an and are as at be by for from in is it of on or that the this to was were with"
_ROW_STOPS = frozenset(stem(word) for word in _ROW_WORDS.split())
_TEXT_STOPS = frozenset(stem(word) for word in _TEXT_WORDS.split())
_HAN_STOPS = re.compile(
    "是否|报告|回复|答复|回答|答案|说明|指出|给出|注明|标注|写明|写出|写成|提出|引用|明确|包含|包括|列出|提到|提及|文件"
    "|应当|应该|必须|需要|正确|准确|清楚|没有|以及|并且|开头|结尾|表格|一张表|句话|一个|一条|每条|每个|至少|不少于|不超过"
    "|[的了和与及在为对将并或其该中等是有按把从到以就都也很被由于各应须需请后前]"
)
_EXAMPLE = re.compile(
    r"\(\s*(?:e\.g\.|for example|for instance|such as|例如|比如|如)[\s,:]*([^()]*)\)"
    r"|[,;]?\s*(?:\be\.g\.|\bfor example\b|\bfor instance\b|\bsuch as\b|例如|比如)[\s,:]*([^;。;()]*)",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:at least|at most|no more than|not more than|no fewer than|no less than|up to|more than|less than|fewer than"
    r"|over|under|above|below|within|exceed(?:s|ing)?|[≥≤<>]|至少|不少于|不低于|不超过|不多于|最多|超过|低于|高于)[^\d]{0,5}$",
    re.IGNORECASE,
)
_OR = re.compile(r"[\s()%]*(?:or|或|或者|/)[\s()]*", re.IGNORECASE)
_ALTERNATIVES = re.compile(r"[,;]\s|、|\bor\b|或")
_QUOTED = re.compile(r"[\"“「『]([^\"”」』]{2,80})[\"”」』]")
_PART = re.compile(r"[,、]\s?(?!\d{3}(?!\d))|\band\b|[和与及]")
_HEAD = re.compile(r"[^:]{0,300}:(?=\s)|[^:]{0,100}:(?=[\u3400-\u9fff])")
_BARE_MAGNITUDE = re.compile(r"(?<![\d.\s])\s*(hundred|thousand|million|billion|百万|千万|[百千万亿])(?:元|\b)")

DENIAL = re.compile(
    r"\b(?:not|no|never|none|wrong|incorrect(?:ly)?|instead|mistaken|cannot|rather than|without|exclud\w+)\b|n't\b"
    r"|不|未|没|无法|错|并非|剔除",
    re.IGNORECASE,
)
"""Words that turn a sentence round, or may."""


@dataclass(frozen=True, slots=True)
class Bag:
    """What a text holds. `keys`: word stems, character pairs, codes. `powers`: magnitudes without a number (万元)."""

    keys: frozenset[str]
    figures: tuple[Figure, ...]
    dates: tuple[Date, ...]
    powers: frozenset[int]

    def __or__(self, other: Bag) -> Bag:
        return Bag(
            self.keys | other.keys, self.figures + other.figures, self.dates + other.dates, self.powers | other.powers
        )

    def has_figure(self, wanted: Figure, exact: bool) -> bool:
        """A figure that agrees, or its bare number where the magnitude stands elsewhere, as in the head of a table."""
        return any(
            wanted.agrees(found, exact)
            or (wanted.power in self.powers and not found.power and found.mantissa == wanted.mantissa)
            for found in self.figures
        )


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to find: a key, or any of some figures, or a date. A `required` item may not be missing."""

    weight: float
    required: bool = False
    key: str = ""
    figures: tuple[Figure, ...] = ()
    date: Date | None = None

    def found_in(self, bag: Bag, exact: bool = False) -> bool:
        if self.figures:
            return any(bag.has_figure(figure, exact) for figure in self.figures)
        if self.date:
            return any(map(self.date.agrees, bag.dates))
        return self.key in bag.keys


@dataclass(frozen=True, slots=True)
class Claim:
    """What a text asks for. `files` are the file names in it. `denies`: it holds a word that turns it round."""

    items: tuple[Item, ...]
    files: tuple[str, ...]
    denies: bool

    @property
    def required(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.required)


@lru_cache(maxsize=4096)
def bag_of(text: str) -> Bag:
    """What a piece of an answer holds."""
    keys: set[str] = set()
    figures, dates = [], []
    text = normalise(text)
    for token in scan(text):
        if token.figure:
            figures.append(token.figure)
        elif token.date:
            dates.append(token.date)
            keys.add(token.key)
        elif token.kind == "han":
            keys.update(bigrams(token.key, _HAN_STOPS))
        elif token.key not in _TEXT_STOPS:
            keys.add(token.key)
    powers = {MAGNITUDES[found.lower()] for found in _BARE_MAGNITUDE.findall(text)}
    return Bag(frozenset(keys), tuple(figures), tuple(dates), frozenset(powers))


@lru_cache(maxsize=1024)
def claim_of(text: str) -> Claim:
    """The claim of a row's text, examples left out."""
    text = _EXAMPLE.sub(" ", normalise(text))
    quoted = [m.span(1) for m in _QUOTED.finditer(text)]
    items: dict[str, Item] = {}
    files: list[str] = []
    last: Token | None = None
    for token in scan(text):
        if token.kind == "file":
            files.append(token.key)
        elif token.figure:
            _add_figure(items, token.figure, token, last, text)
            last = token
        elif token.date:
            items[token.key] = Item(2.0, required=token.date.day is not None, date=token.date)
        elif token.kind == "han":
            items.update((pair, Item(0.5, key=pair)) for pair in bigrams(token.key, _HAN_STOPS))
        elif token.kind == "code":
            items[token.key] = Item(2.0, required=True, key=token.key)
        elif token.key not in _ROW_STOPS:
            emphatic = any(a <= token.start < b for a, b in quoted) or (token.raw[0].isupper() and token.start > 0)
            items[token.key] = Item(1.5 if emphatic else 1.0, key=token.key)
    return Claim(tuple(items.values()), tuple(dict.fromkeys(files)), bool(DENIAL.search(text)))


def _add_figure(items: dict[str, Item], figure: Figure, token: Token, last: Token | None, text: str) -> None:
    """Figures joined by "or" are one item. A number word counts things, and a bound is none to be found."""
    if last and last.key in items and _OR.fullmatch(text[last.end : token.start]):
        before = items.pop(last.key)
        items[token.key] = Item(before.weight, before.required, figures=(*before.figures, figure))
        return
    bound = _BOUND.search(text[max(0, token.start - 24) : token.start])
    required = token.raw[0].isdigit() and not bound
    items[token.key] = Item(2.0 if required else 1.0, required, figures=(figure,))


def examples_of(text: str) -> tuple[Claim, ...]:
    """The claims of a row's examples, each alternative its own."""
    lists = (a or b for a, b in _EXAMPLE.findall(normalise(text)))
    parts = (part for found in lists for part in _ALTERNATIVES.split(found))
    return tuple(claim for claim in map(claim_of, parts) if claim.items)


def parts_of(text: str) -> tuple[Claim, ...]:
    """A row's enumeration: what follows its colon, or all of it, cut at semicolons, or else at commas and "and"."""
    text = _EXAMPLE.sub(" ", normalise(text))
    head = _HEAD.match(text)
    body = text[head.end() :] if head else text
    claims = map(claim_of, body.split(";") if ";" in body else _PART.split(body))
    return tuple(claim for claim in claims if claim.items)
