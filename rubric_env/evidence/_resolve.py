"""Whether what a judge cites is there. In doubt it is: false warnings would make people ignore the true ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from rubric_env.evidence._fold import fold

MIN_QUOTE = 16
"""Letters of a quote that is looked up; a shorter one is a term or a title. A CJK character counts twice."""

NEARBY = 80
"""Characters around a quote or a file name in which a word may say that it is absent, or asked for."""

_ADDRESS = re.compile(
    r"(?P<mark># ?)?\[?(?:(?P<kind>¶|rows? |lines? |L|message |paragraphs? )(?P<first>\d+)"
    r"(?: ?(?:[-–—]|to) ?(?:¶|L|row )?(?P<last>\d+))?(?!\w)|(?P<path>\$(?:\.[\w-]+|\[\d+\]|\[\"(?:[^\"\\]|\\.)*\"\])*))"
)
_LABELS = {"¶": "¶", "p": "¶", "r": "row ", "l": "L", "m": "message "}
_RANGE = re.compile(r"(.*)\[(\d+)\.\.(\d+)\]")
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
    r"|criteri\w+|rubric|row|requir\w+|should|expect\w*)\b|n't\b|[不没沒无無未缺题題应應]|要求|标准",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")
_FORMATTING = "*_`#>|~\\\"'“”‘’「」『』«»"
_DASHES = "‐‑‒–—−"
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af]")


class Index:
    """What can be cited: names of sources (those that were not read too), the labels shown of each, and their words."""

    def __init__(self, labels: Mapping[str, Iterable[str]], words: Iterable[str]) -> None:
        self._labels = {name.casefold(): frozenset(shown) for name, shown in labels.items()}
        self._known: dict[str, list[str]] = {}
        for name in self._labels:
            parts = PurePosixPath(name).parts
            for start in range(len(parts)):
                self._known.setdefault("/".join(parts[start:]), []).append(name)
        self._longest_first = sorted(self._known, key=len, reverse=True)
        self._reach = max(map(len, self._known), default=0) + NEARBY
        self._words = "\0".join(_bare(text) for text in words)

    def resolves(self, reference: str) -> bool:
        """False when an address, a file name or a longer quote in `reference` is in none of the sources."""
        return all(self._addresses(reference)) and all(self._files(reference)) and all(self._quotes(reference))

    def _addresses(self, text: str) -> Iterator[bool]:
        for match in _ADDRESS.finditer(text):
            before = text[max(0, match.start() - self._reach) : match.start()].rstrip(" ([,:").casefold()
            name = next((name for name in self._longest_first if before.endswith(name)), None)
            if match["kind"] != "¶" and not (match["mark"] and name):
                continue
            shown = [self._labels[source] for source in (self._known[name] if name else self._labels)]
            yield any(_has(labels, match) for labels in shown)

    def _files(self, text: str) -> Iterator[bool]:
        rest = text.casefold()
        for name in self._longest_first:
            rest = rest.replace(name, " " * len(name))
        for match in _FILE.finditer(rest):
            yield _bare(match.group()) in self._words or _speaks_of_absence(rest, match)

    def _quotes(self, text: str) -> Iterator[bool]:
        for match in _QUOTE.finditer(text):
            quote = next(filter(None, match.groups()))
            parts = [_bare(part).rstrip(".,;:!?。，；：！？") for part in _ELLIPSIS.split(quote)]
            looked_up = [part for part in parts if len(part) + len(_CJK.findall(part)) >= MIN_QUOTE]
            yield all(part in self._words for part in looked_up) or _speaks_of_absence(text, match)


def _has(labels: frozenset[str], match: re.Match[str]) -> bool:
    if path := match["path"]:
        return _has_path(labels, path)
    kind = _LABELS[match["kind"][0].lower()]
    return all(f"{kind}{int(number)}" in labels for number in (match["first"], match["last"]) if number)


def _has_path(labels: frozenset[str], path: str) -> bool:
    for label in labels:
        span = _RANGE.fullmatch(label)
        inside = re.match(rf"{re.escape(span[1])}\[(\d+)\]", path) if span else None
        if span and inside and int(span[2]) <= int(inside[1]) <= int(span[3]):
            return True
        longer, shorter = (label, path) if len(label) > len(path) else (path, label)
        if longer.startswith(shorter) and (longer == shorter or longer[len(shorter)] in ".["):
            return True
    return False


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
