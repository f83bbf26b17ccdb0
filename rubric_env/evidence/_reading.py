"""What a reader in a worker process is given, and what it says of a file beside its passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rubric_env.evidence._extract import Unit, Unreadable


@dataclass(slots=True)
class Reading:
    """One file being read. A reader yields units and calls these methods as it goes.

    `path` is a private copy that nobody changes; its suffix is that of the delivered file, its name is not. Files that
    a reader writes into `folder` are kept with the evidence (`digest.json`, `pages/slide-001.json`). `failed` says that
    something is lost for a failure of ours. `calculated` is a copy of a workbook with the values of its formulas.
    """

    path: Path
    folder: Path
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cut: bool = False
    failed: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    calculated: Path | None = None

    def note(self, text: str) -> None:
        """Tell the judge something of the file as a whole: "3 sheets, 1 of them hidden"."""
        self.notes.append(text)

    def lost(self, address: str, error: object) -> None:
        """A part that could not be extracted although the file opens. What is not extracted may still be there.

        It is a failure of ours, unless `error` is an Unreadable or words that say what is wrong with the file.
        """
        self.failed = self.failed or not isinstance(error, Unreadable | str)
        # What another exception says may quote the file, and the judge is told this as words of ours.
        said = str(error) if isinstance(error, Unreadable | str) else type(error).__name__
        self.errors.append(f"{address}: {said}"[:300])

    def skipped(self, text: str) -> None:
        """Something was left out for a cap of ours, which the judge is told."""
        self.cut = True
        self.notes.append(text)

    def take_over(self, inside: Reading, address: str) -> None:
        """Say of the whole what was said of the file at `address` inside it."""
        self.notes += [f"{address}: {note}" for note in inside.notes]
        self.errors += [f"{address}!{error}" for error in inside.errors]
        self.cut = self.cut or inside.cut
        self.failed = self.failed or inside.failed

    def write(self, name: str, value: Any) -> None:
        """Keep `value` as JSON beside the units."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")


Units = Callable[[Reading], Iterator[Unit]]
"""A reader. It raises Unreadable for a file that is not what it claims to be; anything else that it raises ends it."""
