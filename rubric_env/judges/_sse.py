"""Server-sent events, decoded as their bytes come, wherever these are cut."""

from __future__ import annotations

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_STARTS = (b"data:", b"event:", b":", b"id:", b"retry:")

SNIFF = 8
"""Bytes that tell a stream from another body."""


def is_stream(head: bytes) -> bool:
    """Does a body that starts like this hold events? The content type is not asked: gateways get it wrong."""
    return head.removeprefix(_BOM).lstrip().startswith(_STARTS)


@dataclass(frozen=True, slots=True)
class Event:
    """`name` is empty unless the event has one; lines of `data` are joined by line feeds."""

    name: str
    data: bytes


class EventDecoder:
    """Feed it bytes; it gives the events that are whole. Comments, ids and events without data are left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []
        self._held = 0
        self._started = False

    @property
    def pending(self) -> int:
        """Bytes held of an event that is not whole."""
        return self._held + len(self._rest)

    def feed(self, chunk: bytes) -> list[Event]:
        text = self._rest + chunk
        if not self._started and len(text) >= len(_BOM):
            self._started, text = True, text.removeprefix(_BOM)
        # A carriage return at the very end may be half of a line break.
        held, text = (b"\r", text[:-1]) if text.endswith(b"\r") else (b"", text)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._rest = rest + held
        return [event for line in lines if (event := self._line(line))]

    def end(self) -> list[Event]:
        """The last event, where its blank line never came."""
        lines, self._rest = (self._rest.rstrip(b"\r"), b""), b""
        return [event for line in lines if (event := self._line(line))]

    def _line(self, line: bytes) -> Event | None:
        if not line:
            event = Event(self._name, b"\n".join(self._data)) if self._data else None
            self._name, self._data, self._held = "", [], 0
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
            self._held += len(value)
        elif field == b"event":
            self._name = value.decode("latin-1")
        return None
