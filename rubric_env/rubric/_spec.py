"""A rubric.json, read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rubric_env.rubric._criterion import Criterion
from rubric_env.rubric._rows import read_rows
from rubric_env.rubric._source import RubricError, read_source, warn_of


@dataclass(frozen=True, slots=True)
class RubricSpec:
    """The rows of a rubric, in their order, with unique ids. `source` names where they came from. Made by `parse`."""

    rows: tuple[Criterion, ...]
    source: str = "rubric"
    _by_id: Mapping[str, Criterion] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {row.id: row for row in self.rows})

    @classmethod
    def parse(cls, obj_or_path: Self | Sequence[Any] | Mapping[str, Any] | str | Path) -> Self:
        """Read rows, an object that holds them, JSON text, or a file (a str is JSON text when it starts with [ or {).

        A spec is returned as it is. Raises RubricError, which lists every bad row at once. Warns of a file that is not
        UTF-8.
        """
        if isinstance(obj_or_path, cls):
            return obj_or_path
        source = read_source(obj_or_path)
        warn_of(source)
        criteria, problems = read_rows(source.rows)
        if problems:
            raise RubricError(source.name, problems)
        return cls(tuple(criteria), source.name)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._by_id)

    def __getitem__(self, identity: str) -> Criterion:
        return self._by_id[identity]

    def __contains__(self, identity: object) -> bool:
        return identity in self._by_id

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Criterion]:
        return iter(self.rows)
