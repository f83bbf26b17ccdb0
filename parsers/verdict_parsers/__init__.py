"""Verdicts of an LLM judge, read with certainty or not at all."""

from verdict_parsers._parse import parse_verdicts
from verdict_parsers._types import Parsed, Verdict

__all__ = ["Parsed", "Verdict", "parse_verdicts"]
