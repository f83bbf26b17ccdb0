from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.evidence import estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("four words of prose ", 5),
        ("12345678", 4),
        ("营业收入增长", 6),
        ("，。", 2),
        ("한국어", 3),
        ("é" * 8, 4),
        ("a\ud800", 1),
    ],
)
def test_the_rule_of_the_estimate(text, tokens):
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_parts_never_cost_less_than_the_whole(first, second):
    whole = estimate_tokens(first + second)
    assert max(estimate_tokens(first), estimate_tokens(second)) <= whole
    assert whole <= estimate_tokens(first) + estimate_tokens(second)
