"""A judge endpoint that costs next to nothing: raw asyncio, in its own process, each answer after a fixed latency."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ROW = re.compile(rb'\{\\"id\\": \\"([^"\\]+)\\"')
_REASON = "The delivered report states this in its second section, with the figure that the row asks for."
_EVIDENCE = "output/report.md#¶3"


@contextmanager
def endpoint(latency: float) -> Iterator[tuple[str, Connection]]:
    """Serve while the block runs: the base URL, and a pipe that answers any message with the figures since the last."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(latency, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1", here
    finally:
        process.terminate()
        process.join()


def _serve(latency: float, pipe: Connection) -> None:
    asyncio.run(_main(latency, pipe))


async def _main(latency: float, pipe: Connection) -> None:
    loop = asyncio.get_running_loop()
    figures = _Figures(latency)
    server = await loop.create_server(lambda: _Connection(latency, figures), "127.0.0.1", 0, backlog=1024)

    def report() -> None:
        pipe.recv()
        pipe.send(figures.take())

    loop.add_reader(pipe.fileno(), report)
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


class _Figures:
    def __init__(self, latency: float) -> None:
        self._latency = latency
        self.reset()

    def reset(self) -> None:
        self.arrivals: list[float] = []
        self.in_flight = self.most = self.connections = 0
        self.cpu = time.process_time()

    def came(self) -> None:
        self.arrivals.append(time.monotonic())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)

    def take(self) -> dict[str, float]:
        """`busy` is the mean number of calls in flight from the first call to the moment when the last one came."""
        first, last = self.arrivals[0], self.arrivals[-1]
        busy = sum(min(self._latency, last - came) for came in self.arrivals) / (last - first)
        taken = {
            "calls": len(self.arrivals),
            "busy": busy,
            "max_in_flight": self.most,
            "connections": self.connections,
            "endpoint_cpu_s": time.process_time() - self.cpu,
        }
        self.reset()
        return taken


class _Connection(asyncio.Protocol):
    def __init__(self, latency: float, figures: _Figures) -> None:
        self._latency = latency
        self._figures = figures
        self._parts: list[bytes] = []
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._figures.connections += 1

    def data_received(self, data: bytes) -> None:
        if not self._parts:
            head, _, body = data.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            self._missing = int(length.group(1)) if length else 0
            data = body
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing <= 0:
            body = b"".join(self._parts)
            self._parts = []
            self._figures.came()
            asyncio.get_running_loop().call_later(self._latency, self._answer, body)

    def _answer(self, body: bytes) -> None:
        self._figures.in_flight -= 1
        if not self._transport.is_closing():
            self._transport.write(_reply(body))


def _reply(body: bytes) -> bytes:
    rows = body.rpartition(b"# Rows")[2] if b"# Rows" in body else b""
    ids = [match.decode() for match in _ROW.findall(rows)]
    verdicts = [{"id": row, "reason": _REASON, "evidence": _EVIDENCE, "hit": True} for row in ids]
    message = {"role": "assistant", "content": json.dumps({"verdicts": verdicts}, ensure_ascii=False) if ids else "yes"}
    completion = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "bench",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": len(body) // 4, "completion_tokens": 100, "total_tokens": len(body) // 4 + 100},
    }
    text = json.dumps(completion, ensure_ascii=False).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
    return head.encode() + text
