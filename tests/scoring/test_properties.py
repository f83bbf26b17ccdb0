"""What must hold for every rubric and every set of verdicts (SPEC 3)."""

from math import fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.rubric import RubricSpec
from rubric_env.scoring import score, snap_level

IDS = [f"R{n}" for n in range(6)]
HIT, MISS = {"hit": True}, {"hit": False}
levels = st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=2, max_size=5, unique=True)
weights = st.one_of(
    st.sampled_from([0, 1, -1, 0.1, 0.2, 0.3]), st.floats(-1e6, 1e6, allow_nan=False).filter(lambda w: abs(w) > 1e-6)
)
verdict_of = st.fixed_dictionaries({"hit": st.booleans()}, optional={"level": st.floats(0, 1)})


@st.composite
def rows_of(draw):
    rows = []
    for identity in IDS[: draw(st.integers(1, len(IDS)))]:
        row = {"id": identity, "description": "x", "weight": draw(weights), "hurdle": draw(st.booleans())}
        row["depends_on"] = draw(st.lists(st.sampled_from([*IDS, "none"]), max_size=2))
        row["tag"] = draw(st.sampled_from(["", "facts", "form"]))
        if draw(st.booleans()):
            row["scores"] = {str(level): "text" for level in draw(levels)}
        rows.append(row)
    return rows


@st.composite
def cases(draw, *, full=False):
    rows = draw(rows_of())
    verdicts = {}
    for row in rows:
        if full or draw(st.booleans()):
            verdicts[row["id"]] = draw(verdict_of)
    return rows, verdicts


def card_of(rows, verdicts):
    return score(RubricSpec.parse(rows), verdicts)


@given(cases(), st.randoms(use_true_random=False))
def test_section_3_the_order_of_rows_does_not_matter(case, random):
    rows, verdicts = case
    shuffled = random.sample(rows, len(rows))
    one, other = card_of(rows, verdicts), card_of(shuffled, verdicts)
    for name in (
        "score",
        "fatal",
        "coverage",
        "possible",
        "earned",
        "levels",
        "score_lo",
        "score_hi",
        "error",
        "by_tag",
        "by_type",
        "by_necessity",
    ):
        assert getattr(one, name) == getattr(other, name), name


@given(cases())
def test_section_3_the_score_lies_between_its_bounds_in_0_to_1(case):
    card = card_of(*case)
    if card.error:
        assert card.score is card.score_lo is card.score_hi is None
    else:
        assert 0 <= card.score_lo <= card.score <= card.score_hi <= 1


@given(cases(full=True))
def test_section_3_at_full_coverage_the_bounds_are_the_score(case):
    card = card_of(*case)
    assert card.coverage == 1.0
    assert card.score_lo == card.score == card.score_hi


@given(cases(), st.fixed_dictionaries(dict.fromkeys(IDS, verdict_of)))
def test_section_3_the_bounds_hold_whatever_the_lost_rows_turn_out_to_be(case, answers):
    rows, verdicts = case
    card = card_of(rows, verdicts)
    if not card.error:
        whole = card_of(rows, {row["id"]: answers[row["id"]] for row in rows} | verdicts)
        assert card.score_lo <= whole.score <= card.score_hi


@given(cases())
def test_section_3_the_parts_add_up_to_earned(case):
    card = card_of(*case)
    assert fsum(row.contribution for row in card.rows) == card.earned
    assert fsum(tag.earned for tag in card.by_tag.values()) == pytest.approx(card.earned, rel=1e-12, abs=1e-6)
    assert fsum(tag.possible for tag in card.by_tag.values()) == pytest.approx(card.possible, rel=1e-12)
    for name, tag in card.by_tag.items():
        assert fsum(row.contribution for row in card.rows if row.tag == name) == tag.earned


@given(cases(), st.sampled_from(IDS))
def test_section_3_one_more_hit_on_a_positive_row_never_lowers_the_score(case, identity):
    rows, verdicts = case
    row = next((row for row in rows if row["id"] == identity), None)
    if row is None or row["hurdle"] or row["weight"] < 0:
        return
    before, after = card_of(rows, verdicts), card_of(rows, {**verdicts, identity: HIT})
    if not before.error:
        assert after.score >= before.score
        assert after.score_lo >= before.score_lo


@given(cases(), st.sampled_from(IDS))
def test_section_3_one_more_negative_hit_never_raises_the_score_unless_it_opens_a_gate(case, identity):
    rows, verdicts = case
    row = next((row for row in rows if row["id"] == identity), None)
    if (
        row is None
        or not (row["hurdle"] or row["weight"] < 0)
        or any(identity in other["depends_on"] for other in rows)
    ):
        return
    before, after = card_of(rows, verdicts), card_of(rows, {**verdicts, identity: HIT})
    if not before.error:
        assert after.score <= before.score
        assert after.score_hi <= before.score_hi


@given(cases())
def test_section_3_a_hurdle_hit_is_0(case):
    rows, verdicts = case
    rows = [*rows, {"id": "h", "description": "x", "hurdle": True}, {"id": "p", "description": "x", "weight": 1}]
    card = card_of(rows, {**verdicts, "h": HIT})
    assert (card.score, card.score_lo, card.score_hi, card.fatal) == (0.0, 0.0, 0.0, True)


@given(levels, st.floats(0, 1))
def test_section_3_snapping_gives_a_nearest_level_and_is_idempotent(table, value):
    snapped = snap_level(table, value)
    assert snapped in table
    assert snap_level(table, snapped) == snapped
    assert all(abs(snapped - value) <= abs(level - value) + 1e-12 for level in table)


@given(st.lists(st.tuples(st.integers(-10, 10).filter(bool), st.booleans()), min_size=1, max_size=12))
def test_section_3_healthbench_arithmetic_is_earned_over_possible_before_the_clamp(items):
    """HealthBench: points of all met criteria, negative ones too, ÷ points of all positive criteria."""
    if not any(points > 0 for points, _ in items):
        return
    rows = [{"criterion": f"c{n}", "points": points} for n, (points, _) in enumerate(items)]
    card = card_of(rows, {f"R{n:02d}": {"hit": met} for n, (_, met) in enumerate(items, 1)})
    achieved = sum(points for points, met in items if met)
    total = sum(points for points, _ in items if points > 0)
    assert card.earned / card.possible == achieved / total
    assert card.score == min(max(achieved / total, 0), 1)
