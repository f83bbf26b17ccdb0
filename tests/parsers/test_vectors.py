"""The public cases, and our own table of the same kinds: no wrong verdict, nothing lost that may not be lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from verdict_parsers import parse_verdicts

DATA = Path(__file__).parent.parent / "data"
FILES = (DATA / "vectors" / "parsing.jsonl", DATA / "parsing_own.jsonl")
CASES = [json.loads(line) for file in FILES for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['case']}-{case['kind']}")
def test_section_5_case_is_read_without_a_wrong_verdict(case: dict[str, Any]) -> None:
    parsed = parse_verdicts(case["text"], case["ids"], case.get("texts"), case.get("marker"))
    got = {name: verdict.hit for name, verdict in parsed.verdicts.items()}
    may_be_lost = set(case["may_be_unjudged"])
    assert {**got, **{k: v for k, v in case["expected"].items() if k in may_be_lost - got.keys()}} == case["expected"]
    assert set(parsed.verdicts) | set(parsed.unjudged) == set(case["ids"])
    assert not set(parsed.verdicts) & set(parsed.unjudged)


def test_the_own_table_is_large_and_its_cases_differ() -> None:
    own = [json.loads(line) for line in FILES[1].read_text("utf-8").splitlines()]
    assert len(own) >= 150
    assert len({(case["text"], tuple(case["ids"]), case.get("marker")) for case in own}) == len(own)
