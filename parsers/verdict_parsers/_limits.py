"""How much is read. Whatever exceeds these is no answer of a judge, and every row of it is unjudged."""

from __future__ import annotations

MAX_REPLY_BYTES = 256_000
"""Of a reply, in UTF-8 (SPEC 5: 256 kB)."""
MAX_REPAIR_BYTES = 16_000
"""Of one candidate that json_repair is given, in UTF-8 (SPEC 5: 16 kB)."""
MAX_REPAIRED_BYTES = 2 * MAX_REPAIR_BYTES
"""Of all such candidates of a reply."""
MAX_DEPTH = 40
"""Brackets that are open at a time; answers nest a few levels deep."""
MAX_REGIONS = 4_000
"""Separate candidates."""
MAX_RESCANS = 3
"""Broken containers that reach to the end of the text: what they swallow is read again, for contradictions."""
MAX_TOKENS = 50_000
"""Tokens of JSON that is not JSON by the letter, and fields of any: a row has about twenty."""


class TooMuch(Exception):
    """The reply exceeds a limit; the message says which. Never leaves the package."""


class Budget:
    """Counts down what is left of a limit."""

    def __init__(self, left: int, what: str):
        self._left = left
        self._what = what

    def take(self, amount: int = 1) -> None:
        """Raises TooMuch when nothing is left."""
        self._left -= amount
        if self._left < 0:
            raise TooMuch(self._what)
