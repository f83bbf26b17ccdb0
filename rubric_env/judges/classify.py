"""What went wrong with a call: HTTP status, codes, types, words and exceptions to a fault (SPEC 7).

The bodies of errors are read, never the text of an answer: a verdict may quote any of these words.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rubric_env.judges._context_limit import context_limit
from rubric_env.judges._error_text import ErrorText, read_error
from rubric_env.judges._patterns import CODES, FIREWALL, FIRST, FORMAT, GRAMMAR, WEAK_CODES, WORDS
from rubric_env.judges._redact import redact
from rubric_env.judges._retry_after import retry_after
from rubric_env.scoring.faults import Fault, FaultKind

_K = FaultKind

Remedy = Literal["", "lower", "loosen", "plain", "rename", "key"]
"""What may help within the same call: less structured output, a looser schema, plain text at once,
`max_completion_tokens` for `max_tokens`, or a fresh key."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A call that gave no usable text."""

    fault: Fault
    retry_after: float | None = None
    remedy: Remedy = ""
    context_limit: int | None = None
    """Tokens that the endpoint takes at all, where a refusal for too many names them."""
    blocked: bool = False
    """A page of something in front of the endpoint refused the request. Whether that was about this question shows in
    whether others are answered: `content_filter` if so, `server` if not. The kind is the likelier one."""


def classify_response(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str] = ()) -> Problem:
    """A reply that holds no answer. `headers` have lower-case names; `status` may be 200."""
    return classify_error(status, headers, read_error(body, headers.get("content-type", "")), secrets)


def classify_error(status: int, headers: Mapping[str, str], error: ErrorText, secrets: Iterable[str] = ()) -> Problem:
    """The same for an error that was found inside an answer."""
    if 300 <= status < 400:
        goal = headers.get("location", "nowhere")
        return Problem(Fault(_K.SERVER, redact(f"HTTP {status}: the base URL redirects to {goal}", secrets)))
    effective = error.status if status < 400 and error.status else status
    detail = redact(_detail(status, error), secrets)
    if (blocked := _blocked(effective, headers, error)) is not None:
        return Problem(Fault(blocked, detail), remedy="key" if blocked is _K.SERVER else "", blocked=True)
    loosen = not error.html and effective < 500 and GRAMMAR.search(error.message) is not None
    kind = _K.BAD_REQUEST if loosen and effective != 429 else _kind(effective, headers, error)
    remedy = _remedy(kind, error, loosen)
    if remedy == "lower" and kind is _K.UNKNOWN_MODEL:
        kind = _K.BAD_REQUEST  # the model is there: what it does not support is the format
    limit = error.limit or context_limit(error.message) if kind is _K.CONTEXT_LENGTH else None
    return Problem(Fault(kind, detail), retry_after(headers, error.message), remedy, limit)


def _remedy(kind: FaultKind, error: ErrorText, loosen: bool) -> Remedy:
    if kind is _K.AUTH:
        return "key"
    if loosen:
        return "loosen"
    if kind not in (_K.BAD_REQUEST, _K.UNKNOWN_MODEL, _K.SERVER) or error.html:
        return ""
    if "max_completion_tokens" in error.message:
        return "rename"
    return "lower" if FORMAT.search(error.message) else ""


def classify_exception(error: BaseException, secrets: Iterable[str] = ()) -> Problem:
    """An exception of the HTTP client: no whole reply came."""
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    words = redact(next((str(cause) for cause in causes[1:] if str(cause)), str(error)), secrets)
    return Problem(Fault(_K.CONNECTION, _connection(causes, names, words)))


_TLS_IN_PROGRESS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""The context of any interruption of a TLS connection; no failure themselves."""

_BROKEN = {"ServerDisconnectedError", "ClientPayloadError"}


def _connection(causes: Sequence[BaseException], names: set[str], words: str) -> str:
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"the host name of the base URL is not known: {words}"
    if certificate := next((c for c in reversed(causes) if isinstance(c, ssl.SSLCertVerificationError)), None):
        return f"the certificate is not trusted: {certificate.verify_message}"
    if names & {"ClientProxyConnectionError", "ClientHttpProxyError"}:
        return f"the proxy of the environment does not let it through: {words}"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "connection refused: nothing listens at the base URL"
    if "ConnectionTimeoutError" in names:
        return "no connection in time: the host does not answer"
    if any(isinstance(cause, ssl.SSLError) and not isinstance(cause, _TLS_IN_PROGRESS) for cause in causes):
        return f"no TLS connection (is it http, not https?): {words}"
    if names & _BROKEN or any(isinstance(cause, ConnectionError) for cause in causes):
        return f"the connection broke before the answer was whole: {words}"
    return words


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


_PASSED = frozenset({401, 407, 408, 413, 429})
"""Statuses that say themselves what is wrong, whoever sends the page."""


def _blocked(status: int, headers: Mapping[str, str], error: ErrorText) -> FaultKind | None:
    """The kind of a page that refuses the request, or of the line of text that stands for such a page."""
    if status in _PASSED or (status >= 500 and status != 501):
        return None
    if error.html and "moment" in error.message.lower():
        return None  # a challenge for browsers: nobody looked at the question
    if FIREWALL.search(f"{error.message} {error.page}") and (error.html or error.message.startswith("error code:")):
        return _K.CONTENT_FILTER
    if status == 403 and error.html:
        # This load balancer refuses nothing by itself: its firewall did.
        return _K.CONTENT_FILTER if headers.get("server", "").startswith("awselb") else _K.SERVER
    return None


def _kind(status: int, headers: Mapping[str, str], error: ErrorText) -> FaultKind:
    by_words = None if error.html else _by_words(error)
    match status:
        case 401:
            named = by_words if _by_code(error) is _K.UNKNOWN_MODEL or by_words in (_K.QUOTA, _K.RATE_LIMIT) else None
            return named or _K.AUTH
        case 402:
            return _K.QUOTA
        case 403:
            return by_words or (_K.SERVER if error.html else _K.AUTH)
        case 404 | 405 | 410:
            about_model = by_words is not _K.SERVER and "model" in error.message.lower()
            return _K.UNKNOWN_MODEL if not error.html and (about_model or by_words is _K.UNKNOWN_MODEL) else _K.SERVER
        case 408:
            return _K.TIMEOUT
        case 413:
            return by_words if by_words is _K.RATE_LIMIT else _K.CONTEXT_LENGTH
        case 429:
            if by_words is _K.QUOTA and any(name.startswith("x-dashscope") for name in headers):
                return _K.RATE_LIMIT  # its limits a minute are called insufficient_quota
            return by_words if by_words in (_K.QUOTA, _K.CONTEXT_LENGTH) else _K.RATE_LIMIT
        case 451:
            return _K.CONTENT_FILTER
        case _ if status >= 500:
            strong = (_K.RATE_LIMIT, _K.QUOTA, _K.CONTEXT_LENGTH, _K.CONTENT_FILTER, _K.TIMEOUT)
            return by_words if by_words in strong else _K.SERVER
        case _ if status >= 400:
            return by_words or _K.BAD_REQUEST
        case _:
            return by_words or _K.SERVER


def _by_words(error: ErrorText) -> FaultKind | None:
    for kind, words in FIRST:
        if words.search(error.message):
            return kind
    if kind_by_code := _by_code(error):
        return kind_by_code
    for kind, words in WORDS:
        if words.search(error.message):
            return kind
    return next((WEAK_CODES[code] for code in error.codes if code in WEAK_CODES), None)


def _by_code(error: ErrorText) -> FaultKind | None:
    kinds = (CODES.get(code) or CODES.get(code.partition(".")[0]) for code in error.codes)
    return next((kind for kind in kinds if kind), None)


def _detail(status: int, error: ErrorText) -> str:
    if error.html:
        hint = "" if status >= 400 else "; does the base URL end in /v1?"
        return f"HTTP {status}: a web page instead of an answer ({error.message[:80] or 'no title'}){hint}"
    named = [code for code in error.codes if not code.isdecimal() and code not in ("error", "invalid_request_error")]
    code = f" {named[0]}" if named else ""
    return f"HTTP {status}{code}: {error.message}" if error.message else f"HTTP {status}{code}"
