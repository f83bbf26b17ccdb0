"""What went wrong with a call: HTTP status, codes, types, words and exceptions to a fault (SPEC 7).

The bodies of errors are read, never the text of an answer: a verdict may quote any of these words.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rubric_env.judges._error_text import ErrorText, read_error
from rubric_env.judges._patterns import CODES, FORMAT, GRAMMAR, TOO_BIG_FOR_LIMIT, WEAK_CODES, WORDS
from rubric_env.judges._redact import redact
from rubric_env.judges._retry_after import retry_after
from rubric_env.scoring.faults import Fault, FaultKind

_K = FaultKind

Remedy = Literal["", "lower", "loosen", "plain", "rename"]
"""What may help within the same call: less structured output, a looser schema, plain text at once, or
`max_completion_tokens` for `max_tokens`."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A call that gave no usable text."""

    fault: Fault
    retry_after: float | None = None
    remedy: Remedy = ""


def classify_response(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str] = ()) -> Problem:
    """A reply that holds no answer. `headers` have lower-case names; `status` may be 200."""
    return classify_error(status, headers, read_error(body, headers.get("content-type", "")), secrets)


def classify_error(status: int, headers: Mapping[str, str], error: ErrorText, secrets: Iterable[str] = ()) -> Problem:
    """The same for an error that was found inside an answer."""
    if 300 <= status < 400:
        goal = headers.get("location", "nowhere")
        return Problem(Fault(_K.SERVER, redact(f"HTTP {status}: the base URL redirects to {goal}", secrets)))
    effective = error.status if status < 400 and error.status else status
    loosen = not error.html and effective < 500 and GRAMMAR.search(error.message) is not None
    kind = _K.BAD_REQUEST if loosen and effective != 429 else _kind(effective, error)
    remedy: Remedy = "loosen" if loosen else ""
    if kind in (_K.BAD_REQUEST, _K.UNKNOWN_MODEL, _K.SERVER) and not error.html and not remedy:
        if "max_completion_tokens" in error.message:
            remedy = "rename"
        elif FORMAT.search(error.message):
            remedy = "lower"
    return Problem(Fault(kind, redact(_detail(status, error), secrets)), retry_after(headers, error.message), remedy)


def classify_exception(error: BaseException, secrets: Iterable[str] = ()) -> Problem:
    """An exception of the HTTP client: no whole reply came."""
    causes = list(_causes(error))
    names = {type(cause).__name__ for cause in causes}
    words = redact(next((str(cause) for cause in causes[1:] if str(cause)), str(error)), secrets)
    return Problem(Fault(_K.CONNECTION, _connection(causes, names, words)))


_TLS_IN_PROGRESS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""The context of any interruption of a TLS connection; no failure themselves."""

_BROKEN = {"RemoteProtocolError", "ReadError", "WriteError", "CloseError"}


def _connection(causes: Sequence[BaseException], names: set[str], words: str) -> str:
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return f"the host name of the base URL is not known: {words}"
    if certificate := next((c for c in causes if isinstance(c, ssl.SSLCertVerificationError)), None):
        return f"the certificate is not trusted: {certificate.verify_message}"
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return "connection refused: nothing listens at the base URL"
    if "ConnectTimeout" in names:
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


def _kind(status: int, error: ErrorText) -> FaultKind:
    by_words = None if error.html else _by_words(error)
    match status:
        case 401:
            return by_words if by_words in (_K.QUOTA, _K.RATE_LIMIT) else _K.AUTH
        case 402:
            return _K.QUOTA
        case 403 if error.html and "moment" in error.message.lower():
            return _K.SERVER  # a challenge page for browsers says nothing about the key
        case 403:
            return by_words or _K.AUTH
        case 404 | 405 | 410:
            named = "model" in error.message.lower() or by_words is _K.UNKNOWN_MODEL
            return _K.UNKNOWN_MODEL if named and not error.html else _K.SERVER
        case 408:
            return _K.TIMEOUT
        case 413:
            return by_words if by_words is _K.RATE_LIMIT else _K.CONTEXT_LENGTH
        case 429:
            return by_words if by_words in (_K.QUOTA, _K.CONTEXT_LENGTH) else _K.RATE_LIMIT
        case _ if status >= 500:
            strong = (_K.RATE_LIMIT, _K.QUOTA, _K.CONTEXT_LENGTH, _K.CONTENT_FILTER, _K.TIMEOUT)
            return by_words if by_words in strong else _K.SERVER
        case _ if status >= 400:
            return by_words or _K.BAD_REQUEST
        case _:
            return by_words or _K.SERVER


def _by_words(error: ErrorText) -> FaultKind | None:
    if TOO_BIG_FOR_LIMIT.search(error.message):
        return _K.CONTEXT_LENGTH
    for code in error.codes:
        if kind := CODES.get(code) or CODES.get(code.partition(".")[0]):
            return kind
    for kind, words in WORDS:
        if words.search(error.message):
            return kind
    return next((WEAK_CODES[code] for code in error.codes if code in WEAK_CODES), None)


def _detail(status: int, error: ErrorText) -> str:
    if error.html:
        hint = "" if status >= 400 else "; does the base URL end in /v1?"
        return f"HTTP {status}: a web page instead of an answer ({error.message[:80] or 'no title'}){hint}"
    named = [code for code in error.codes if not code.isdecimal() and code not in ("error", "invalid_request_error")]
    code = f" {named[0]}" if named else ""
    return f"HTTP {status}{code}: {error.message}" if error.message else f"HTTP {status}{code}"
