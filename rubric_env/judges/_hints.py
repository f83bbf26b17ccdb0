"""What an endpoint's headers say of its limits (`RateHints`)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rubric_env.judges._retry_after import duration, number
from rubric_env.judges.protocol import RateHints

MINUTE = 60.0

_EPOCH = 1e9
"""A reset above this is a moment, in seconds since 1970, or a thousand times as much in milliseconds."""

_CROWDED = re.compile(
    r"concurren|in[- ]flight|simultaneous|parallel|too many (?:open|active|outstanding|pending) (?:request|connection)"
    r"|并发|同时",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r";\s*([a-z]+)=\"?(\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class _Budget:
    per_minute: float | None = None
    left: float | None = None
    reset: float | None = None


def rate_hints(headers: Mapping[str, str]) -> RateHints | None:
    """None when the headers name no limit. `headers` are found by their lower-case names."""
    requests = _first(
        _openai(headers, "requests"), _anthropic(headers, "requests"), _bare(headers, "x-ratelimit"), _draft(headers)
    )
    tokens = _first(_openai(headers, "tokens"), _anthropic(headers, "input-tokens"), _anthropic(headers, "tokens"))
    if requests is tokens is None:
        return None
    requests, tokens = requests or _Budget(), tokens or _Budget()
    return RateHints(requests.per_minute, requests.left, requests.reset, tokens.per_minute, tokens.left, tokens.reset)


def is_crowded(words: str) -> bool:
    """Do the words of a rate limit speak of calls in flight, not of calls a minute?"""
    return _CROWDED.search(words) is not None


def _first(*budgets: _Budget | None) -> _Budget | None:
    return next((budget for budget in budgets if budget), None)


def _openai(headers: Mapping[str, str], what: str) -> _Budget | None:
    return _budget(
        headers.get(f"x-ratelimit-limit-{what}"),
        headers.get(f"x-ratelimit-remaining-{what}"),
        headers.get(f"x-ratelimit-reset-{what}"),
    )


def _anthropic(headers: Mapping[str, str], what: str) -> _Budget | None:
    prefix = f"anthropic-ratelimit-{what}"
    return _budget(headers.get(f"{prefix}-limit"), headers.get(f"{prefix}-remaining"), headers.get(f"{prefix}-reset"))


def _bare(headers: Mapping[str, str], prefix: str, window: float = MINUTE) -> _Budget | None:
    return _budget(
        headers.get(f"{prefix}-limit"), headers.get(f"{prefix}-remaining"), headers.get(f"{prefix}-reset"), window
    )


def _draft(headers: Mapping[str, str]) -> _Budget | None:
    """`RateLimit: "default";r=50;t=30` with `RateLimit-Policy: "default";q=100;w=60`, and the older three headers."""
    policy = dict(_PARAMETER.findall(headers.get("ratelimit-policy", "").split(",")[0]))
    window = float(policy.get("w", MINUTE))
    if now := dict(_PARAMETER.findall(headers.get("ratelimit", "").split(",")[0])):
        return _budget(policy.get("q"), now.get("r"), now.get("t"), window)
    return _bare(headers, "ratelimit", window)


def _budget(limit: str | None, left: str | None, reset: str | None, window: float = MINUTE) -> _Budget | None:
    """A limit counts as one a minute only where nothing tells of a longer window: some endpoints send a day's."""
    if limit is None and left is None:
        return None
    seconds = None if reset is None else _seconds(reset)
    most = None if limit is None else number(limit.split(",")[0])
    short = window <= MINUTE and (seconds is None or seconds <= MINUTE)
    per_minute = most * MINUTE / window if most and short and window > 0 else None
    return _Budget(per_minute, None if left is None else number(left), seconds)


def _seconds(reset: str) -> float | None:
    """`6m0s`, `0.5`, a moment of RFC 3339, or one since 1970."""
    value = number(reset)
    if value is None:
        return duration(reset) if "T" not in reset else _until(reset)
    if value > _EPOCH * 1000:
        value /= 1000
    return max(0.0, value - time.time()) if value > _EPOCH else value


def _until(moment: str) -> float | None:
    try:
        return max(0.0, datetime.fromisoformat(moment).timestamp() - time.time())
    except ValueError:
        return None
