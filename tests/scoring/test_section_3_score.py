"""SPEC 3, sentence by sentence."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from rubric_env.rubric import RubricSpec
from rubric_env.scoring import RowVerdict, score, snap_level

FIFTHS = {"0": "none", "0.5": "half", "1": "full"}
HIT, MISS = {"hit": True}, {"hit": False}


def spec(*rows):
    return RubricSpec.parse([{"description": f"row {n}", **row} for n, row in enumerate(rows)])


def row(identity, weight=1.0, **fields):
    return {"id": identity, "weight": weight, **fields}


def graded(identity, weight=1.0, levels=FIFTHS, **fields):
    return row(identity, weight, type="gradient", levels=levels, **fields)


def score_of(rows, verdicts):
    return score(spec(*rows), verdicts)


def bounds(card):
    return card.score_lo, card.score_hi


# --- the formula ------------------------------------------------------------------------------------------------


def test_section_3_no_verdict_is_no_hit():
    assert score_of([row("a", 3), row("b", 1)], {"a": HIT}).score == 0.75


def test_section_3_a_gate_is_open_when_every_row_in_depends_on_is_hit():
    rows = [row("a"), row("b"), row("c", 2, depends_on=["a", "b"])]
    assert score_of(rows, {"a": HIT, "b": HIT, "c": HIT}).score == 1.0
    card = score_of(rows, {"a": HIT, "b": MISS, "c": HIT})
    assert card.earned == 1.0
    assert card.possible == 4.0, "a row behind a closed gate stays in W, else skipping the first step would pay"


def test_section_3_a_dangling_id_is_never_hit():
    card = score_of([row("a"), row("b", depends_on="zz")], {"a": HIT, "b": HIT})
    assert card.earned == 1.0
    assert bounds(card) == (0.5, 0.5)


def test_section_3_only_direct_dependencies_count():
    rows = [row("a"), row("b", depends_on="a"), row("c", depends_on="b")]
    assert score_of(rows, {"a": MISS, "b": HIT, "c": HIT}).earned == 1.0


def test_section_3_a_row_that_depends_on_itself_needs_its_own_hit():
    rows = [row("a", depends_on="a"), row("b")]
    assert score_of(rows, {"a": HIT, "b": MISS}).score == 0.5
    assert score_of(rows, {"a": MISS, "b": MISS}).score == 0.0


def test_section_3_hurdle_rows_stay_in_w_and_never_earn():
    card = score_of([row("a", 3), row("h", 1, hurdle=True)], {"a": HIT, "h": MISS})
    assert (card.possible, card.earned, card.score, card.fatal) == (4.0, 3.0, 0.75, False)


def test_section_3_a_hurdle_hit_is_fatal_and_earned_still_tells_what_was_there():
    card = score_of([row("a", 3), row("h", 0, hurdle=True)], {"a": HIT, "h": HIT})
    assert (card.score, card.fatal, card.earned, bounds(card)) == (0.0, True, 3.0, (0.0, 0.0))


def test_section_3_negative_rows_lower_e_only_and_have_no_gate():
    card = score_of([row("a", 4), row("n", -1, depends_on="a")], {"a": MISS, "n": HIT})
    assert (card.possible, card.earned) == (4.0, -1.0)
    assert card.rows[1].gate == "open"


def test_section_3_a_hurdle_of_negative_weight_is_a_hurdle():
    card = score_of([row("a"), row("h", -5, hurdle=True)], {"a": HIT, "h": MISS})
    assert (card.score, card.possible, card.earned) == (1.0, 1.0, 1.0)
    assert score_of([row("a"), row("h", -5, hurdle=True)], {"a": HIT, "h": HIT}).earned == 1.0


def test_section_3_a_negative_row_as_a_gate_opens_when_it_is_hit():
    rows = [row("a", 2), row("n", -1), row("b", 2, depends_on="n")]
    assert score_of(rows, {"a": HIT, "n": HIT, "b": HIT}).earned == 3.0
    assert score_of(rows, {"a": HIT, "n": MISS, "b": HIT}).earned == 2.0


def test_section_3_the_score_is_clamped():
    assert score_of([row("a"), row("n", -5)], {"a": HIT, "n": HIT}).score == 0.0


def test_section_3_unjudged_rows_stay_in_w():
    assert score_of([row("a"), row("b", 3)], {"a": HIT}).possible == 4.0


@pytest.mark.parametrize("weights", [(0.1, 0.1, 0.1), (1e15, 1.0, 1e-15), (1 / 3, 2 / 7, 5 / 11)])
def test_section_3_every_row_hit_is_exactly_1(weights):
    rows = [row(str(n), weight) for n, weight in enumerate(weights)]
    assert score_of(rows, {r["id"]: HIT for r in rows}).score == 1.0


# --- weights of 0 -----------------------------------------------------------------------------------------------


def test_section_3_without_positive_weights_and_hurdles_rows_of_weight_0_count_as_1():
    rows = [{"id": i, "scores": FIFTHS} for i in "abcd"]
    card = score_of(
        rows, {i: {"hit": level > 0, "level": level} for i, level in zip("abcd", (0, 0.5, 1, 1), strict=True)}
    )
    assert (card.possible, card.score) == (4.0, 0.625)
    card = score_of([row("a", 0), row("n", -1)], {"a": HIT, "n": HIT})
    assert (card.possible, card.earned) == (1.0, 0.0)


def test_section_3_beside_a_hurdle_or_a_positive_weight_they_stay_0():
    card = score_of([row("a", 0), row("h", 0, hurdle=True)], {"a": HIT, "h": MISS})
    assert card.error.startswith("scorer_error: ")
    assert card.score is card.score_lo is card.score_hi is None
    assert score_of([row("a", 0), row("b", 1)], {"a": HIT, "b": MISS}).score == 0.0


def test_section_3_still_nothing_positive_is_a_scorer_error_with_the_rest_reported():
    card = score_of([row("n", -1), row("h", -1, hurdle=True)], {"n": HIT, "h": HIT})
    assert card.error.startswith("scorer_error: ")
    assert (card.score, card.fatal, card.coverage, card.possible, card.earned) == (None, True, 1.0, 0.0, -1.0)


# --- levels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "level", "snapped"),
    [
        ((0, 0.3, 0.6, 1.0), 0.8, 0.6),
        ((0, 0.5, 1), 0.75, 0.5),
        ((0, 0.5, 1), 0.7500001, 1.0),
        ((0, 0.1, 0.3), 0.2, 0.1),
        ((0.2, 0.8), 0, 0.2),
        ((0.2, 0.8), 1, 0.8),
        ((0, 1), 0.5, 0.0),
        ((1, 0.5, 0), 0.25, 0.0),
        ((0, 1), -0.0, 0.0),
    ],
)
def test_section_3_a_level_outside_the_table_snaps_to_the_nearest_and_ties_to_the_lower(table, level, snapped):
    assert snap_level(table, level) == snapped
    assert snap_level(dict.fromkeys(table, "text"), level) == snapped


@pytest.mark.parametrize("level", [75, 7, -0.1, 1.0000001, math.nan, math.inf, True, "0.5", None])
def test_section_3_a_level_outside_0_to_1_raises(level):
    with pytest.raises(ValueError, match="is not a number from 0 to 1"):
        snap_level((0, 1), level)


def test_section_3_score_raises_on_a_slip_of_scale_and_names_the_row():
    with pytest.raises(ValueError, match="g: level 75 is not a number from 0 to 1"):
        score_of([graded("g")], {"g": {"hit": True, "level": 75}})


def test_section_3_a_level_that_is_present_is_authoritative_for_score_and_gates():
    rows = [graded("g"), row("b", 3, depends_on="g")]
    card = score_of(rows, {"g": {"hit": False, "level": 0.5}, "b": HIT})
    assert (card.earned, card.rows[0].hit, card.rows[0].level) == (3.5, True, 0.5)
    card = score_of(rows, {"g": {"hit": True, "level": 0.2}, "b": HIT})
    assert (card.earned, card.rows[0].hit, card.rows[1].gate) == (0.0, False, "closed")
    assert score_of(rows, {"g": {"level": 1}, "b": HIT}).earned == 4.0


@pytest.mark.parametrize("level", [0.3, 75, -1, math.nan, "high", None, [1]])
@pytest.mark.parametrize("other", [row("b", 2), row("b", -2), row("b", 0, hurdle=True), row("b", 2, levels=FIFTHS)])
def test_section_3_on_any_other_row_a_level_is_ignored_whatever_its_value(level, other):
    rows = [row("a", 4), other]
    for hit in (True, False):
        assert score_of(rows, {"a": HIT, "b": {"hit": hit, "level": level}}) == score_of(
            rows, {"a": HIT, "b": {"hit": hit}}
        )


def test_section_3_without_a_level_hit_stands_for_the_highest_level_or_0():
    table = {"0.2": "some", "0.8": "most"}
    card = score_of([graded("a", levels=table), graded("b", levels=table)], {"a": HIT, "b": MISS})
    assert card.levels == {"a": 0.8, "b": 0.0}
    assert card.earned == 0.8


def test_section_3_levels_lists_the_graded_rows_that_have_a_verdict():
    assert score_of([graded("g"), graded("u"), row("a")], {"g": {"level": 1}, "a": HIT}).levels == {"g": 1.0}


# --- verdicts ---------------------------------------------------------------------------------------------------


def test_section_3_verdicts_may_be_mappings_or_objects():
    rows = spec(row("a"), graded("g"))
    expected = score(rows, {"a": HIT, "g": {"hit": True, "level": 0.5}})
    assert score(rows, {"a": RowVerdict(True), "g": RowVerdict(True, 0.5)}) == expected
    assert score(rows, {"a": SimpleNamespace(hit=True, level=None), "g": RowVerdict(True, 0.5)}) == expected


def test_section_3_a_null_hit_is_no_verdict():
    assert score_of([row("a"), row("b")], {"a": {"hit": None}, "b": HIT}).coverage == 0.5


@pytest.mark.parametrize(
    "verdict", [{"hit": "true"}, {"hit": 1}, {"hit": 0.0, "level": 1}, {}, {"met": True}, True, None, "hit"]
)
def test_section_3_a_verdict_that_is_none_raises_and_names_the_row(verdict):
    with pytest.raises(ValueError, match=r"^g: "):
        score_of([graded("g")], {"g": verdict})


def test_section_3_a_verdict_on_an_id_that_is_no_row_raises_and_names_it():
    with pytest.raises(ValueError, match=r"does not have: b, 7$"):
        score_of([row("a")], {"a": HIT, "b": HIT, 7: HIT})


# --- bounds -----------------------------------------------------------------------------------------------------


def test_section_3_bounds_of_a_lost_positive_row():
    assert bounds(score_of([row("a"), row("b", 3)], {"a": HIT})) == (0.25, 1.0)


def test_section_3_a_lost_graded_row_counts_as_full_in_the_upper_bound():
    assert bounds(score_of([row("a"), graded("g", levels={"0.2": "some", "0.8": "most"})], {"a": HIT})) == (0.5, 1.0)


def test_section_3_bounds_of_a_lost_negative_row():
    assert bounds(score_of([row("a", 4), row("n", -1)], {"a": HIT})) == (0.75, 1.0)


def test_section_3_bounds_of_a_lost_hurdle_row():
    card = score_of([row("a"), row("h", 0, hurdle=True)], {"a": HIT})
    assert (card.score, bounds(card), card.fatal) == (1.0, (0.0, 1.0), False)


def test_section_3_a_fatal_hit_leaves_no_room_whatever_is_lost():
    card = score_of([row("a"), row("h", 0, hurdle=True), row("i", 0, hurdle=True)], {"h": HIT})
    assert (card.score, bounds(card)) == (0.0, (0.0, 0.0))


def test_section_3_bounds_of_a_lost_gate_and_the_row_behind_it():
    card = score_of([row("a"), row("b", 3, depends_on="a")], {"b": HIT})
    assert (card.score, bounds(card)) == (0.0, (0.0, 1.0))
    assert [r.gate for r in card.rows] == ["open", "unknown"]


def test_section_3_a_gate_that_one_missed_row_closes_is_closed_whatever_the_lost_one_would_say():
    card = score_of([row("a"), row("m"), row("b", 2, depends_on=["a", "m"])], {"m": MISS, "b": HIT})
    assert card.rows[2].gate == "closed"
    assert bounds(card) == (0.0, 0.25)


def test_section_3_a_gate_on_a_lost_violation_is_open_above_and_closed_below():
    card = score_of([row("a", 2), row("n", -1), row("b", 2, depends_on="n")], {"a": HIT, "b": HIT})
    assert bounds(card) == (0.25, 1.0)


# --- parts ------------------------------------------------------------------------------------------------------


def test_section_3_contributions_and_tags_add_up_to_earned():
    rows = [
        row("a", 4, tag="facts"),
        graded("g", 2, tag="facts"),
        row("n", -3, tag="form"),
        row("h", 1, hurdle=True, tag="form"),
        row("u", 5),
        row("c", 1, depends_on="u", tag="form"),
    ]
    card = score_of(rows, {"a": HIT, "g": {"level": 0.5}, "n": HIT, "h": MISS, "c": HIT})
    assert {r.id: r.contribution for r in card.rows} == {"a": 4, "g": 1, "n": -3, "h": 0, "u": 0, "c": 0}
    assert asdict(card)["by_tag"] == {
        "facts": {"earned": 5.0, "possible": 6.0},
        "form": {"earned": -3.0, "possible": 2.0},
        "": {"earned": 0.0, "possible": 5.0},
    }
    assert card.earned == 2.0
    assert [(r.id, r.judged, r.hit) for r in card.rows if not r.judged] == [("u", False, None)]


def test_section_3_a_scorecard_is_json():
    card = score_of([row("a"), graded("g")], {"g": {"level": 0.4}})
    assert json.loads(json.dumps(asdict(card)))["rows"][1]["level"] == 0.5


# --- documentation ----------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"


def test_section_3_the_worked_example_of_the_docs_is_right():
    rubric = (DOCS / "rubric-json.md").read_text("utf-8").split("```json\n")[1].split("```")[0]
    verdicts = {"total": HIT, "close": {"hit": True, "level": 0.5}, "invented": HIT, "empty": MISS}
    card = score(RubricSpec.parse(rubric), verdicts)
    assert (card.earned, card.possible, card.coverage) == (3.0, 9.0, 0.8)
    assert (card.score, bounds(card)) == (3 / 9, (3 / 9, 5 / 9))
    assert [r.contribution for r in card.rows] == [3, 0, 2, -2, 0]
