"""What the journal asks of its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rubric_env.scoring.judgement import RowVerdict

Pair = tuple[str, str]
"""A scope, and a key in it."""


class Look(NamedTuple):
    """The verdicts that are known, and of the other pairs those that another process, alive, has claimed."""

    known: dict[Pair, RowVerdict]
    held: set[Pair]

    def open(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Those that nobody asks."""
        return [pair for pair in pairs if pair not in self.known and pair not in self.held]


def _underway() -> Future[Any]:
    # A future that runs cannot be cancelled: what was paid for is written even if its rollout is cancelled meanwhile.
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


@dataclass(frozen=True, slots=True)
class Read:
    """What is known of the pairs?"""

    pairs: Sequence[Pair]
    done: Future[Look] = field(default_factory=_underway)


@dataclass(frozen=True, slots=True)
class Take:
    """The same; claim for `seconds` what is neither known nor asked by another process, and watch what another asks."""

    pairs: Sequence[Pair]
    seconds: float
    done: Future[Look] = field(default_factory=_underway)


@dataclass(frozen=True, slots=True)
class Accept:
    """Keep these verdicts."""

    verdicts: Mapping[Pair, RowVerdict]
    done: Future[Look] = field(default_factory=_underway)


@dataclass(frozen=True, slots=True)
class Release:
    """Claim and watch the pairs no more."""

    pairs: Sequence[Pair]
    done: Future[Look] = field(default_factory=_underway)


Job = Read | Take | Accept | Release
