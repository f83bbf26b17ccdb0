"""When two addresses on the web are the same page."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

_TRACKING = re.compile(r"utm_\w+|gclid|dclid|fbclid|msclkid|yclid|mc_[ce]id|igshid|_hsenc|_hsmi|spm", re.IGNORECASE)
"""Parameters that say where a reader came from, and never what is shown."""

_USUAL_PORTS = {None, 80, 443}


def normal_url(url: str) -> str:
    """What is the same for all spellings of an address; "" for what is none.

    Scheme, `www.`, usual ports, a last slash, the fragment, tracking parameters, the order of the others, the case of
    the host and percent-encoding make no difference. The case of the path does.
    """
    text = unicodedata.normalize("NFC", url.strip())
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return ""
    if not host or parts.scheme not in ("", "http", "https"):
        return ""
    if "xn--" in host:
        try:
            host = host.encode("ascii").decode("idna")
        except UnicodeError:
            return ""
    place = host.removeprefix("www.") + ("" if port in _USUAL_PORTS else f":{port}")
    query = sorted(
        (name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(name)
    )
    path = unicodedata.normalize("NFC", unquote(parts.path)).rstrip("/")
    return place + path + (f"?{urlencode(query)}" if query else "")
