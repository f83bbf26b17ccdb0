"""JSON as it is sent: compact, in UTF-8, and the long text that a rollout's calls share encoded once."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any

SHARED_BYTES = 2 * 2**20
"""What is kept of shared texts, all judges of the process together."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def to_json(value: Any) -> bytes:
    """Half a surrogate pair, as a cut JSON text decodes to, becomes a question mark: UTF-8 cannot carry it."""
    return _encode(value).encode("utf-8", "replace")


class SharedTexts:
    """Texts as JSON strings, at most `limit` bytes of them; those that were asked for long ago go first.

    Safe in several threads. A text is found by its hash, which Python computes once per string object.
    """

    def __init__(self, limit: int = SHARED_BYTES) -> None:
        self._limit = limit
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> bytes:
        with self._lock:
            if (encoded := self._known.get(text)) is not None:
                self._known.move_to_end(text)
                return encoded
        encoded = to_json(text)
        with self._lock:
            if text not in self._known and _held(text, encoded) <= self._limit:
                self._known[text] = encoded
                self._size += _held(text, encoded)
            while self._size > self._limit:
                self._size -= _held(*self._known.popitem(last=False))
        return encoded


def _held(text: str, encoded: bytes) -> int:
    """Bytes, roughly: the text is kept as the key."""
    return len(text) + len(encoded)


shared_json = SharedTexts()
"""The one of this process."""
