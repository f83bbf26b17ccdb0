"""How long an endpoint asks its caller to wait: from its headers, else from the words of its error."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_SECONDS = {
    "ms": 0.001,
    "milli": 0.001,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "毫秒": 0.001,
    "秒": 1.0,
    "分": 60.0,
}
_NUMBER = r"(?<![\d.])\d{1,12}(?:\.\d{1,12})?"
"""Bounded, so that a text of nothing but digits is read once and not from each of them anew."""
_PART = re.compile(rf"({_NUMBER})\s*(ms|milli|[smhd])[a-z]*", re.IGNORECASE)
_SPAN = rf"((?:{_NUMBER}\s*[a-z]+\s*){{1,3}})"
_WORDS = (
    re.compile(rf"\b(?:try again|retry|wait|reset\w*)\s+(?:\w+\s+)?(?:in|after|for)\s+{_SPAN}", re.IGNORECASE),
    re.compile(rf"\bwait\s+{_SPAN}", re.IGNORECASE),
    re.compile(rf"\bretry[-_ ]?(?:delay|after)\W{{1,5}}{_SPAN}", re.IGNORECASE),
)
_CHINESE = re.compile(rf"({_NUMBER})\s*(毫秒|秒|分)钟?[之以]?后")
_RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")


def retry_after(headers: Mapping[str, str], text: str = "") -> float | None:
    """Seconds, or None when the endpoint names no wait. `headers` have lower-case names."""
    named = _from_headers(headers)
    return _from_text(text) if named is None else named


def _from_headers(headers: Mapping[str, str]) -> float | None:
    milliseconds = number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    if value := headers.get("retry-after", ""):
        seconds = number(value)
        return _until(value, headers.get("date")) if seconds is None else seconds
    spent = (name for name in _RESETS if headers.get(name.replace("reset", "remaining")) == "0")
    waits = (duration(headers.get(name, "")) for name in spent)
    return max((wait for wait in waits if wait is not None), default=None)


def _from_text(text: str) -> float | None:
    for pattern in _WORDS:
        if found := pattern.search(text):
            return duration(found.group(1))
    if chinese := _CHINESE.search(text):
        return float(chinese.group(1)) * _SECONDS[chinese.group(2)]
    return None


def duration(text: str) -> float | None:
    """`6m0s`, `20ms`, `1.2 seconds`."""
    parts = [float(amount) * _SECONDS[unit.lower()] for amount, unit in _PART.findall(text)]
    return sum(parts) if parts else None


def _until(date: str, now: str | None) -> float | None:
    """Seconds to an HTTP date, by the endpoint's own clock where it sent one."""
    try:
        start = parsedate_to_datetime(now).timestamp() if now else time.time()
        return max(0.0, parsedate_to_datetime(date).timestamp() - start)
    except ValueError:
        return None


def number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
