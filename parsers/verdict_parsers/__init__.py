"""Verdicts of an LLM judge, read with certainty or not at all.

Imports nothing but the standard library and, when a row has to be mended, json_repair.
"""

from verdict_parsers._parse import parse_verdicts
from verdict_parsers._parsers import JsonVerdictParser, VerdictParser, XmlVerdictParser
from verdict_parsers._types import Parsed, Verdict

__all__ = ["JsonVerdictParser", "Parsed", "Verdict", "VerdictParser", "XmlVerdictParser", "parse_verdicts"]
