"""Verdicts held in memory, within a bound."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping

from rubric_env.engine._journal_jobs import Pair
from rubric_env.scoring.judgement import RowVerdict

HELD_BYTES = 32 * 2**20
"""Estimated: some 40,000 verdicts with 300 characters of reason and evidence. A group in flight needs a thousand."""

OVERHEAD = 250
"""Bytes of a verdict beside its texts: the object, its key of 64 characters, its place in a dict (measured)."""


class Memory:
    """Verdicts by scope and key. Beyond the bound the scope that was unused longest loses the verdict that was unused
    longest, which costs a repeated question and nothing else. Safe in several threads."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[str, RowVerdict]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._scopes.values()))

    def everything(self) -> dict[Pair, RowVerdict]:
        with self._lock:
            return {(scope, key): v for scope, verdicts in self._scopes.items() for key, v in verdicts.items()}

    def read(self, pairs: Iterable[Pair]) -> dict[Pair, RowVerdict]:
        found = {}
        with self._lock:
            for scope, key in pairs:
                if key in self._scopes.get(scope, ()):
                    verdicts = self._used(scope)
                    found[scope, key] = verdicts[key] = verdicts.pop(key)
        return found

    def put(self, verdicts: Mapping[Pair, RowVerdict]) -> None:
        with self._lock:
            for (scope, key), verdict in verdicts.items():
                held = self._used(scope)
                if key in held:
                    self._bytes -= _bytes(held.pop(key))
                held[key] = verdict
                self._bytes += _bytes(verdict)
            while self._bytes > HELD_BYTES:
                self._drop_oldest()

    def forget(self, scope: str) -> None:
        with self._lock:
            self._bytes -= sum(map(_bytes, self._scopes.pop(scope, {}).values()))

    def _used(self, scope: str) -> dict[str, RowVerdict]:
        """The scope's verdicts; it is now the last one to lose any."""
        verdicts = self._scopes[scope] = self._scopes.pop(scope, {})
        return verdicts

    def _drop_oldest(self) -> None:
        scope, verdicts = next(iter(self._scopes.items()))
        self._bytes -= _bytes(verdicts.pop(next(iter(verdicts))))
        if not verdicts:
            del self._scopes[scope]


def _bytes(verdict: RowVerdict) -> int:
    return OVERHEAD + sys.getsizeof(verdict.reason) + sys.getsizeof(verdict.evidence)
