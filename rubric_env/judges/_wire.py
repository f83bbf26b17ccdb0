"""One HTTP call through the openai client: bounded in bytes, with its headers, without retries of its own.

The only module that imports openai; it is imported when a judge is made, not before.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx
import openai

from rubric_env._loops import PerLoop
from rubric_env.judges.classify import Problem, classify_exception
from rubric_env.judges.credentials import VENDOR_SOURCE, Credentials
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.settings import SettingsError

MAX_BODY = 8 * 2**20
"""Bytes of one reply: far above the 256 kB that a parser reads, thinking and escapes included."""

CONNECT_SECONDS = 15.0
"""To connect."""

_UNBOUNDED = httpx.Timeout(None, connect=CONNECT_SECONDS)
"""The client's own clock runs between two bytes: the caller's, over the whole call, is the one that counts."""


class BodyRefused(Exception):
    """The reply's body is too large, or packed in a way that was not asked for."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply. `headers` have lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """Posts to `/chat/completions` of one endpoint; one client with its connections per running event loop.

    Raises SettingsError when no client can be made, so that it shows before anything is paid.
    """

    def __init__(self, credentials: Credentials, connections: int, timeout: float) -> None:
        self._credentials = credentials
        self._connections = connections
        self._timeout = timeout
        self._clients = PerLoop(self._new_client)
        try:
            self._new_client()
        except Exception as error:
            # It reads proxies and certificates from the environment, and raises what those happen to raise.
            where = f"{credentials.base_url} cannot be reached from this environment"
            raise SettingsError(f"{where}: {error} (HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE?)") from error

    async def post(self, key: str, body: Mapping[str, Any]) -> HttpReply | Problem:
        """A Problem when no whole reply came."""
        try:
            response = await self.client().post(
                "/chat/completions",
                cast_to=httpx.Response,
                body=body,
                options={"headers": {"Authorization": f"Bearer {key}"}, "timeout": _UNBOUNDED},
            )
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, BodyRefused):
                return Problem(Fault(FaultKind.SERVER, str(error.__cause__)))
            return classify_exception(error, [key])
        return HttpReply(response.status_code, response.headers, response.content)

    async def aclose(self) -> None:
        """Close the connections of this loop; other loops may be in the middle of a call. May be called again."""
        if client := self._clients.take():
            await client.close()

    def client(self) -> openai.AsyncOpenAI:
        """The client of the running loop."""
        return self._clients.here()

    def _new_client(self) -> openai.AsyncOpenAI:
        base_url = self._credentials.base_url
        http = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=self._connections, max_keepalive_connections=self._connections),
            # A redirect would turn the question into a GET, or carry it to another host.
            follow_redirects=False,
            # A proxy of the environment cannot reach this machine's own loopback.
            trust_env=not _is_loopback(base_url),
            event_hooks={"response": [_bound]},
        )
        client = openai.AsyncOpenAI(
            api_key=self._credentials.key,
            base_url=base_url,
            max_retries=0,
            timeout=httpx.Timeout(self._timeout, connect=CONNECT_SECONDS),
            http_client=http,
            default_headers={"Accept-Encoding": "identity"},
        )
        if self._credentials.source != VENDOR_SOURCE:
            # The client reads these from OPENAI_* variables: another source's key must not travel with them.
            client.organization = client.project = None
        return client


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _bound(response: httpx.Response) -> None:
    """Count the bytes as they come, unpacked ones too, so that no body fills the memory."""
    packing = response.headers.pop("content-encoding", "identity").lower()
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _BoundedStream(response.stream, packing)


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, packing: str) -> None:
        self._stream = stream
        self._packing = packing

    async def __aiter__(self) -> AsyncIterator[bytes]:
        unpack = None
        if self._packing in ("gzip", "x-gzip", "deflate"):
            unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
        elif self._packing not in ("identity", ""):
            raise BodyRefused(f"the reply is packed as {self._packing}, which was not asked for")
        size = 0
        async for chunk in self._stream:
            try:
                data = unpack.decompress(chunk, MAX_BODY + 1) if unpack else chunk
            except zlib.error as error:
                raise BodyRefused(f"the reply is no {self._packing}: {error}") from None
            size += len(data)
            if size > MAX_BODY:
                raise BodyRefused(f"the reply is larger than {MAX_BODY // 2**20} MB")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
