"""Ranked search in a few documents or a few thousand: SQLite's FTS5 on words, and on pairs of CJK characters."""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rubric_env.citations._text import CJK

TITLE_WEIGHT = 4.0
SNIPPET = 300
TERMS = 40
"""Different terms of a query that are looked for: no question needs more."""

_TOKEN = re.compile(rf"(?P<han>{CJK.pattern}+)|[^\W_]+")
# In English every second document has them, and in a query they are no wish.
_STOPS = re.compile(
    "an?|and|are|as|at|be|by|for|from|ha[sd]|have|how|i[nst]|its|o[fnr]|that|the|their|this|to|was|were|what|when|which"
    "|who|why|will|with"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """`number` of the document, and the passage of its text that holds most of the query."""

    number: int
    snippet: str


class SearchIndex:
    """Over (title, text) pairs. Safe in several threads."""

    def __init__(self, documents: Sequence[tuple[str, str]]) -> None:
        self._texts = [text for _, text in documents]
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        weakref.finalize(self, self._database.close)
        with self._database:
            self._database.execute("CREATE VIRTUAL TABLE pages USING fts5(title, text, tokenize='porter unicode61')")
            self._database.executemany(
                "INSERT INTO pages(rowid, title, text) VALUES (?, ?, ?)",
                ((n, " ".join(_terms(title)), " ".join(_terms(text))) for n, (title, text) in enumerate(documents)),
            )

    def search(self, query: str, limit: int) -> list[Hit]:
        """The best `limit` documents that hold any term of the query."""
        every = list(dict.fromkeys(_terms(query)))
        terms = [term for term in every if not _STOPS.fullmatch(term)][:TERMS] or every[:TERMS]
        if not terms:
            return []
        # Terms are letters and digits alone, and quoted: nothing of a query is syntax to FTS5.
        wanted = " OR ".join(f'"{term}"' for term in terms)
        with self._lock:
            rows = self._database.execute(
                "SELECT rowid FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, ?, 1.0), rowid LIMIT ?",
                (wanted, TITLE_WEIGHT, limit),
            ).fetchall()
        return [Hit(number, _snippet(self._texts[number], terms)) for (number,) in rows]


def _terms(text: str) -> Iterable[str]:
    for match in _TOKEN.finditer(unicodedata.normalize("NFKC", text).casefold()):
        run = match.group()
        if match["han"] and len(run) > 1:
            yield from map("".join, pairwise(run))
        else:
            yield run


def _snippet(text: str, terms: Sequence[str]) -> str:
    """The window with most different terms, the first of several; the beginning when the hit is in the title."""
    # A stem matches more than the word of the query: "pumped" is looked for as "pump".
    stems = [re.escape(term if CJK.match(term) or len(term) < 6 else term[:-2]) for term in terms]
    # The first letter of a word, without a boundary between CJK characters, which have none.
    pattern = re.compile("|".join(f"(?:{s})" if CJK.match(s) else rf"(?:\b{s})" for s in stems), re.IGNORECASE)
    best, most = 0, 0
    window: deque[tuple[int, str]] = deque()
    inside: Counter[str] = Counter()
    for match in pattern.finditer(text):
        window.append((match.start(), match.group().casefold()))
        inside[window[-1][1]] += 1
        while window[-1][0] - window[0][0] >= SNIPPET * 4 // 5:
            _, gone = window.popleft()
            inside[gone] -= 1
            inside += Counter()
        if len(inside) > most:
            best, most = window[0][0], len(inside)
    start = max(0, best - SNIPPET // 5)
    words = " ".join(text[start : start + SNIPPET].split())
    return ("…" if start else "") + words + ("…" if start + SNIPPET < len(text) else "")
