"""The words of an error: what a vendor's error body says, whatever its shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_CODES = ("code", "error_code", "errcode", "status_code", "statusCode", "type", "status")
_MESSAGE = re.compile("message|msg|error|err(?:or)?_?msg|status_msg|error_description|faultstring|detail|raw")
_PLACES = ("param", "loc")
_ECHOES = ("input", "ctx", "body", "request", "prompt", "messages")
"""Keys under which a validator repeats the request: what a policy wrote must not be read as the endpoint's words."""

_ENOUGH = 4000
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_MARKUP = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ErrorText:
    """`codes` lower-cased, the most telling first. `status` is an HTTP status that stands in the body."""

    codes: tuple[str, ...] = ()
    message: str = ""
    status: int | None = None
    html: bool = False


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
        title = _TITLE.search(text)
        words = title.group(1) if title else re.sub(r"<[^>]*>", " ", text[:_ENOUGH])
        return ErrorText(message=" ".join(words.split()), html=True)
    for candidate in (text, *_events(text)):
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return from_value(value)
    return ErrorText(message=text[:_ENOUGH].strip())


def from_value(value: Any) -> ErrorText:
    """The same from decoded JSON."""
    found = list(_walk(value, 0))
    codes = [str(item).lower() for name in _CODES for key, item in found if key == name and str(item)]
    messages = [item for key, item in found if isinstance(item, str) and _MESSAGE.fullmatch(key)]
    places = [str(item) for key, item in found if key in _PLACES]
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), None)
    message = "; ".join(dict.fromkeys(m.strip() for m in [*messages, *places] if m.strip()))
    return ErrorText(tuple(dict.fromkeys(codes)), message[:_ENOUGH], status)


def tells_error(value: Mapping[str, Any]) -> bool:
    """Does this object, which stands where an answer should, tell of an error?"""
    if any(value.get(key) for key in ("error", "errors", "error_code", "error_msg", "fault")):
        return True
    message = value.get("message", value.get("msg", value.get("detail")))
    if isinstance(message, str) and (value.get("success") is False or value.keys() & set(_CODES)):
        return True
    nested = value.get("base_resp")
    return isinstance(nested, Mapping) and nested.get("status_code") not in (None, 0)


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
    for key, item in value.items():
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
    """The data lines of an event stream, those that speak of an error first."""
    if not text.lstrip().startswith(("data:", "event:", ":")):
        return []
    lines = [line[5:].strip() for line in text[:200_000].splitlines() if line.startswith("data:")]
    return sorted(lines, key=lambda line: '"error"' not in line)
