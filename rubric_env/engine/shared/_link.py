"""The way to Redis: one connection a loop, on which the requests of a moment travel together, and its loss."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rubric_env._loops import PerLoop
from rubric_env.settings import SettingsError

if TYPE_CHECKING:
    from redis.asyncio import Redis

TIMEOUT = 3.0
"""Seconds for a connection, and for an answer."""
RETRY = 3.0
"""Seconds between attempts to come back."""
BACKLOG = 10_000
"""Messages that wait for Redis to come back, the latest."""

logger = logging.getLogger(__name__)

Command = tuple[str | float, ...]
Request = tuple[Command, asyncio.Future[Any] | None]


class LinkDown(Exception):
    """Redis is out of reach, or answers with an error: do without it."""


class Links:
    """A process's connections to one Redis. Raises SettingsError for a URL that is none, and without redis-py."""

    def __init__(self, url: str) -> None:
        self.down = False
        """Redis failed, and is not back."""
        self._retry_at = 0.0
        connect, self.failures = _redis(url)
        self._name = _name(url)
        self._links = PerLoop(lambda: Link(self, connect()))

    def here(self) -> Link:
        """The running loop's."""
        return self._links.here()

    async def aclose(self) -> None:
        """Send what is still to be sent from this loop, and hang up."""
        if (link := self._links.take()) is not None:
            await link.aclose()

    def lost(self, error: Exception) -> None:
        self._retry_at = time.monotonic() + RETRY
        if not self.down:
            self.down = True
            why = f"{type(error).__name__}: {error}"
            logger.warning(
                "%s failed (%s): limits and breaker are this process's own until it is back", self._name, why
            )

    def back(self) -> None:
        if self.down:
            self.down = False
            logger.warning("%s is back: limits and breaker are shared again", self._name)

    def try_again(self) -> bool:
        """Whether it is time for an attempt, which is then the caller's."""
        now = time.monotonic()
        if now < self._retry_at:
            return False
        self._retry_at = now + RETRY + TIMEOUT
        return True


class Link:
    """One loop's connection."""

    def __init__(self, links: Links, client: Redis) -> None:
        self._links = links
        self._client = client
        self._queue: list[Request] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def down(self) -> bool:
        """Whether to do without Redis. Who asks keeps the attempts to come back going."""
        if self._links.down:
            self._run()
        return self._links.down or self._closed

    async def ask(self, *command: str | float) -> Any:
        """Redis's answer. Raises LinkDown."""
        if self.down:
            raise LinkDown
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append((command, answer))
        self._run()
        return await answer

    def tell(self, *command: str | float) -> None:
        """Send something whose answer nobody needs: after what was asked before, once Redis is there, perhaps twice."""
        if self._closed:
            return
        self._queue.append((command, None))
        if self.down:
            del self._queue[:-BACKLOG]
        self._run()

    async def aclose(self) -> None:
        self._closed = True
        if self._task is not None:
            if self._links.down:
                self._task.cancel()
            await asyncio.wait([self._task])
        await self._client.aclose()

    def _run(self) -> None:
        if self._closed or (self._task is not None and not self._task.done()):
            return
        if not self._links.down:
            self._task = asyncio.get_running_loop().create_task(self._send())
        elif self._links.try_again():
            self._task = asyncio.get_running_loop().create_task(self._come_back())

    async def _send(self) -> None:
        while batch := self._queue:
            self._queue = []
            try:
                answers = await self._exchange([command for command, _ in batch])
            except asyncio.CancelledError:
                self._fail(batch)
                raise
            except self._links.failures as error:
                self._fail(batch)
                self._links.lost(error)
                return
            for (_, answer), value in zip(batch, answers, strict=True):
                if answer is not None and not answer.done():
                    answer.set_result(value)

    def _fail(self, batch: list[Request]) -> None:
        """Who asked does without an answer; what was told is kept for later."""
        unsent = batch + self._queue
        self._queue = [(command, None) for command, answer in unsent if answer is None]
        for _, answer in unsent:
            if answer is not None and not answer.done():
                answer.set_exception(LinkDown())

    async def _exchange(self, commands: list[Command]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = await pipe.execute()
            return answers

    async def _come_back(self) -> None:
        try:
            await self._client.ping()
        except self._links.failures as error:
            self._links.lost(error)
        else:
            self._links.back()
            await self._send()


async def reach(url: str) -> str:
    """The Redis at `url`, for people. Raises LinkDown, which says why, when it does not do what sharing needs."""
    connect, failures = _redis(url)
    client = connect()
    try:
        await client.execute_command("EVAL", "return redis.call('TIME')", 0)  # type: ignore[no-untyped-call]
    except failures as error:
        raise LinkDown(f"{_name(url)}: {type(error).__name__}: {error}") from None
    finally:
        await client.aclose()
    return _name(url)


def _name(url: str) -> str:
    """The server, for people: a URL may hold a password."""
    parts = urlsplit(url)
    return f"Redis at {parts.netloc.rpartition('@')[2]}{parts.path}"


def _redis(url: str) -> tuple[Callable[[], Redis], tuple[type[Exception], ...]]:
    """What makes a client, and what it raises when Redis fails."""
    try:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import ConnectionError, RedisError
    except ImportError:
        raise SettingsError("limiter: a Redis needs redis-py: pip install 'rubric-env[redis]'") from None

    def connect() -> Redis:
        return Redis.from_url(
            url,
            decode_responses=True,
            protocol=2,
            socket_timeout=TIMEOUT,
            socket_connect_timeout=TIMEOUT,
            # A connection that was idle for long may be gone without Redis being so.
            retry=Retry(NoBackoff(), 1, supported_errors=(ConnectionError,)),
        )

    try:
        connect().connection_pool.make_connection()  # type: ignore[no-untyped-call]
    except (ValueError, TypeError, RedisError):  # the message may quote the password
        raise SettingsError("limiter: not a Redis URL (redis://HOST:6379/0, rediss://… or unix://…)") from None
    return connect, (RedisError, OSError)
