"""XML rows: `<verdict id="R1"><reason>…</reason><hit>true</hit></verdict>`, fields as children or attributes."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Literal

from verdict_parsers._chars import END, SKIP
from verdict_parsers._ids import ID_KEYS, NAME_KEYS
from verdict_parsers._values import Fields
from verdict_parsers._words import OPAQUE_KEYS, VERDICT_KEYS, field_value, names, squash

ROW_TAGS = names("verdict criterion row item result evaluation judgment judgement assessment")
_TAG = r"<(?P<slash>/?)(?P<name>[^\W\d][\w.\-]*+)(?P<attributes>[^<>]*+)(?P<close>>?)"
TAG = re.compile(_TAG)

_NEXT = re.compile(SKIP + _TAG)
_ATTRIBUTE = re.compile(r"(?<![\w.\-])([^\W\d][\w.\-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'<>/]++))")
_CDATA = "<![CDATA["


@dataclass(frozen=True, slots=True)
class XmlRow:
    """The fields of one element. A "cut" one breaks off at the end of the text; a "broken" one cannot be told apart
    from what follows, so that nothing behind `end` is certain either."""

    fields: Fields
    end: int
    state: Literal["whole", "cut", "broken"]


def starts_row(flat: str, tag: re.Match[str]) -> bool:
    """Whether the element that opens here is a row: it has an id, or begins with a field of a row."""
    if tag["slash"] or tag["name"].lower() not in ROW_TAGS:
        return False
    if any(squash(key) in ID_KEYS | NAME_KEYS for key, *_ in _ATTRIBUTE.findall(tag["attributes"])):
        return True
    child = _NEXT.match(flat, tag.end())
    if child is None:
        return END.match(flat, tag.end()) is not None
    name = squash(child["name"])
    return not child["close"] or (name not in ROW_TAGS and name in ID_KEYS | NAME_KEYS | OPAQUE_KEYS | VERDICT_KEYS)


def read_row(text: str, flat: str, tag: re.Match[str]) -> XmlRow:
    """Read the row that opens at `tag`. Between its children nothing but space may stand."""
    fields = [
        (key, field_value(squash(key), html.unescape(double or single or plain)))
        for key, double, single, plain in _ATTRIBUTE.findall(tag["attributes"])
    ]
    if not tag["close"]:
        return XmlRow(fields, len(flat), "cut")
    if tag["attributes"].endswith("/"):
        return XmlRow(fields, tag.end(), "whole")
    position = tag.end()
    while child := _NEXT.match(flat, position):
        start, position = child.start("slash") - 1, child.end()
        if not child["close"]:
            cut = child.end() == len(flat)
            return XmlRow(fields, len(flat) if cut else start, "cut" if cut else "broken")
        if child["slash"] or child["name"] == tag["name"]:
            closes = bool(child["slash"]) and child["name"] == tag["name"]
            return XmlRow(fields, position if closes else start, "whole" if closes else "broken")
        content, end = ("", position) if child["attributes"].endswith("/") else _content(text, flat, child)
        if end < 0:
            return XmlRow(fields, len(flat), "cut")
        if re.search(rf"</?{tag['name']}\b", content, re.IGNORECASE):
            return XmlRow(fields, start, "broken")
        fields.append((child["name"], field_value(squash(child["name"]), html.unescape(content))))
        position = end
    end = flat.find("<", position)
    if end < 0:
        return XmlRow(fields, len(flat), "cut")
    if position == tag.end() and flat.startswith(f"</{tag['name']}>", end):
        name = tag["name"]
        fields.append((name, field_value(squash(name), html.unescape(text[position:end]))))
        return XmlRow(fields, end + len(name) + 3, "whole")
    return XmlRow(fields, end, "broken")


def _content(text: str, flat: str, child: re.Match[str]) -> tuple[str, int]:
    """The text of a child and the offset behind its closing tag; -1 when it does not close."""
    closing, start = f"</{child['name']}>", child.end()
    if flat.startswith(_CDATA, start):
        end = flat.find("]]>", start)
        closes = flat.startswith(closing, end + 3)
        return text[start + len(_CDATA) : end], end + 3 + len(closing) if end >= 0 and closes else -1
    end = flat.find(closing, start)
    return text[start:end], end + len(closing) if end >= 0 else -1
