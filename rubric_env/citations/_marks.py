"""Citations in the running text: links, addresses, numbers and ids in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rubric_env.citations._address import normal_url
from rubric_env.citations._corpus import Corpus, id_shape
from rubric_env.citations._sources import URL, Listed, document_at, trimmed

Verdict = Literal["resolved", "unresolved", "dangling"]

CITATIONS = 5_000
"""Found in one report; more than three times what the longest have."""

RANGE = 50
"""Sources that one range as [3-12] may cover; a longer one is no citation."""

_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,300})\]"
    r"\(\s*<?(?P<target>[^()\s<>]*(?:\([^()\s<>]*\)[^()\s<>]*){0,5})>?(?:\s+[\"'(][^\n]{0,200}?[\"')])?\s*\)"
)
_BRACKET = re.compile(
    r"[\[【［](?P<inside>[^\[\]【】［］\n]{1,160})[\]】］](?!\()|[(（](?P<round>[^()（）\n]{2,160})[)）]"
)
_NUMBERS = re.compile(r"\d{1,3}(?:\s*(?:[,;，；、]|[-‐‑–—~～])\s*\^?\d{1,3})*")
_SPLIT = re.compile(r"\s*[,;，；、]\s*")
_SPAN = re.compile(r"(\d{1,3})\s*[-‐‑–—~～]\s*\^?(\d{1,3})")
_INTRO = re.compile(
    r"(?:sources?|see|cf\.|documents?|docs?|id)(?:\s*:\s*|\s+)|(?:来源|出处|参见|见|文献|资料|文档)\s*[:：]?\s*",
    re.IGNORECASE,
)
_CODE = re.compile(r"[^\W\d]{2}[^\s]*\d|\d[^\s]*[^\W\d]{2}|\w\.\w")
"""Letters and digits in one word, or a file name."""

_REST = re.compile(r"†.*")


@dataclass(frozen=True, slots=True)
class Citation:
    """One source cited at one place. `text` is the mark as written; `line` counts from 1.

    `resolved`: it leads to `document`, an id of the corpus. `unresolved`: it leads to something that the corpus does
    not have. `dangling`: its number has no entry in the list of sources. `key` is the same for all citations of one
    source.
    """

    text: str
    line: int
    start: int
    verdict: Verdict
    document: str
    why: str
    key: str


@dataclass(frozen=True, slots=True)
class _Mark:
    text: str
    start: int


def find_citations(plain: str, listed: Sequence[Listed], corpus: Corpus) -> Iterator[Citation]:
    """Every citation of a text without code, in order; `line` is filled in later. The list of sources is none."""
    hidden = [(entry.start, entry.end) for entry in listed]
    text = _blanked(plain, hidden)
    by_label: dict[str, list[Listed]] = {}
    for entry in listed:
        by_label.setdefault(entry.label, []).append(entry)
    found: list[Citation] = []
    links = []
    for match in _LINK.finditer(text):
        links.append(match.span())
        if not match["image"] and (citation := _linked(_Mark(match.group(), match.start()), match["target"], corpus)):
            found.append(citation)
    text = _blanked(text, links)
    for match in URL.finditer(text):
        url = trimmed(match.group())
        found.append(_address(_Mark(url, match.start()), url, corpus))
    text = URL.sub(lambda match: " " * len(match.group()), text)
    for match in _BRACKET.finditer(text):
        if len(found) > CITATIONS:
            break
        mark = _Mark(match.group(), match.start())
        if match["round"]:
            # In round brackets anything may stand: only what is plainly no word is taken for an id.
            found += _ids(mark, match["round"], corpus) if _CODE.search(match["round"]) else []
            continue
        inside = _REST.sub("", match["inside"]).strip()
        labels, ids = _labels(mark, inside, by_label), _ids(mark, inside, corpus)
        found += (labels or ids) if by_label else (ids or labels)
    yield from sorted(found, key=lambda citation: citation.start)[:CITATIONS]


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in spans:
        pieces += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def _linked(mark: _Mark, target: str, corpus: Corpus) -> Citation | None:
    if re.match(r"(?:https?:)?//|www\.", target, re.IGNORECASE):
        return _address(mark, target, corpus)
    if found := corpus.find(target.removeprefix("./")):
        return Citation(mark.text, 0, mark.start, "resolved", found.id, "an id of the corpus", found.id)
    return _unknown(mark, target) if id_shape(target) in corpus.shapes else None


def _address(mark: _Mark, url: str, corpus: Corpus) -> Citation:
    if found := document_at(url, corpus):
        return Citation(mark.text, 0, mark.start, "resolved", found.id, "an address of the corpus", found.id)
    why = "the address is not in the corpus, which says nothing about whether it exists"
    return Citation(mark.text, 0, mark.start, "unresolved", "", why, f"url:{normal_url(url) or url}")


def _unknown(mark: _Mark, name: str) -> Citation:
    why = f"no document of the corpus is called {name}"
    return Citation(mark.text, 0, mark.start, "unresolved", "", why, f"id:{name.casefold()}")


def _labels(mark: _Mark, inside: str, listed: Mapping[str, Sequence[Listed]]) -> list[Citation]:
    """Numbers and footnotes."""
    if inside.startswith("^") and not _NUMBERS.fullmatch(inside[1:]):
        return [_entry(mark, inside, listed)] if " " not in inside else []
    if not _NUMBERS.fullmatch(inside.removeprefix("^")):
        # As in [text][label] and [label], which markdown joins with a definition below.
        return [_entry(mark, inside, listed)] if inside in listed else []
    if not listed and len(re.findall(r"\d+", inside)) == 2:
        return []  # two numbers and no list of sources: an interval
    labels = [label for part in _SPLIT.split(inside) for label in _range(part.lstrip("^"))]
    known = [label for label in labels if _entries(label, listed)]
    # Where no entry has such a name, two numbers may be an interval all the same, and 0 is a number like others.
    if (not known and len(re.findall(r"\d+", inside)) == 2) or ("0" in labels and "0" not in known):
        return []
    return [_entry(mark, label, listed) for label in labels]


def _range(part: str) -> list[str]:
    if not (span := _SPAN.fullmatch(part)):
        return [part]
    first, last = map(int, span.groups())
    return [str(number) for number in range(first, last + 1)] if 0 < last - first <= RANGE else []


def _entries(label: str, listed: Mapping[str, Sequence[Listed]]) -> Sequence[Listed]:
    bare = label.removeprefix("^")
    return listed.get(label) or listed.get(f"^{bare}") or listed.get(bare) or ()


def _entry(mark: _Mark, label: str, listed: Mapping[str, Sequence[Listed]]) -> Citation:
    entries = _entries(label, listed)
    if not entries:
        why = f"the list of sources has no entry {label}" if listed else "there is no list of sources"
        return Citation(mark.text, 0, mark.start, "dangling", "", why, f"label:{label}")
    # A report with a list after each chapter counts from 1 again.
    entry = next((entry for entry in entries if entry.start > mark.start), entries[-1])
    verdict: Verdict = "resolved" if entry.document else "unresolved"
    return Citation(mark.text, 0, mark.start, verdict, entry.document, entry.why, entry.key)


def _ids(mark: _Mark, inside: str, corpus: Corpus) -> list[Citation]:
    """Ids of documents, when all that is in the bracket looks like ids."""
    names = [name.strip("`* ") for name in _SPLIT.split(_INTRO.sub("", inside, count=1))]
    citations = []
    for name in names:
        if found := corpus.find(name):
            citations.append(Citation(mark.text, 0, mark.start, "resolved", found.id, "an id of the corpus", found.id))
        elif id_shape(name) in corpus.shapes and _CODE.search(name):
            citations.append(_unknown(mark, name))
        else:
            return []
    return citations
