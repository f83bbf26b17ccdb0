"""SPEC 3, 4 and 5, the engine's rules on verdicts: what is accepted, asked again, or given up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric_env.engine.reading import Doubt, Reading, read_reply
from rubric_env.evidence import build_pack
from rubric_env.judges import Reply
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import FaultKind, RowVerdict, Usage
from rubric_env.submission import Submission

SPEC = RubricSpec.parse(
    [
        {"id": "P", "description": "States the profit", "weight": 1},
        {"id": "N", "description": "Invents a source", "weight": -1},
        {"id": "H", "description": "No deliverable", "weight": 0, "hurdle": True},
        {"id": "G", "description": "Is clear", "weight": 1, "scores": {"0": "no", "0.6": "partly", "1": "yes"}},
    ]
)
WHOLE = build_pack(Submission(reply="The profit rose by 12 % in 2024, the report says."), budget_tokens=10_000)
CUT = build_pack(Submission(reply="The profit rose.\n\n" * 5000), budget_tokens=1000)


def read(text: str, *ids: str, pack: Any = WHOLE, truncated: bool = False, marker: str | None = None) -> Reading:
    return read_reply(Reply(text, Usage(), 0.0, marker, truncated=truncated), [SPEC[i] for i in ids], pack)


def answer(*verdicts: dict[str, Any]) -> str:
    return json.dumps({"verdicts": list(verdicts)})


def one(row: str, pack: Any = WHOLE, **verdict: Any) -> Reading:
    return read(answer({"id": row, "reason": "because", "evidence": "", **verdict}), row, pack=pack)


def doubt(reading: Reading, row: str) -> Doubt:
    assert not reading.accepted and not reading.failed
    return reading.doubts[row]


@pytest.mark.parametrize("row", ["P", "N", "H"])
@pytest.mark.parametrize("hit", [True, False])
def test_hit_with_a_boolean_is_accepted_on_every_row(row: str, hit: bool) -> None:
    verdict = one(row, hit=hit).accepted[row]
    assert (verdict.hit, verdict.level, verdict.reason) == (hit, None, "because")
    assert verdict.spelled == f"hit:{str(hit).lower()}"


@pytest.mark.parametrize("row", ["N", "H"])
@pytest.mark.parametrize(
    "spelling", [{"verdict": "pass"}, {"met": True}, {"satisfied": False}, {"hit": "yes"}, {"hit": 1}]
)
def test_section_5_anything_else_on_a_negative_or_hurdle_row_is_asked_again(row: str, spelling: dict[str, Any]) -> None:
    again = doubt(one(row, **spelling), row)
    assert again.fault.kind is FaultKind.UNPARSEABLE
    assert again.stands is None


@pytest.mark.parametrize("row", ["N", "H"])
def test_section_5_the_exact_word_in_an_xml_hit_field_is_a_boolean(row: str) -> None:
    text = f'<verdict id="{row}"><reason>none found</reason><hit>false</hit></verdict>'
    assert read(text, row).accepted[row].hit is False


def test_words_of_quality_do_for_a_positive_row() -> None:
    assert one("P", verdict="pass").accepted["P"].hit is True


def test_section_3_on_a_binary_row_a_level_is_ignored_whatever_its_value() -> None:
    assert one("P", hit=True, level=75).accepted["P"].level_raw is None
    assert one("N", hit=False, level=0.5).accepted["N"] == RowVerdict(
        False, reason="because", spelled="hit:false", recovered_by="whole"
    )


@pytest.mark.parametrize(
    ("level", "snapped", "hit"), [(1, 1.0, True), (0.6, 0.6, True), (0.8, 0.6, True), (0.1, 0.0, False)]
)
def test_section_3_a_level_off_the_table_snaps_and_level_raw_keeps_what_came(
    level: float, snapped: float, hit: bool
) -> None:
    verdict = one("G", hit=hit, level=level).accepted["G"]
    assert (verdict.level, verdict.level_raw, verdict.hit, verdict.level_fallback) == (snapped, level, hit, False)


def test_an_answer_that_only_carries_the_level_of_a_graded_row_is_accepted() -> None:
    verdict = read(answer({"id": "G", "reason": "so", "level": 0.6}), "G").accepted["G"]
    assert (verdict.hit, verdict.level) == (True, 0.6)


@pytest.mark.parametrize("level", [75, 7, -0.5, 1.01])
def test_section_3_a_level_outside_0_to_1_is_unjudged_and_asked_again(level: float) -> None:
    again = doubt(one("G", hit=True, level=level), "G")
    assert again.fault.kind is FaultKind.UNPARSEABLE
    assert again.stands is None


@pytest.mark.parametrize(("hit", "level"), [(True, 1.0), (False, 0.0)])
def test_section_3_a_missing_level_is_asked_again_then_hit_stands(hit: bool, level: float) -> None:
    stands = doubt(one("G", hit=hit), "G").stands
    assert stands is not None
    assert (stands.hit, stands.level, stands.level_raw, stands.level_fallback) == (hit, level, None, True)


@pytest.mark.parametrize(("hit", "level"), [(True, 0), (False, 0.6), (False, 1)])
def test_section_3_a_level_that_contradicts_hit_is_asked_again_then_the_level_stands(hit: bool, level: float) -> None:
    stands = doubt(one("G", hit=hit, level=level), "G").stands
    assert stands is not None
    assert (stands.hit, stands.level, stands.level_raw, stands.level_fallback) == (level > 0, level, level, True)


def test_section_4_null_is_final_only_where_the_evidence_records_a_failure_of_ours() -> None:
    assert doubt(one("P", hit=None), "P").fault.kind is FaultKind.UNPARSEABLE
    failed = one("P", CUT, hit=None)
    assert not failed.doubts
    assert failed.failed["P"].kind is FaultKind.CANNOT_ASSESS
    assert "because" in failed.failed["P"].detail


def test_section_4_an_address_that_the_pack_does_not_have_is_flagged() -> None:
    good = one("P", hit=True, evidence="model_response_text.txt#¶1: “The profit rose by 12 % in 2024”").accepted["P"]
    bad = one("P", hit=True, evidence="model_response_text.txt#¶99").accepted["P"]
    assert (good.evidence_unresolved, bad.evidence_unresolved) == (False, True)


def test_faults_say_why_a_row_has_no_verdict() -> None:
    some = answer({"id": "P", "reason": "r", "evidence": "", "hit": True})
    assert read(some, "P", "N").doubts["N"].fault.kind is FaultKind.MISSING_ROW
    assert read(some, "P", "N", truncated=True).doubts["N"].fault.kind is FaultKind.TRUNCATED
    prose = read("All of it is fine, I think.", "P", "N")
    assert {d.fault.kind for d in prose.doubts.values()} == {FaultKind.UNPARSEABLE}
    assert "All of it is fine" in prose.doubts["P"].fault.detail
    conflict = read(answer({"id": "P", "hit": True}, {"id": "P", "hit": False}), "P")
    assert conflict.doubts["P"].fault.kind is FaultKind.UNPARSEABLE


def test_details_are_one_short_line() -> None:
    detail = read("a long\nanswer " * 1000, "P").doubts["P"].fault.detail
    assert "\n" not in detail
    assert len(detail) < 200


def test_with_a_marker_only_what_follows_it_is_read() -> None:
    draft = answer({"id": "P", "reason": "draft", "hit": True})
    final = answer({"id": "P", "reason": "final", "hit": False})
    marker = "=== VERDICTS 0123456789abcdef ==="
    assert read(f"{draft}\n{marker}\n{final}", "P", marker=marker).accepted["P"].hit is False


def test_every_row_is_in_exactly_one_place() -> None:
    text = answer(
        {"id": "P", "reason": "r", "hit": True},
        {"id": "H", "reason": "r", "hit": None},
        {"id": "G", "reason": "r", "hit": True},
        {"id": "X", "reason": "not asked for", "hit": True},
    )
    reading = read(text, "P", "N", "H", "G", pack=CUT)
    places = [*reading.accepted, *reading.doubts, *reading.failed]
    assert sorted(places) == ["G", "H", "N", "P"]
