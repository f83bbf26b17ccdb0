"""What is wrong with a call, collected so that the policy hears all of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

SHOWN = 20
"""Problems of one call that are named."""


class Refused(Exception):
    """The call cannot be done; the message is for the policy."""


class Problems:
    """Problems of one call, each with where it is: `edit 2`, `slide 4`."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, where: str, what: str) -> None:
        self._found.append(f"{where}: {what}" if where else what)

    @contextmanager
    def of(self, where: str) -> Iterator[None]:
        """What is refused inside is one of the problems, and the work goes on."""
        try:
            yield
        except Refused as refused:
            self.add(where, str(refused))

    def raise_any(self) -> None:
        """Raises Refused with all of them."""
        if self._found:
            more = [f"and {len(self._found) - SHOWN} more problems"] if len(self._found) > SHOWN else []
            raise Refused("\n".join(["nothing was written:", *self._found[:SHOWN], *more]))
