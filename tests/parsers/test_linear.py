"""256 kB of anything takes time linear in its length. benchmarks/parser.py has the timings; this guards the shape."""

from __future__ import annotations

import time

import pytest
from verdict_parsers import parse_verdicts

# fmt: off
UNITS = (
    "[", "]", "{", "}", "[]", "{}", "[{", "{[", '"', "'", "\\", '\\"', "“", "<think>", "</think>", "<think></think>",
    "`", "```", "```\n", "~~~\n", "|", "|\n", "| a | b |\n", "|-", "|-|-|\n", "id|hit\n-|-\nR1|true\n",
    '{"', '["', "{'", '{":', '{"a":', '{"a":[', "{a:", "{a:1}", "{a:1},", '{"a":1}', '{"a" b}', '{"a":"b" c',
    '{"a":"b" c,', '{"hit":', '"{\\"', '{\\"', '{"id":"R1","hit":true}\n', '{"id":"R1","reason":"x "y" z","hit":true}',
    '{"id":"R1","reason":"x "y', 'says {"id":"R1","hit":true} ', '<verdict id="R1">', '<verdict id="R1"><reason>',
    '<verdict id="R1"><hit>true</hit></verdict>', "<verdicts>", "<reason>", "<!--", "</", "<", "//", "/*", "{/*",
    "：", "，", '{"id":"R1","reason":"x"},{" ."},', "| R1 | yes |\n", "R1: no, ", "</reason>", "Evidence: ",
    "`<think>`", "\u200b", "\ufeff", " ", "\n", "\t", " \n", "-", "---\n", "a", "是", "null,", "1,", "=== V 7 ===\n",
)
# fmt: on
SIZE = 250_000
BOUND = 3.0
"""Seconds, an order of magnitude above what any of these takes here: it catches a square, not a slow machine."""


def seconds(text: str, marker: str | None = None) -> float:
    start = time.process_time()
    parse_verdicts(text, ["R1", "R2"], {"R1": "a text"}, marker)
    return time.process_time() - start


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_section_5_long_repetitions_are_linear(unit: str) -> None:
    often = unit * (SIZE // len(unit.encode()))
    assert seconds(often, marker="=== V 7 ===") < BOUND
    assert seconds('{"verdicts":[' + often) < BOUND
    assert seconds('{"verdicts":[{"id":"R1","reason":"' + often[:-100]) < BOUND


@pytest.mark.parametrize("one", ["[", "{", '"', "\\", "`", "<think>", "|", "\n"])
@pytest.mark.parametrize("other", ['"', ":", ",", "}", " ", '{"a":', "</think>", "a"])
def test_section_5_alternations_are_linear(one: str, other: str) -> None:
    assert seconds((one + other) * (SIZE // len((one + other).encode()))) < BOUND


@pytest.mark.parametrize("bracket", ["[", "{", '{"a":', "[[", '[{"verdicts":'])
def test_section_5_deep_nesting_is_no_recursion_error(bracket: str) -> None:
    closing = {"[": "]", "{": "}"}
    text = bracket * 100_000
    text = text[:200_000] + "".join(closing.get(c, "") for c in reversed(text[:20_000]))
    assert parse_verdicts(text, ["R1"]).verdicts == {}


def test_a_long_answer_is_read_like_a_short_one() -> None:
    rows = ",".join(f'{{"id":"R{n}","reason":"{"x" * 400}","hit":true}}' for n in range(500))
    ids = [f"R{n}" for n in range(500)]
    assert len(parse_verdicts(f'Here: {{"verdicts":[{rows}]}}', ids).verdicts) == 500
    assert len(parse_verdicts(f"{{'verdicts':[{rows}]}}", ids).verdicts) == 500
