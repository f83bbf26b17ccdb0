"""The words of an error: what a vendor's error body says, whatever its shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Any

_CODES = ("code", "error_code", "errcode", "status_code", "statuscode", "type", "__type", "status", "blockreason")
_MESSAGE = re.compile("message|msg|error|err(?:or)?_?msg|status_msg|error_description|faultstring|detail|raw")
_PLACES = ("param", "loc")
_WAITS = ("retrydelay", "retry_after", "retry_after_seconds")
_ECHOES = (
    *("input", "ctx", "body", "request", "request_body", "prompt", "messages", "content", "text"),
    *("failed_generation", "flagged_input"),
)
"""Keys under which an endpoint repeats the question or the answer: what a policy or a judge wrote must not be read as
the endpoint's words."""

_INNER = {"base_resp": "status_code", "Response": "Error", "promptFeedback": "blockReason"}
"""Where some vendors put an error in place of an answer: an object's name, and its member that says so."""

_ENOUGH = 4000
_PAGE = 20_000
_UNSEEN = re.compile(r"<(script|style|title)\b.{0,4000}?</\1\s*>|<[^<>]*>", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^<>]*>(.{0,500}?)</title>", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ErrorText:
    """`codes` lower-cased, the most telling first. `status` is an HTTP status that stands in the body.

    Of a web page (`html`) the message is its title, and `page` what else it shows. `limit`: the tokens that the
    endpoint takes at all, where a field says so.
    """

    codes: tuple[str, ...] = ()
    message: str = ""
    status: int | None = None
    html: bool = False
    page: str = ""
    limit: int | None = None


def decode(body: bytes, content_type: str = "") -> str | None:
    """UTF-8, else the declared charset, else GB18030; None when it is none of them."""
    declared = re.search(r"charset=\"?([\w-]+)", content_type)
    for encoding in ("utf-8-sig", declared.group(1) if declared else "gb18030", "gb18030"):
        try:
            return body.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    return None


def read_error(body: bytes, content_type: str = "") -> ErrorText:
    """The error that a body tells of: JSON of any vendor, a page, server-sent events, or bare text."""
    text = decode(body, content_type)
    if text is None:
        return ErrorText(message="(bytes that are no text)")
    if _MARKUP.match(text):
        title = _TITLE.search(text[:_PAGE])
        page = " ".join(unescape(_UNSEEN.sub(" ", text[:_PAGE])).split())[:_ENOUGH]
        return ErrorText(message=" ".join(title.group(1).split()) if title else page, html=True, page=page)
    values = [value for candidate in (text, *_events(text)) if isinstance(value := _json(candidate), dict | list)]
    told = next((value for value in values if isinstance(value, dict) and tells_error(value)), None)
    if told is not None or values:
        return from_value(told or values[0])
    return ErrorText(message=text[:_ENOUGH].strip())


def from_value(value: Any) -> ErrorText:
    """The same from decoded JSON."""
    found = list(_walk(value, 0))
    codes = [str(item).lower() for name in _CODES for key, item in found if key == name and str(item)]
    messages = [item for key, item in found if isinstance(item, str) and _MESSAGE.fullmatch(key)]
    places = [str(item) for key, item in found if key in _PLACES]
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), None)
    waits = [f"retry after {item}{'' if isinstance(item, str) else ' s'}" for key, item in found if key in _WAITS]
    limit = next((item for key, item in found if key == "n_ctx" and isinstance(item, int)), None)
    message = "; ".join(dict.fromkeys(m.strip() for m in [*messages, *places, *waits] if m.strip()))
    return ErrorText(tuple(dict.fromkeys(codes)), message[:_ENOUGH], status, limit=limit)


def tells_error(value: Mapping[str, Any]) -> bool:
    """Does this object, which stands where an answer should, tell of an error?"""
    if any(value.get(key) for key in ("error", "errors", "error_code", "error_msg", "fault")):
        return True
    message = value.get("message", value.get("msg", value.get("detail")))
    if isinstance(message, str) and (
        value.get("success") is False or {str(key).lower() for key in value} & set(_CODES)
    ):
        return True
    inner = {name: nested for name in _INNER if isinstance(nested := value.get(name), Mapping)}
    return any(nested.get(_INNER[name]) not in (None, 0) for name, nested in inner.items())


def _walk(value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Named scalars, the outer ones first."""
    if depth > 5:
        return
    if isinstance(value, list):
        for item in value[:8]:
            yield from _walk(item, depth + 1)
        return
    if not isinstance(value, dict):
        return
    deeper = []
    for name, item in value.items():
        key = str(name).lower()
        if key in _ECHOES:
            continue
        if key == "loc" and isinstance(item, list):
            yield key, ".".join(map(str, item))
        elif isinstance(item, dict | list):
            deeper.append(item)
        elif item is not None and not isinstance(item, bool):
            yield key, item
    for item in deeper:
        yield from _walk(item, depth + 1)


def _events(text: str) -> list[str]:
    """The data lines of an event stream."""
    if not text.lstrip().startswith(("data:", "event:", "id:", "retry:", ":")):
        return []
    return [line[5:].strip() for line in text[:200_000].splitlines() if line.startswith("data:")]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
