"""XML from a stranger: without entities, DTDs or network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rubric_env.evidence._extract import Unreadable

if TYPE_CHECKING:
    from lxml import etree

DEPTH = 200
"""Levels of elements: office files nest a dozen; a reader that walks them by recursion stays far from its limit."""

_SPACE_BEFORE = re.compile(rb"^\s+(?=<)")


def parser() -> dict[str, Any]:
    """Arguments of lxml's parsers that read XML of strangers."""
    return {
        "resolve_entities": False,
        "no_network": True,
        "load_dtd": False,
        "huge_tree": False,
        "remove_comments": True,
        "remove_pis": True,
    }


def no_xml(error: Exception) -> str:
    """What is wrong, in words of ours: the parser's message holds names of elements, which a policy chose."""
    position = getattr(error, "position", None)
    return f"its XML does not parse (line {position[0]:,}, column {position[1]:,})" if position else "it is no XML"


def parse(data: bytes, *, recover: bool = False) -> etree._Element:
    """The root element. Raises Unreadable when it does not parse, or is nested deeper than `DEPTH`.

    `recover` takes what can be read of a damaged or cut document.
    """
    from lxml import etree

    try:
        root = etree.fromstring(_SPACE_BEFORE.sub(b"", data), etree.XMLParser(recover=recover, **parser()))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unreadable(no_xml(error)) from None
    if root is None:
        raise Unreadable("its XML is empty")
    depth = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > DEPTH:
            raise Unreadable(f"its XML is nested deeper than {DEPTH} levels")
    return root
