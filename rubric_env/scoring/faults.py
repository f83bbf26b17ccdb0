"""Why a row has no verdict, and which exit code that means (SPEC 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """The closed list of faults, in the order that breaks ties between equally frequent kinds."""

    TIMEOUT = "timeout"
    DEADLINE = "deadline"
    NO_CREDENTIAL = "no_credential"
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    AUTH = "auth"
    UNKNOWN_MODEL = "unknown_model"
    CONNECTION = "connection"
    SERVER = "server"
    EMPTY = "empty"
    BAD_REQUEST = "bad_request"
    CONTEXT_LENGTH = "context_length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    BREAKER_OPEN = "breaker_open"
    TRUNCATED = "truncated"
    UNPARSEABLE = "unparseable"
    MISSING_ROW = "missing_row"
    CANNOT_ASSESS = "cannot_assess"
    SCORER_ERROR = "scorer_error"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


class ExitCode(StrEnum):
    """The closed set that Harbor's consumers know; finer kinds are in `judge_error_kind`."""

    TIMEOUT = "judge:timeout"
    NO_CREDENTIAL = "judge:no_credential"
    API_ERROR = "judge:api_error"
    PARSE_ERROR = "judge:parse_error"
    SCORER_ERROR = "judge:scorer_error"
    CRASH = "judge:crash"


_K, _X = FaultKind, ExitCode
EXIT_CODES: dict[FaultKind, ExitCode] = {
    **dict.fromkeys((_K.TIMEOUT, _K.DEADLINE), _X.TIMEOUT),
    _K.NO_CREDENTIAL: _X.NO_CREDENTIAL,
    **dict.fromkeys(
        (
            _K.RATE_LIMIT,
            _K.QUOTA,
            _K.AUTH,
            _K.UNKNOWN_MODEL,
            _K.CONNECTION,
            _K.SERVER,
            _K.EMPTY,
            _K.BAD_REQUEST,
            _K.CONTEXT_LENGTH,
            _K.CONTENT_FILTER,
            _K.REFUSAL,
            _K.BREAKER_OPEN,
        ),
        _X.API_ERROR,
    ),
    **dict.fromkeys((_K.TRUNCATED, _K.UNPARSEABLE, _K.MISSING_ROW, _K.CANNOT_ASSESS), _X.PARSE_ERROR),
    _K.SCORER_ERROR: _X.SCORER_ERROR,
    **dict.fromkeys((_K.CANCELLED, _K.INTERNAL), _X.CRASH),
}

ENDPOINT_FAULTS = frozenset({_K.TIMEOUT, _K.CONNECTION, _K.SERVER, _K.AUTH, _K.EMPTY})
"""What the breaker counts: the endpoint's failures, never what a submission may cause."""

SUBMISSION_FAULTS = frozenset({_K.CONTENT_FILTER, _K.CONTEXT_LENGTH, _K.REFUSAL})
"""Also counted in `judge_fault_submission`, so that a policy's escape through them shows."""

FATAL_FAULTS = frozenset({_K.AUTH, _K.UNKNOWN_MODEL, _K.QUOTA, _K.NO_CREDENTIAL})
"""Asking again cannot help: the block stops at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row has no verdict. `detail` is one line for people and never holds a secret."""

    kind: FaultKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)


def prevailing(kinds: Iterable[FaultKind]) -> FaultKind | None:
    """The kind with most rows; ties go to the kind that stands first in `FaultKind`. None without faults."""
    counts = Counter(kinds)
    order = {kind: n for n, kind in enumerate(FaultKind)}
    return min(counts, key=lambda kind: (-counts[kind], order[kind]), default=None)
