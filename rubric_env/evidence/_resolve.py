"""Whether what a judge cites is there. In doubt it is: false warnings would make people ignore the true ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from rubric_env.evidence._cited import CellRange, Part, cells, parts, paths
from rubric_env.evidence._fold import fold
from rubric_env.evidence._shown import PAGED, SHEETS, TABLES, Shown
from rubric_env.evidence._store import DECKS

MIN_QUOTE = 16
"""Letters of a quote that is looked up; a shorter one is a term or a title. A CJK character counts twice."""

NEARBY = 80
"""Characters around a quote or an address in which a word may say that it is absent, or asked for."""

_SAME = {"slide": ("slide", "p"), "p": ("p", "slide")}
"""A deck may come as PDF, and people call its slides pages."""

_YEARS = frozenset(range(1900, 2100))
"""The pages of 2024 are from that year, until somebody writes a longer report."""

_NOT_COUNTED = {"slide": DECKS | {"pdf"}, "p": DECKS | PAGED}
"""Kinds that may have some although their extract does not number them."""

_LOOSE = frozenset({"slide", "p", "cell"})
"""Looked up without a name of a file or a `#` before them too; a row or a table of prose may be anything."""

_AROUND_NAME = " \t([{<,:;`*'\"“”‘’«»|>-–—#!]的中里"
_TO_NAME = re.compile(r"[ `*'\"”’»\])]*(?:(?:of|in|from|on)(?: the)? |[(\[])[ `*'\"“‘«]*")
_FILE = re.compile(
    # From the start of a name only: from each of its letters anew would take forever on a long one.
    r"(?<![\w/.-])[\w/.-]*[\w-]"
    r"\.(?:md|txt|csv|tsv|jsonl?|html?|xml|pdf|docx?|xlsx?|pptx?|ipynb|png|jpe?g|svg|zip)(?![\w/-])",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"“([^“”]+)”|「([^「」]+)」|『([^『』]+)』|«([^«»]+)»|(?<![\w\"])\"([^\"]+)\"(?!\w)")
_ELLIPSIS = re.compile(r"\[?(?:…|\.\.\.)\]?")
_ABSENT = re.compile(
    r"\b(?:no|not?|never|nor|none|nothing|without|missing|lack\w*|absen\w+|fail\w*|omit\w*|instead|cannot|task|instruction\w*"
    r"|criteri\w+|rubric|row|requir\w+|should|expect\w*)\b|n't\b|[不没沒無无未缺题題应應]|要求|标准",
    re.IGNORECASE,
)
_WANTED = re.compile(
    r"\b(?:task|instruction|criteri|rubric|requir|should\b|expect|asks?\b|asked\b|wants?\b|needs?\b)|要求|标准|题目|题干|应[有在当该为]"
)
_NOT_THERE = re.compile(
    r"(?:\b(?:no|without|missing|lacks?|lacking|absent)(?: an?| any)?|没有|缺少|缺|无|未见)[ `*\"'(\[]*$"
)
_IS_MISSING = re.compile(
    r"[ `*\"')\]]*(?:(?:(?:is|are|was|were) )?(?:missing|absent|empty|blank)\b|(?:cannot|could not) be found"
    r"|(?:is|are|was|were) not (?:there|present|included|delivered|provided|found|in)\b|do(?:es)? not exist"
    r"|不存在|缺失|缺|为空|空白|没有|未)"
)
_EMPTY = re.compile(r"\b(?:empty|blank|no|not|without|missing)\b|[空缺无未没]")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")
_FORMATTING = "*_`#>|~\\\"'“”‘’「」『』«»"
_DASHES = "‐‑‒–—−"
_WORD = re.compile("[a-z0-9_]")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af]")


class Index:
    """What can be cited: names of sources (those that were not read too), the addresses of each, and their words."""

    def __init__(self, sources: Iterable[Shown], words: Iterable[str]) -> None:
        self._sources = tuple(sources)
        self._known: dict[str, list[Shown]] = {}
        self._sheets: dict[str, list[Shown]] = {}
        for source in self._sources:
            for name in _spellings(fold(source.name)):
                self._known.setdefault(name, []).append(source)
            for sheet in {*source.rows, *source.sheets}:
                self._sheets.setdefault(sheet, []).append(source)
        self._longest_first = sorted(self._known, key=len, reverse=True)
        self._lengths = _lengths(self._known)
        self._sheet_lengths = _lengths(self._sheets)
        # Names that look like an address themselves, such as "slide 20 draft.pptx".
        confusing = [re.escape(name) for name in self._longest_first if any(parts(name)) or any(cells(name))]
        self._confusing = re.compile("|".join(confusing)) if confusing else None
        self._reach = max(map(len, self._known), default=0) + NEARBY
        self._text = "\0".join(words)
        self._words = _bare(self._text)

    def resolves(self, reference: str) -> bool:
        """False when an address, a file name or a longer quote in `reference` is in none of the sources."""
        folded = fold(reference)
        return all(self._addresses(folded)) and all(self._files(folded)) and all(self._quotes(reference))

    def _addresses(self, text: str) -> Iterator[bool]:
        spans = [match.span() for match in self._confusing.finditer(text)] if self._confusing else []
        names = frozenset(place for start, end in spans for place in range(start, end))
        for path, start in paths(text):
            if named := self._before(text, start, marked=True):
                yield any(source.has_path(path) for source in named)
        for part in parts(text):
            if part.start not in names:
                yield self._has_part(text, part) or _absent(text, part.start, part.end)
        for place in cells(text):
            if place.start not in names:
                yield self._has_cells(text, place) or _absent(text, place.start, place.end, _EMPTY)

    def _has_part(self, text: str, part: Part) -> bool:
        named = self._before(text, part.start, part.marked)
        if (part.marked and named) or part.word == "¶":
            return any(_has(source, part) for source in named or self._sources)
        named = named or self._after(text, part.end)
        if not part.marked and (part.word not in _LOOSE or not _YEARS.isdisjoint(part.numbers)):
            return True
        words = _SAME.get(part.word, (part.word,))
        numbered = False
        for source in named or self._sources:
            if not any(map(source.numbers, words)):
                if source.kind in _NOT_COUNTED.get(part.word, ()):
                    return True
            elif _has(source, part):
                return True
            else:
                numbered = True
        said = not named and not part.marked and self._mentioned[part.word].issuperset(part.numbers)
        return said or not numbered

    def _has_cells(self, text: str, place: CellRange) -> bool:
        if place.how == "!":
            return self._has_sheet_cells(text, place)
        named = self._before(text, place.start, marked=place.how == "#") or self._after(text, place.end)
        if place.how == "#" and not named:
            return True
        candidates = [source for source in named or self._sources if source.rows or source.kind in SHEETS | TABLES]
        return (
            not candidates
            or any(source.has_cells(None, place.cells) for source in candidates)
            or (not named and _bare(text[place.start : place.end].split()[-1]) in self._words)
        )

    def _has_sheet_cells(self, text: str, place: CellRange) -> bool:
        start = place.start
        if any(source.kind not in SHEETS for source in self._before(text, start, marked=True)):
            return True  # `all.zip#code.py!l10`
        before = text[max(0, start - self._reach) : start].replace("''", "'")
        sheet = next((before[-length:] for length in self._sheet_lengths if _ends(before, length, self._sheets)), None)
        named = self._before(before, len(before) - len(sheet or ""), marked=True)
        if sheet is not None:
            sources = [source for source in self._sheets[sheet] if not named or source in named]
            if any(source.has_cells(sheet, place.cells) for source in sources):
                return True
        elif any(source.may_have_sheets for source in named or self._sources if source.kind in SHEETS):
            return True
        # A formula that is quoted may speak of another workbook.
        last = text[max(0, start - self._reach) : place.end].split()
        return not named and _bare(last[-1]) in self._words

    def _before(self, text: str, end: int, marked: bool) -> list[Shown]:
        """The sources whose name ends before `end`; only a name with a suffix is one in the middle of a sentence."""
        before = text[max(0, end - self._reach) : end].rstrip(_AROUND_NAME)
        for length in self._lengths:
            if _ends(before, length, self._known) and (marked or "." in before[-length:]):
                return self._known[before[-length:]]
        return []

    def _after(self, text: str, start: int) -> list[Shown]:
        """The sources that `slide 3 of deck.pptx` names."""
        match = _TO_NAME.match(text, start)
        rest = text[match.end() : match.end() + self._reach] if match else ""
        names = (rest[:length] for length in self._lengths)
        return next((self._known[name] for name in names if name in self._known and "." in name), [])

    @cached_property
    def _mentioned(self) -> Mapping[str, set[int]]:
        """Slides, pages and cells that the evidence itself speaks of: `(Smith 2020, p. 45)`."""
        found: dict[str, set[int]] = {word: set() for word in _LOOSE}
        for part in parts(fold(self._text)):
            if part.word in found:
                found[part.word].update(part.numbers)
        return found

    def _files(self, text: str) -> Iterator[bool]:
        for name in self._longest_first:
            text = text.replace(name, " " * len(name))
        for match in _FILE.finditer(text):
            yield _bare(match.group()) in self._words or _speaks_of_absence(text, match)

    def _quotes(self, text: str) -> Iterator[bool]:
        for match in _QUOTE.finditer(text):
            quote = next(filter(None, match.groups()))
            pieces = [_bare(piece).rstrip(".,;:!?。，；：！？") for piece in _ELLIPSIS.split(quote)]
            looked_up = [piece for piece in pieces if len(piece) + len(_CJK.findall(piece)) >= MIN_QUOTE]
            yield all(piece in self._words for piece in looked_up) or _speaks_of_absence(text, match)


def _spellings(name: str) -> set[str]:
    """A path from each of its folders on; a member of a zip file also without the zip file."""
    inside = name.partition("!")[2]
    folders = name.split("/")
    found = {"/".join(folders[start:]) for start in range(len(folders))}
    return found | _spellings(inside) if inside else found


def _lengths(names: Iterable[str]) -> Sequence[int]:
    return sorted({len(name) for name in names if name}, reverse=True)


def _ends(text: str, length: int, names: Mapping[str, object]) -> bool:
    """Whether `text` ends with one of `names`, of that length, and not in the middle of a word."""
    return (
        length <= len(text)
        and text[-length:] in names
        and not (length < len(text) and _WORD.match(text[-length - 1]) and _WORD.match(text[-length]))
    )


def _has(source: Shown, part: Part) -> bool:
    words = _SAME.get(part.word, (part.word,))
    if not all(any(source.has(word, number) for word in words) for number in part.numbers):
        return False
    if part.sub is None:
        return True
    counted = [word for word in words if source.numbers(word)]
    if part.sub[0] == "shape" and "slide" not in counted:
        return False  # the page of a PDF
    return all(source.has_part(word, part.numbers[-1], *part.sub) for word in counted)


def _absent(text: str, start: int, end: int, also: re.Pattern[str] | None = None) -> bool:
    """Whether the sentence says that what stands there is missing, or asked for; `also` is looked for in it too."""
    before = _SENTENCE_END.split(text[max(0, start - NEARBY) : start])[-1]
    after = _SENTENCE_END.split(text[end : end + NEARBY])[0]
    if _WANTED.search(before) or _NOT_THERE.search(before) or _IS_MISSING.match(after):
        return True
    return also is not None and bool(also.search(before) or also.search(after))


def _speaks_of_absence(text: str, match: re.Match[str]) -> bool:
    before = _SENTENCE_END.split(text[max(0, match.start() - NEARBY) : match.start()])[-1]
    after = _SENTENCE_END.split(text[match.end() : match.end() + NEARBY])[0]
    return bool(_ABSENT.search(before) or _ABSENT.search(after))


def _bare(text: str) -> str:
    text = fold(text)
    for dash in _DASHES:
        text = text.replace(dash, "-")
    for mark in _FORMATTING:
        text = text.replace(mark, "")
    return "".join(text.split())
