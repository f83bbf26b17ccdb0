"""How the bytes of a scripted reply travel: whole, as a stream, or in any of the ways in which they do not arrive."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tests.servers.formats import encoded, error_event, thinking_event
from tests.servers.scenarios import Scenario

FOR_EVER = 3600.0


class Transfer:
    """One reply over one socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, scenario: Scenario) -> None:
        self._reader = reader
        self._writer = writer
        self._scenario = scenario
        self.abandoned = False
        """The caller left before the end."""

    async def whole(self, body: bytes) -> bool:
        """An answer that comes whole. False when the connection is finished."""
        scenario, writer = self._scenario, self._writer
        match scenario.wire:
            case "whole":
                await write(writer, scenario.status, scenario.headers, body)
                return True
            case "trickle":
                await self._write(_head(scenario.status, scenario.headers, len(body)))
                await self._trickle(body, self._write)
            case "half":
                await self._write(_head(scenario.status, scenario.headers, len(body)) + body[: len(body) // 2])
            case "too_long":
                await self._write(_head(scenario.status, scenario.headers, len(body) + 64) + body)
                await self._wait(FOR_EVER)
            case "too_short":
                await self._write(_head(scenario.status, scenario.headers, len(body) - 16) + body)
            case "endless":
                await self._write(_start(200, {"content-type": "application/json", "transfer-encoding": "chunked"}))
                while not writer.is_closing():
                    await self._send(b" " * 0x10000)
            case "hang" | "stall" | "thinking" | "keep_alive" | "error_midway":
                await self._wait(FOR_EVER)
            case "drop" | "reset":
                self._break_off()
        return False

    async def stream(self, events: Sequence[bytes], path: str) -> bool:
        """The same for an answer that comes in events."""
        scenario = self._scenario
        before = events[: int(len(events) * scenario.share)]
        if scenario.wire in ("hang", "drop", "reset"):
            return await self.whole(b"")
        fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **scenario.headers}
        await self._write(_start(200, fields))
        match scenario.wire:
            case "trickle":
                await self._trickle(b"".join(events), self._send)
            case "half":
                body = b"".join(events)
                await self._send(body[: len(body) // 2])
            case "stall":
                await self._send(*before)
                await self._wait(FOR_EVER)
            case "thinking":
                await self._repeat(encoded(thinking_event(path)))
            case "keep_alive":
                await self._repeat(b": keep-alive\n\n")
            case "error_midway":
                await self._send(*before, encoded(error_event(path, scenario.in_stream)), b"")
                return True
            case _:
                await self._send(*events, b"")
                return True
        return False

    async def _wait(self, seconds: float) -> bool:
        self.abandoned |= await left_within(self._reader, seconds)
        return self.abandoned

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def _send(self, *parts: bytes) -> None:
        """Chunks of a body; an empty one ends it."""
        for part in parts:
            step = self._scenario.write or len(part) or 1
            for n in range(0, len(part) or 1, step):
                piece = part[n : n + step]
                await self._write(b"%x\r\n%b\r\n" % (len(piece), piece))

    async def _trickle(self, body: bytes, send: Callable[[bytes], Awaitable[None]]) -> None:
        for n in range(len(body)):
            await send(body[n : n + 1])
            if await self._wait(self._scenario.pace):
                return

    async def _repeat(self, part: bytes) -> None:
        await self._send(part)
        while not await self._wait(self._scenario.pace):
            await self._send(part)

    def _break_off(self) -> None:
        """`drop` closes in peace, `reset` does not."""
        if self._scenario.wire == "reset":
            linger = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._writer.transport.abort()


async def write(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """A whole HTTP reply."""
    writer.write(_head(status, headers, len(body)) + body)
    await writer.drain()


async def left_within(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Wait; True as soon as the caller closes its side. Callers do not pipeline, so any byte read is an end of file."""
    if not seconds:
        return False
    try:
        async with asyncio.timeout(seconds):
            await reader.read(1)
    except TimeoutError:
        return False
    return True


def _head(status: int, headers: Mapping[str, str], length: int) -> bytes:
    return _start(status, {"content-type": "application/json", "content-length": str(length), **headers})


def _start(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode("latin-1")
