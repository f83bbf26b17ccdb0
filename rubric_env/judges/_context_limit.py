"""How many tokens an endpoint takes, as its refusal of more of them says."""

from __future__ import annotations

import re

_N = r"([0-9][0-9,_]*)"

_LIMITS = tuple(
    re.compile(pattern.replace("N", _N), re.IGNORECASE)
    for pattern in (
        r"maximum input length of N",
        r"(?:context length|prompt length|model length)(?: is| of|:)?(?: only)? N",
        r"(?:context|maximum allowed) length \(N",
        r"(?:N|tokens) > N",
        r"tokens allowed \(N",
        r"input length should be \[\d+, N",
        r"token limit ?: ?N",
        r"context (?:window|limit|size)(?: of| is|:)? N",
        r"max_seq_len \(N",
        r"must be <= N",
        r"must have less than N tokens",
        r"max size: N tokens",
        r"max input tokens=N",
        r"tokens.{0,40} cannot exceed N",
        r"N maximum context",
        r"\blimit N, requested",
    )
)
"""The last number of a match is the limit."""

_ANSWERS = tuple(
    re.compile(pattern.replace("N", _N), re.IGNORECASE)
    for pattern in (
        r"N (?:tokens )?(?:in|for) the completion",
        r"N \+ N > ",
        r"\bplus N 'max_",
        r"and N `max_new_tokens`",
    )
)
"""What of the limit is set aside for the answer; the last number of a match."""


def context_limit(message: str) -> int | None:
    """Tokens that a question may have; None when the message does not say."""
    limit = _number(_LIMITS, message)
    if limit is None:
        return None
    left = limit - (_number(_ANSWERS, message) or 0)
    return left if left > 0 else limit


def _number(patterns: tuple[re.Pattern[str], ...], message: str) -> int | None:
    for pattern in patterns:
        if found := pattern.search(message):
            last = [group for group in found.groups() if group][-1]
            return int(re.sub("[,_]", "", last))
    return None
