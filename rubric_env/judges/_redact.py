"""Text of an endpoint made fit for a log: one line, no secret."""

from __future__ import annotations

import re
from collections.abc import Iterable

LINE = 300
"""Characters of a detail."""

LONG = 12
"""A shorter secret, such as the word given to a local server, is one only where it stands alone."""

_SHAPES = (
    (re.compile(r"(?i)\b(bearer|basic)(\s+|%20|\+)[\w\-.~+/=*]{4,}"), r"\1 [redacted]"),
    (
        re.compile(
            r"(?i)\b((?:api|access|secret)[-_ ]?key|token|password|authorization)(\"?\s*[:=]\s*\"?)[\w\-.~+/=*]{6,}"
        ),
        r"\1\2[redacted]",
    ),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|key)-[\w\-*.]{4,}"), "[redacted]"),
    (re.compile(r"\bAIza[\w\-]{10,}|\beyJ[\w\-]{5,}(?:\.[\w\-]+){0,2}"), "[redacted]"),
    (re.compile(r"(?<=://)[^/\s@]+@"), "[redacted]@"),
)
"""Header values, `name=value` pairs, vendors' key prefixes, JSON web tokens, user names in URLs."""


def hide(text: str, secrets: Iterable[str]) -> str:
    """An answer without `secrets`; short ones, such as the word given to a local server, may be words of its own."""
    for secret in secrets:
        if len(secret) >= LONG:
            text = text.replace(secret, "[redacted]")
    return text


def redact(text: str, secrets: Iterable[str] = (), limit: int = LINE) -> str:
    """One line of at most `limit` characters, without `secrets` and without anything that looks like one."""
    for secret in secrets:
        exact = re.escape(secret)
        text = re.sub(exact if len(secret) >= LONG else rf"(?<![\w-]){exact}(?![\w-])", "[redacted]", text)
    text = text[: 20 * limit]
    for shape, replacement in _SHAPES:
        text = shape.sub(replacement, text)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
