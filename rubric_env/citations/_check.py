"""Whether a report's citations lead into the corpus, and its quotes are there (docs/citations.md has the rules)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from rubric_env.citations._corpus import Corpus
from rubric_env.citations._markdown import Lines, blocks, without_code
from rubric_env.citations._marks import Citation, find_citations
from rubric_env.citations._quotes import Quote, find_quotes
from rubric_env.citations._sources import find_sources

SOURCES_WANTED = 3
"""Documents that a report must rest on for the full score: research that knows one source only is none."""

REPORT_CHARS = 200_000
"""Read of one report: three times the longest that models write."""

QUOTES_CHECKED = 300
LISTED = 200
"""Citations, quotes and sources each that the JSON form names."""


@dataclass(frozen=True, slots=True)
class Source:
    """An entry of the list of sources: its label ("" without one), the id of its document, and whether it is cited."""

    label: str
    text: str
    line: int
    document: str
    cited: bool
    why: str


@dataclass(frozen=True, slots=True)
class CitationReport:
    """What a report cites. `name` is that of the report; `wanted` the documents that the full score asks for."""

    name: str
    citations: tuple[Citation, ...] = ()
    quotes: tuple[Quote, ...] = ()
    sources: tuple[Source, ...] = ()
    wanted: int = SOURCES_WANTED

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of the documents cited in the text, each once."""
        return tuple(dict.fromkeys(citation.document for citation in self.citations if citation.document))

    @property
    def resolved(self) -> int:
        """Citations that lead into the corpus."""
        return sum(citation.verdict == "resolved" for citation in self.citations)

    @property
    def checked_quotes(self) -> tuple[Quote, ...]:
        """Those that could be looked up."""
        return tuple(quote for quote in self.quotes if quote.verdict != "unchecked")

    @property
    def found(self) -> int:
        """Quotes that a cited document has."""
        return sum(quote.verdict == "found" for quote in self.quotes)

    @property
    def score(self) -> float:
        """Share of distinct sources cited that resolve × share of distinct quotes found × how many documents, of those
        wanted, are cited; from 0 to 1, and 0 without a citation."""
        cited = {citation.key: citation.verdict == "resolved" for citation in self.citations}
        if not cited:
            return 0.0
        # One and the same quote may stand rightly in one place and wrongly in another.
        quotes = {(quote.key, quote.verdict == "found") for quote in self.checked_quotes}
        occur = sum(found for _, found in quotes) / len(quotes) if quotes else 1.0
        breadth = min(1.0, len(self.documents) / self.wanted)
        return sum(cited.values()) / len(cited) * occur * breadth

    def to_json(self, seen: Iterable[str] | None = None) -> dict[str, Any]:
        """Counts, and a line for each of the first citations, quotes and sources; `seen` are the ids of documents that
        the policy had before it."""
        totals = Counter(f"citations_{citation.verdict}" for citation in self.citations)
        totals += Counter(f"quotes_{quote.verdict}" for quote in self.quotes)
        known = set(self.documents if seen is None else seen)
        return {
            "score": self.score,
            "totals": dict(totals),
            "documents": list(self.documents),
            "unopened": [name for name in self.documents if name not in known],
            "citations": [self._item(citation) for citation in self.citations[:LISTED]],
            "quotes": [self._item(quote) for quote in self.quotes[:LISTED]],
            "sources": [asdict(source) for source in self.sources[:LISTED]],
        }

    def _item(self, item: Citation | Quote) -> dict[str, Any]:
        return {name: value for name, value in asdict(item).items() if name not in ("start", "key")}


def check_citations(report_text: str, corpus: Corpus, name: str = "report") -> CitationReport:
    """Find the citations, quotes and listed sources of a report in markdown or plain text, and look each up.

    Deterministic, and no model is asked. It takes long texts: call it in a thread.
    """
    text = report_text[:REPORT_CHARS].replace("\r\n", "\n").replace("\r", "\n")
    plain, lines = without_code(text), Lines(text)
    listed = find_sources(text, plain, corpus)
    citations = [replace(found, line=lines.number(found.start)) for found in find_citations(plain, listed, corpus)]
    starts = [entry.start for entry in listed]
    prose = [
        block
        for block in blocks(plain)
        if not (at := bisect_right(starts, block.start)) or listed[at - 1].end <= block.start
    ]
    quotes: dict[tuple[str, tuple[str, ...]], Quote] = {}
    for quote in find_quotes(plain, prose, citations, corpus):
        quotes.setdefault((quote.key, quote.documents), replace(quote, line=lines.number(quote.start)))
        if len(quotes) >= QUOTES_CHECKED:
            break
    cited = {citation.key for citation in citations}
    sources = [
        Source(entry.label, entry.text, lines.number(entry.start), entry.document, entry.key in cited, entry.why)
        for entry in listed
    ]
    wanted = max(1, min(SOURCES_WANTED, len(corpus)))
    return CitationReport(name, tuple(citations), tuple(quotes.values()), tuple(sources), wanted)


def check_all(reports: Iterable[tuple[str, str]], corpus: Corpus) -> CitationReport:
    """Several reports, given as (name, text), as one: a source cited in two of them counts once."""
    found = [check_citations(text, corpus, name) for name, text in reports]
    return CitationReport(
        ", ".join(report.name for report in found),
        tuple(citation for report in found for citation in report.citations),
        tuple(quote for report in found for quote in report.quotes),
        tuple(source for report in found for source in report.sources),
        max(1, min(SOURCES_WANTED, len(corpus))),
    )
