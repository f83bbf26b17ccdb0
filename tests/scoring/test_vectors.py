"""The shared scoring vectors: normative where SPEC is silent."""

import json
from pathlib import Path

import pytest

from rubric_env.rubric import RubricSpec
from rubric_env.scoring import score

VECTORS = Path(__file__).parent.parent / "data" / "vectors"
CASES = [
    json.loads(line)
    for name in ("scoring_cases", "scoring_random")
    for line in (VECTORS / f"{name}.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_section_3_vectors(case):
    card, expected = score(RubricSpec.parse(case["rubric"]), case["verdicts"]), case["expected"]
    if "error" in expected:
        assert card.error.startswith(expected["error"])
        assert (card.score, card.score_lo, card.score_hi) == (None, None, None)
        return
    for name in ("score", "coverage", "possible", "earned", "score_lo", "score_hi"):
        assert getattr(card, name) == pytest.approx(expected[name], abs=1e-9), name
    assert card.fatal is expected["fatal"]
    assert card.levels == pytest.approx(expected["levels"], abs=1e-9)
    assert card.error == ""
