"""Words that a report puts in quotation marks beside a citation, and whether a cited document has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rubric_env.citations._corpus import Corpus, Document
from rubric_env.citations._markdown import Block
from rubric_env.citations._marks import Citation
from rubric_env.citations._text import CJK, canonical, size_in_words

QuoteVerdict = Literal["found", "misattributed", "not_found", "unchecked"]

LEAST_WORDS = 8
"""Words, or twice as many CJK characters, of a quote. Fewer may be a term, a name or irony."""

LEAST_PIECE = 4
"""Words that the longest piece of a quote with gaps must have: single words in order occur anywhere."""

FOREIGN = 0.02
"""Share of CJK characters that a document needs to be one of a language written with them."""

_PAIRS = re.compile(
    r"“([^“”]{4,2000})”|„([^„“”]{4,2000})[“”]|«([^«»]{4,2000})»|「([^「」]{4,2000})」|『([^『』]{4,2000})』"
)
_INCHES = re.compile(r'(?<=\d)"(?!\w)')
_GAP = re.compile(r"\s*(?:\[[^\[\]]{0,200}\]|［[^［］]{0,200}］|[(（]\s*(?:…+|\.{3,})\s*[)）]|…+|\.{3,})\s*")
_NAMED = re.compile(
    r"(?:titled|entitled|called|named|known as|headed|under the (?:title|heading)"
    r"|题为|名为|标题为|名叫|称为|叫做?|所谓的?)\s*[,:：]?\s*$",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_CALLOUT = re.compile(r"(?:\*\*|__|\[!|[-*+]\s|#|\||\d+[.)]\s)")
_ATTRIBUTION = re.compile(r"\n[^\S\n]*(?:>[^\S\n]*)*(?:—|–|--|——)[^\S\n]*\S[^\n]*\s*$")
_PREFIX = re.compile(r"^\s*(?:>\s?)+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation that stands with a citation. `line` counts from 1; `documents` are the ids cited beside it.

    `found`: one of them has it. `misattributed`: only another document of the corpus has it. `not_found`: none has.
    `unchecked`: what is cited is not in the corpus, or is in another language.
    """

    text: str
    line: int
    start: int
    verdict: QuoteVerdict
    documents: tuple[str, ...]
    why: str
    key: str


@dataclass(frozen=True, slots=True)
class _Passage:
    text: str
    start: int
    block: int


def find_quotes(
    plain: str, all_blocks: Sequence[Block], citations: Sequence[Citation], corpus: Corpus
) -> Iterator[Quote]:
    """Every quotation with a citation in its block, in order; `line` is filled in later."""
    beside: dict[int, list[Citation]] = {}
    at = 0
    for citation in sorted(citations, key=lambda citation: citation.start):
        while at < len(all_blocks) and all_blocks[at].end <= citation.start:
            at += 1
        beside.setdefault(at, []).append(citation)
    for passage in _passages(plain, all_blocks):
        cited = list(beside.get(passage.block, ()))
        if all_blocks[passage.block].kind == "quote":
            # The words that introduce a block quote, and those that follow it, may bring its source.
            cited += [*beside.get(passage.block - 1, ()), *beside.get(passage.block + 1, ())]
        pieces = [piece for part in _GAP.split(passage.text) if (piece := canonical(part))]
        if cited and pieces:
            yield _check(passage, pieces, cited, corpus)


def _passages(text: str, all_blocks: Sequence[Block]) -> Iterator[_Passage]:
    for number, block in enumerate(all_blocks):
        if block.kind == "heading":
            continue
        words = text[block.start : block.end]
        marked = list(_marked(words))
        if block.kind == "quote" and not marked:
            before = text[all_blocks[number - 1].start : all_blocks[number - 1].end].rstrip(" \n*_") if number else ""
            marked = list(_block_quote(words, introduced=before.endswith((":", "："))))
        for start, quote in marked:
            if _is_quote(quote, words[max(0, start - 40) : start]):
                yield _Passage(quote, block.start + start, number)


def _marked(words: str) -> Iterator[tuple[int, str]]:
    """What stands in quotation marks. Straight ones that do not pair up in their block say nothing."""
    found = [(match.start(), next(filter(None, match.groups()))) for match in _PAIRS.finditer(words)]
    found += _straight(_INCHES.sub(" ", words))
    end = 0
    for start, quote in sorted(found):
        if start >= end:
            yield start, quote
            end = start + len(quote)


def _straight(words: str) -> list[tuple[int, str]]:
    outside, inside = words.split('"')[::2], words.split('"')[1::2]
    opened = all(not before[-1:].isascii() or not before[-1:].isalnum() for before in outside[: len(inside)])
    if len(outside) == len(inside) or not opened or any(quote != quote.strip() for quote in inside):
        return []
    found, at = [], 0
    for before, quote in zip(outside, inside, strict=False):
        found.append((at + len(before), quote))
        at += len(before) + len(quote) + 2
    return found


def _block_quote(words: str, *, introduced: bool) -> Iterator[tuple[int, str]]:
    """A block quote is somebody's words when a colon leads to it, or a dash and a name close it; others are boxes."""
    attribution = _ATTRIBUTION.search(words)
    body = _PREFIX.sub("", words[: attribution.start()] if attribution else words).strip()
    if (introduced or attribution) and not _CALLOUT.match(body):
        yield 0, re.sub(r"\s*[\[【［(（][^\[\]()]{1,40}[\]】］)）]\s*[.。]?\s*$", "", body)


def _is_quote(quote: str, before: str) -> bool:
    """Whether somebody's words are given: long enough, and no title."""
    if size_in_words(quote) < LEAST_WORDS or _NAMED.search(before):
        return False
    if max(map(size_in_words, _GAP.split(quote))) < LEAST_PIECE:
        return False
    long_words = _LONG_WORD.findall(CJK.sub(" ", quote))
    return not long_words or any(word[0].islower() for word in long_words)


def _check(passage: _Passage, pieces: Sequence[str], cited: Sequence[Citation], corpus: Corpus) -> Quote:
    names = tuple(dict.fromkeys(citation.document for citation in cited if citation.document))
    documents = [document for name in names if (document := corpus.find(name))]

    def verdict(kind: QuoteVerdict, why: str) -> Quote:
        shown = " ".join(passage.text.split())
        return Quote(shown, 0, passage.start, kind, names, why, "|".join(pieces))

    if holder := next((document for document in documents if _holds(document, pieces)), None):
        return verdict("found", f"{holder.id} has it")
    if other := next((document for document in corpus if _holds(document, pieces)), None):
        if not documents:
            return verdict("misattributed", f"{other.id} has it, and is not cited beside it")
        return verdict("misattributed", f"{other.id} has it, and not {', '.join(names)}")
    if not documents:
        return verdict("unchecked", "no source cited beside it is in the corpus")
    if all(_is_cjk(document.text) != _is_cjk(passage.text) for document in documents):
        return verdict("unchecked", "what is cited is in another language: a translation cannot be looked up")
    return verdict("not_found", "no document of the corpus has it")


def _holds(document: Document, pieces: Sequence[str]) -> bool:
    """Whether the pieces occur in order. One that begins or ends with a digit is not part of a longer number."""
    text, at = document.canonical, 0
    for piece in pieces:
        while (at := text.find(piece, at)) >= 0:
            end = at + len(piece)
            if not (_number(text[at - 1 : at]) and _number(piece[0])) and not (
                _number(text[end : end + 1]) and _number(piece[-1])
            ):
                at = end
                break
            at += 1
        else:
            return False
    return True


def _number(character: str) -> bool:
    return character.isdigit() or character == "\ue000"


def _is_cjk(text: str) -> bool:
    return len(CJK.findall(text)) > FOREIGN * len(text)
