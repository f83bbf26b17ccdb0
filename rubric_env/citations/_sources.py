"""The list of sources that a report ends with: entries with a label, and the document that each stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rubric_env.citations._corpus import Corpus, Document

ENTRIES = 2_000
"""Of all lists of one report that are read."""

_TITLE = re.compile(
    r"(?:\d{1,2}[.)、]?\s+|[一二三四五六七八九十]{1,3}[、.]\s*|附录\s*\w{0,2}[:：]?\s*|appendix\s*\w{0,2}[:.]?\s*)?"
    r"(?:(?:(?:data|key|main|primary|information)\s+)?(?:references?|sources?|citations|bibliography|endnotes|footnotes)"
    r"(?:\s+(?:list|cited|consulted|used))?(?:\s+(?:and|&)\s+(?:notes|links|further reading|references|sources))?"
    r"|works cited|(?:list of|cited)\s+(?:sources|references)|(?:source|reference)\s+list"
    r"|(?:主要)?(?:参考|引用|引文)(?:文献|资料|来源|出处|书目)?(?:列表|清单|目录)?"
    r"|(?:(?:资料|信息|数据|文献)?(?:来源|出处)|文献|脚注|尾注)(?:列表|清单|目录)?)"
    r"(?:\s*[(（][^()（）]{1,40}[)）])?\s*[:：]?",
    re.IGNORECASE,
)
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)[\s#]*$")
_BOLD = re.compile(r"\s*(\*\*|__)(.+?)\1\s*[:：]?\s*$")
_ENTRY = re.compile(
    r"\s*(?:[-*+•]\s+)?(?:[\[［【](?P<caret>\^?)(?P<mark>[^\[\]\s【】［］]{1,40})[\]］】]\s*[:：]?(?!\()"
    r"|(?P<number>\d{1,3})[.)、．]|\|\s*[\[［【]?(?P<cell>\w[^|\s\]］】]{0,39})[\]］】]?\s*\|)\s*(?=\S)"
)
_BULLET = re.compile(r"\s*[-*+•]\s+(?=\S)")
_FOOTNOTE = re.compile(r" {0,3}\[\^(?P<label>[^\[\]\s]{1,40})\]:\s*")
_DEFINITION = re.compile(r" {0,3}\[(?P<label>[^\[\]^]{1,80})\]:\s*<?(?:https?://|www\.)")
_LEADING = re.compile(r"\s*[\[［【](?P<label>\d{1,3})[\]］】]\s*[:：]?\s*(?=\S)(?!\()")

URL = re.compile(
    r"(?<![A-Za-z0-9@/._-])(?:https?://|www\.)[^\s<>\"`|\\^{}\[\]「」『』【】《》“”，。；、！？（）［］]{1,2000}",
    re.IGNORECASE,
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_WORD = re.compile(r"[^\s\[\](){}<>|,;:\"'`*，。；：、（）【】《》“”「」]+")


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a list of sources. `label` is "3", "^note" for a footnote, or ""; `document` its id, or ""."""

    label: str
    start: int
    end: int
    text: str
    document: str
    why: str
    key: str
    """The same for all entries and citations that mean one source."""


def trimmed(url: str) -> str:
    """An address without what closes the sentence or bracket around it."""
    end, unopened = len(url), url.count(")") - url.count("(")
    while end and (url[end - 1] in ".,;:!?'*_~”’" or (url[end - 1] == ")" and unopened > 0)):
        unopened -= url[end - 1] == ")"
        end -= 1
    return url[:end]


def document_at(url: str, corpus: Corpus) -> Document | None:
    """The document with that address; Chinese text may follow an address without a space."""
    foreign = _NOT_ASCII.search(url)
    return corpus.at(url) or (corpus.at(trimmed(url[: foreign.start()])) if foreign else None)


def find_sources(text: str, plain: str, corpus: Corpus) -> list[Listed]:
    """All entries, in order. `plain` is the text without its code, of the same length."""
    spans = sorted({*_in_sections(text, plain), *_elsewhere(plain)}, key=lambda span: (span[1], -span[2]))
    listed: list[Listed] = []
    for label, start, end in spans[:ENTRIES]:
        if not listed or start >= listed[-1].end:
            entry = _read(label, start, end, text[start:end], corpus)
            # The head of a table is no source.
            if entry.document or not entry.text.startswith("|") or URL.search(entry.text):
                listed.append(entry)
    return listed


def _read(label: str, start: int, end: int, text: str, corpus: Corpus) -> Listed:
    urls = [trimmed(match.group()) for match in URL.finditer(text)]
    found = next((document for url in urls if (document := document_at(url, corpus))), None)
    why = "its address is in the corpus"
    if found is None:
        words = (word.strip(".-–—") for word in _WORD.findall(text))
        found = next((document for word in words if (document := corpus.find(word))), None)
        why = "its id is in the corpus"
    if found is None:
        found, why = corpus.titled(text), "its title is in the corpus"
    if found is None:
        why = f"{urls[0]} is not in the corpus" if urls else "it names no address, id or title of the corpus"
    name = found.id if found else ""
    return Listed(label, start, end, " ".join(text.split())[:300], name, why, name or f"{label}:{text[:200]}")


Span = tuple[str, int, int]


def _in_sections(text: str, plain: str) -> Iterator[Span]:
    """Entries below a heading that says so, up to the next heading that is not below it."""
    lines = text.splitlines(keepends=True)
    section: list[Span] = []
    at, level = 0, 0  # level 0: not in a section
    entry: tuple[str, int] | None = None
    for number, (line, prose) in enumerate(zip(lines, plain.splitlines(keepends=True), strict=True)):
        opened = _opens(prose, lines[number + 1 : number + 4])
        heading = _level(prose)
        label = _label(line) if level and not heading else None
        if entry is not None and label == "" and _continues(line, URL.search(text, entry[1], at) is not None):
            label = None
        ends = bool(opened or (heading and heading <= level) or label is not None or not line.strip())
        if entry is not None and ends:
            section.append((*entry, at))
            entry = None
        if opened or (heading and heading <= level):
            yield from _numbered(section)
            section, level = [], opened
        elif label is not None:
            entry = (label, at)
        at += len(line)
    if entry is not None:
        section.append((*entry, at))
    yield from _numbered(section)


def _continues(line: str, has_url: bool) -> bool:
    """Whether a line without a label belongs to the entry above: it is indented, or brings the address it lacks."""
    return line[:1].isspace() or (not has_url and not _BULLET.match(line))


def _level(line: str) -> int:
    """1 to 6 for a heading, 7 for a line in bold, 0 for other lines."""
    if match := _HEADING.match(line):
        return len(match.group(1))
    return 7 if _BOLD.match(line) else 0


def _opens(line: str, following: Sequence[str]) -> int:
    """The level of a heading over a list of sources; a bare line is one when an entry follows."""
    if match := _HEADING.match(line):
        words, level = match.group(2), len(match.group(1))
    elif match := _BOLD.match(line):
        words, level = match.group(2), 7
    else:
        first = next((after for after in following if after.strip()), "")
        words, level = (line, 7) if _label(first) is not None else ("", 0)
    return level if _TITLE.fullmatch(words.strip().strip("*_").strip()) else 0


def _label(line: str) -> str | None:
    """The label of an entry that begins with this line, "" without one; None when none begins here."""
    if match := _ENTRY.match(line):
        return f"^{match['mark']}" if match["caret"] else match["mark"] or match["number"] or match["cell"]
    return "" if _BULLET.match(line) or URL.search(line) else None


def _elsewhere(text: str) -> Iterator[Span]:
    """Footnotes and definitions of links wherever they stand, and lines that begin with [3] and name a source."""
    at = 0
    footnote: tuple[str, int] | None = None
    for line in text.splitlines(keepends=True):
        match = _FOOTNOTE.match(line)
        if footnote and (match or not line.startswith((" ", "\t")) or not line.strip()):
            yield (*footnote, at)
            footnote = None
        if match:
            footnote = (f"^{match['label']}", at)
        elif (match := _DEFINITION.match(line)) or ((match := _LEADING.match(line)) and URL.search(line)):
            yield (match["label"], at, at + len(line))
        at += len(line)
    if footnote:
        yield (*footnote, at)


def _numbered(spans: Sequence[Span]) -> list[Span]:
    """Markdown counts a list of which every item is written `1.`."""
    labels = [label for label, _, _ in spans]
    if len(labels) > 1 and set(labels) == {"1"}:
        return [(str(number), start, end) for number, (_, start, end) in enumerate(spans, 1)]
    return list(spans)
