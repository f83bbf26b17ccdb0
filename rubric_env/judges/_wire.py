"""HTTP to one endpoint: bounded in bytes, without redirects or retries of its own. The caller bounds the time.

Imports aiohttp, so it is itself imported when a judge is made, not before.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any, Protocol

import aiohttp

from rubric_env._loops import PerLoop
from rubric_env.judges._route import Route
from rubric_env.judges.classify import Problem, classify_exception
from rubric_env.judges.credentials import VENDOR_SOURCE, Credentials
from rubric_env.scoring.faults import Fault, FaultKind

MAX_BODY = 8 * 2**20
"""Bytes of one reply: far above the 256 kB that a parser reads, thinking and escapes included."""

CONNECT_SECONDS = 15.0
"""To connect, TLS included."""

IDLE_SECONDS = 30.0
"""For which a connection that nobody uses is kept."""

HEADER_BYTES = 2**16

_AT_ONCE = 2**20
"""Bytes of a question that are written in one go."""

_ERRORS = (aiohttp.ClientError, OSError, ValueError)
"""What aiohttp raises, and the operating system and names of hosts through it."""

_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


class NoReply(Exception):
    """No whole reply came. `broke`: there was a connection, and it ended too early."""

    def __init__(self, problem: Problem, *, broke: bool = False) -> None:
        super().__init__(str(problem.fault))
        self.problem = problem
        self.broke = broke


def refused(reason: str) -> NoReply:
    """A body that is too large, or packed in a way that was not asked for."""
    return NoReply(Problem(Fault(FaultKind.SERVER, reason)))


class Wire:
    """Posts to one endpoint; one session with its connections per running event loop."""

    def __init__(self, credentials: Credentials, route: Route, connections: int) -> None:
        self._base_url = credentials.base_url
        self._route = route
        self._connections = connections
        self._headers = {
            "User-Agent": "rubric-env",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            **(_vendor_headers() if credentials.source == VENDOR_SOURCE else {}),
        }
        self._sessions = PerLoop(self._session)

    @asynccontextmanager
    async def post(self, path: str, key: str, body: bytes) -> AsyncIterator[Incoming]:
        """A reply whose head has come; read to its end, it leaves its connection for the next. Raises NoReply."""
        session = await anext(self._sessions.here())
        data: Any = body if len(body) <= _AT_ONCE else BytesIO(body)
        headers = self._headers | {"Authorization": f"Bearer {key}"}
        try:
            response = await session.post(self._base_url + path, data=data, headers=headers, allow_redirects=False)
        except _ERRORS as error:
            raise _no_reply(error, key) from error
        try:
            yield Incoming(response, key)
        finally:
            response.close()

    async def aclose(self) -> None:
        """Close the connections of this loop; other loops may be in the middle of a call. May be called again."""
        if session := self._sessions.take():
            await session.aclose()

    async def _session(self) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Gives the same session for ever. A generator, because a loop that ends closes those that it still has."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        connector = aiohttp.TCPConnector(
            limit=self._connections, ssl=self._route.trust or True, keepalive_timeout=IDLE_SECONDS
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            proxy=self._route.proxy,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
        ) as session:
            while True:
                yield session


class Incoming:
    """A reply on its way. `headers` are found whatever their case."""

    def __init__(self, response: aiohttp.ClientResponse, key: str) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._content = response.content
        self._key = key
        self._packing = self.headers.get("content-encoding", "").lower()
        self._unpack = _unpacker(self._packing)

    async def chunk(self) -> bytes:
        """The next bytes, unpacked; none at the end. Raises NoReply."""
        while True:
            try:
                data = await self._content.readany()
            except _ERRORS as error:
                raise _no_reply(error, self._key) from error
            if not data or self._unpack is None:
                return data
            try:
                data = self._unpack.decompress(data, MAX_BODY + 1)
            except zlib.error as error:
                raise refused(f"the reply is no {self._packing}: {error}") from None
            if len(data) > MAX_BODY:
                raise too_large()
            if data:
                return data

    async def rest(self, start: bytes) -> bytes:
        """Everything, of which `start` was read already. Raises NoReply."""
        parts, size = [start], len(start)
        while data := await self.chunk():
            parts.append(data)
            size += len(data)
            if size > MAX_BODY:
                raise too_large()
        return b"".join(parts)


def _no_reply(error: Exception, key: str) -> NoReply:
    if isinstance(error, aiohttp.ClientResponseError) and not isinstance(error, aiohttp.ClientHttpProxyError):
        return refused(f"the reply is no valid HTTP: {error.message.partition(chr(10))[0]}")
    return NoReply(classify_exception(error, [key]), broke=not isinstance(error, _NOT_CONNECTED))


def too_large() -> NoReply:
    return refused(f"the reply is larger than {MAX_BODY // 2**20} MB")


class _Unpacker(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _unpacker(packing: str) -> _Unpacker | None:
    if packing in ("", "identity"):
        return None
    if packing in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(zlib.MAX_WBITS | 32)
    raise refused(f"the reply is packed as {packing}, which was not asked for")


def _vendor_headers() -> dict[str, str]:
    """What the vendor's own client reads from its variables."""
    names = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    return {header: value for header, name in names.items() if (value := os.environ.get(name))}
