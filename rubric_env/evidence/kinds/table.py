"""CSV and TSV, by rows as they were written. The header is row 1, as a spreadsheet numbers it."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from rubric_env.evidence._decode import load
from rubric_env.evidence._extract import Extract, Kind, Limits, Unit
from rubric_env.evidence.kinds.text import lines

_DELIMITERS = ",;\t|"
_SNIFFED_LINES = 50
_NAMED_ROWS = 5


@dataclass(slots=True)
class _Shape:
    """Counted while the rows pass. `last` is the number of the last row, blank ones included."""

    last: int = 0
    rows: int = 0
    columns: int = 0
    ragged: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        shape = f"{self.rows:,} rows with the header, {self.columns:,} columns"
        if not self.ragged:
            return shape
        named = ", ".join(f"{number:,}" for number in self.ragged[:_NAMED_ROWS])
        return f"{shape}; {len(self.ragged):,} rows have another number of cells (first: {named})"


def read(path: Path, limits: Limits) -> Extract:
    """The rows. A file that does not parse is shown as lines, and the note says why."""
    loaded = load(path, limits)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(loaded.text)
    shape = _Shape()
    try:
        return Extract.of(_rows(loaded.text, delimiter, shape), limits, notes=(*loaded.notes, shape), cut=loaded.cut)
    except csv.Error as error:
        notes = (*loaded.notes, f"does not parse as CSV after row {shape.last:,} ({error}): shown as lines")
        return Extract.of(lines(loaded.text), limits, notes=notes, cut=loaded.cut)


def _rows(text: str, delimiter: str, shape: _Shape) -> Iterator[Unit]:
    taken: list[str] = []

    def feed() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    for number, cells in enumerate(csv.reader(feed(), delimiter=delimiter, strict=True), 1):
        row = "".join(taken).rstrip("\n")
        taken.clear()
        shape.last = number
        if not cells or row.isspace():
            continue
        shape.rows += 1
        shape.columns = shape.columns or len(cells)
        if len(cells) != shape.columns:
            shape.ragged.append(number)
        yield Unit(f"row {number}", row)


def _delimiter(text: str) -> str:
    """The one that splits most of the first lines into the same number of cells, more cells winning a tie."""
    sample = list(islice(io.StringIO(text, newline=""), _SNIFFED_LINES))

    def fit(delimiter: str) -> tuple[int, int]:
        try:
            widths = Counter(len(row) for row in csv.reader(sample, delimiter=delimiter) if len(row) > 1)
        except csv.Error:
            return 0, 0
        columns, rows = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        return rows, columns

    return max(_DELIMITERS, key=fit)


KINDS = (Kind("csv", (".csv",), read), Kind("tsv", (".tsv", ".tab"), read))
