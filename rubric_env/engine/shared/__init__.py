"""Limits and breaker that processes and machines share through a Redis (`JUDGE_LIMITER`); docs/engine.md."""

from __future__ import annotations

from dataclasses import dataclass

from rubric_env.engine.pace import Limits
from rubric_env.engine.shared._link import LinkDown, Links, reach
from rubric_env.engine.shared.breaker import SharedBreaker
from rubric_env.engine.shared.throttle import RedisThrottle
from rubric_env.settings import JudgeSettings

__all__ = ["LinkDown", "RedisThrottle", "Shared", "SharedBreaker", "open_shared", "reach"]


@dataclass(frozen=True, slots=True)
class Shared:
    """What a process has of the fleet's limits and breaker. Serves any number of loops."""

    throttle: RedisThrottle
    breaker: SharedBreaker
    links: Links

    async def aclose(self) -> None:
        """Report what this loop still has to say, and hang up, unless rollouts of another engine are judged in it.

        May be called again, in any loop.
        """
        if await self.breaker.aclose():
            await self.links.aclose()


def open_shared(url: str, settings: JudgeSettings, *, scope: str = "") -> Shared:
    """Share through the Redis at `url`; nothing is sent before the first call.

    The throttle is shared by quota, the breaker by `scope`: a text that is the same for whoever asks the same endpoint
    with the same credentials. Raises SettingsError for a URL that is none, and where redis-py is missing. A Redis that
    cannot be reached is a warning, and each process goes on alone until it is there.
    """
    links = Links(url)
    limits = Limits(settings.requests_per_minute, settings.tokens_per_minute)
    return Shared(
        RedisThrottle(links, limits, settings.per_timeout),
        SharedBreaker(links, scope or settings.model, settings.max_consecutive_failures),
        links,
    )
