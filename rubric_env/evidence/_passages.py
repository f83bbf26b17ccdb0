"""One file as a policy or a person may read it: the passages that a judge is shown, and no budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rubric_env._computing import computing
from rubric_env.evidence._decode import load
from rubric_env.evidence._extract import FILE_BYTES, Limits, Unit, Unreadable
from rubric_env.evidence._store import Entry, EvidenceStore, TooLarge, default_store
from rubric_env.evidence.kinds import NotRead, kind_of
from rubric_env.evidence.kinds.text import lines
from rubric_env.submission import open_regular


@dataclass(frozen=True, slots=True)
class Passages:
    """What a file says. `text` is that of a text file, whole and in its own lines; other kinds have none.

    `notes` say what was assumed, left out or lost.
    """

    kind: str
    notes: tuple[str, ...]
    text: str | None = None
    _entry: Entry | None = None

    @property
    def in_vain(self) -> float:
        """Seconds for which the formulas of a workbook were calculated, and then given up."""
        return self._entry.meta.get("in_vain", 0.0) if self._entry is not None else 0.0

    def units(self) -> Iterator[Unit]:
        """The passages with their addresses; of a text file its lines, whatever the judge is shown of it."""
        if self._entry is not None:
            return self._entry.units()
        return lines(self.text or "")


class NotExtracted(Unreadable):
    """A file that may be sound: that it has no text is a limit or failure of ours."""


def read_passages(path: Path, store: EvidenceStore | None = None) -> Passages:
    """Read one file, absolute and free of links; what a worker process reads is kept in `store` by its content.

    Raises Unreadable with the reason for what has no text or cannot be opened as what it is (NotExtracted where the
    reason is ours), OSError.
    """
    try:
        with open_regular(path) as opened:
            found = kind_of(path.suffix.lower(), opened.read(64))
        if found:
            return _text(path, found[0].name, found[1])
        entry = (store or default_store()).entry(path)
    except NotRead as error:
        raise Unreadable(f"{error.kind} files are not read") from None
    except TooLarge as error:
        raise Unreadable(f"it is {error}") from None
    meta = entry.meta
    if meta["status"] == "text":
        return _text(path, meta["kind"], meta["note"])
    if meta["status"] not in ("read", "empty"):
        ours = meta["status"] == "unsupported" or meta["ours"]
        raise (NotExtracted if ours else Unreadable)(meta["note"])
    lost = [f"not extracted, though it may be there: {error}" for error in meta["errors"]]
    return Passages(meta["kind"], (*meta["notes"], *lost), None, entry)


def _text(path: Path, kind: str, note: str) -> Passages:
    with computing():
        loaded = load(path, Limits(0, FILE_BYTES))
    return Passages(kind, (*filter(None, [note]), *loaded.notes), loaded.text)
