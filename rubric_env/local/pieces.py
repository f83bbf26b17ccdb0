"""Evidence cut into the pieces that a rule compares: sentences and table lines; and windows over them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rubric_env.local.claims import Bag, bag_of
from rubric_env.local.passages import Passage, read_evidence

_TABLE_LINE = re.compile(r"\s*\|")
_LIST_LINE = re.compile(r"\s*(?:[-*+•#]+|\d{1,2}[.)、]|[(（]?[一二三四五六七八九十]+[)）、.])\s")
_TABLE_FILES = (".csv", ".tsv")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"“(*])|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or a table line. The `bag` of a table line holds the words of its head too."""

    source: str
    address: str
    text: str
    bag: Bag
    table: bool


@lru_cache(maxsize=16)
def pieces_of(section: str) -> tuple[Piece, ...]:
    """All pieces of an evidence section, in order."""
    pieces: list[Piece] = []
    source, head = "", None
    for passage in read_evidence(section).passages:
        if passage.source != source or not passage.source.endswith(_TABLE_FILES):
            source, head = passage.source, None
        for text, table in _lines(passage):
            bag = bag_of(text)
            if not table:
                head = None
            elif head:
                bag |= head
            else:
                head = bag
            pieces.append(Piece(source, passage.address, text, bag, table))
    return tuple(pieces)


def windows(pieces: Sequence[Piece], longest: int) -> Iterator[range]:
    """Every run of one to `longest` neighbours of one source, as positions; a table line alone."""
    for start, first in enumerate(pieces):
        yield range(start, start + 1)
        for stop in range(start + 2, min(start + longest, len(pieces)) + 1):
            if any(piece.table or piece.source != first.source for piece in pieces[start:stop]):
                break
            yield range(start, stop)


def _lines(passage: Passage) -> Iterator[tuple[str, bool]]:
    """(text, is a table line). A sentence may run over lines; a table line or list entry begins anew."""
    paragraph: list[str] = []
    in_table_file = passage.source.endswith(_TABLE_FILES)
    for line in passage.text.split("\n"):
        table = in_table_file or bool(_TABLE_LINE.match(line))
        if paragraph and (table or not line.strip() or _LIST_LINE.match(line)):
            yield from _sentences(paragraph)
            paragraph = []
        if table:
            yield line.strip(), True
        elif line.strip():
            paragraph.append(line.strip())
    yield from _sentences(paragraph)


def _sentences(lines: list[str]) -> Iterator[tuple[str, bool]]:
    yield from ((sentence, False) for sentence in _SENTENCE_END.split(" ".join(lines)) if sentence.strip())
