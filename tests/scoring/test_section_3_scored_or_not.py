"""SPEC 3 "Scored or not", and the fields of SPEC 7 that are on every outcome."""

import math
import warnings
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.rubric import RubricSpec
from rubric_env.scoring import (
    Fault,
    FaultKind,
    Judgement,
    OutcomeContext,
    RowVerdict,
    Usage,
    _outcome,
    not_delivered,
    settle,
    unscored,
)
from rubric_env.settings import HARBOR_DEFAULTS, JudgeSettings

TRAINING = JudgeSettings()
HARBOR = JudgeSettings(**HARBOR_DEFAULTS)
TEXT_FIELDS = {"judge_error_kind", "judge_evidence_level"}
FLAGS = {
    "judge_scored",
    "judge_degraded",
    "judge_called",
    "injection_suspected",
    "delivery_missing",
    "delivery_from_chat",
    "passed",
    "judge_cost_known",
    "judge_limiter_fallback",
}
NUMBERS = {
    "judge_coverage",
    "judge_unjudged",
    "judge_fault_count",
    "judge_fault_submission",
    "judge_seconds",
    "judge_evidence_pages",
    "judge_evidence_cut",
    "judge_score_lo",
    "judge_score_hi",
    "judge_level_fallback",
    "judge_evidence_unresolved",
    "judge_calls",
    "judge_reused",
    "judge_input_tokens",
    "judge_cached_tokens",
    "judge_output_tokens",
    "judge_cost_usd",
}


def rubric(*weights):
    return RubricSpec.parse([{"description": f"row {n}", "weight": weight} for n, weight in enumerate(weights)])


def judgement(spec, answers, **kinds):
    """`answers`: "+" hit, "-" miss, a letter a fault of that kind in `kinds` (timeout if it is not there)."""
    verdicts, faults = {}, {}
    for identity, answer in zip(spec.ids, answers, strict=True):
        if answer in "+-":
            verdicts[identity] = RowVerdict(answer == "+")
        else:
            faults[identity] = Fault(kinds.get(answer, FaultKind.TIMEOUT))
    return Judgement(verdicts, faults, Usage(calls=2))


def settled(answers, settings=TRAINING, weights=None, **kinds):
    spec = rubric(*(weights or [1] * len(answers)))
    return settle(spec, judgement(spec, answers, **kinds), settings)


def test_section_3_everything_judged_is_scored():
    outcome = settled("++-+")
    assert (outcome.status, outcome.scored, outcome.reward) == ("success", True, 0.75)
    assert (outcome.exit_code, outcome.exit_reason) == (None, "")


def test_section_7_some_rows_unjudged_is_scored_with_a_reason_and_no_exit_code():
    outcome = settled("++-+++++++t", weights=[1] * 10 + [0])
    assert (outcome.status, outcome.reward, outcome.exit_code) == ("success", 0.9, None)
    assert outcome.exit_reason == "1 of 11 rows unjudged: timeout (R11)"
    assert outcome.fields["judge_degraded"] is True


@pytest.mark.parametrize("settings", [TRAINING, HARBOR])
@pytest.mark.parametrize("answers", ["t", "tttt"])
def test_section_3_nothing_judged_is_unscored_also_with_one_row(answers, settings):
    outcome = settled(answers, settings)
    assert (outcome.status, outcome.scored, outcome.reward, outcome.exit_code) == (
        "error",
        False,
        None,
        "judge:timeout",
    )
    assert outcome.exit_reason.startswith("nothing was judged; ")


@pytest.mark.parametrize(
    ("answers", "scored"),
    [("+++tt", True), ("++ttt", False), ("+t", True), ("++++++tttt", True), ("+++++ttttt", False), ("ttt++++++", True)],
)
def test_section_7_systemic_is_more_than_the_fraction_and_at_least_the_minimum(answers, scored):
    outcome = settled(answers, HARBOR)
    assert outcome.scored is scored
    assert outcome.exit_code == (None if scored else "judge:timeout")
    if not scored:
        assert outcome.exit_reason.startswith("more than 40% of the rows have no verdict; ")


def test_section_7_a_share_that_is_exactly_the_fraction_is_not_more():
    settings = JudgeSettings(max_uncertainty=None, systemic_fraction=0.58)
    assert settled("t" * 29 + "+" * 21, settings).scored, "0.58 × 50 is 29, though floats make it less"
    assert not settled("t" * 30 + "+" * 20, settings).scored


def test_section_3_in_training_a_wide_gap_between_the_bounds_is_unscored():
    lost_hurdle = RubricSpec.parse(
        [{"text": "a", "weight": 1}, {"text": "h", "hurdle": True}, {"text": "c", "weight": 1}]
    )
    half = judgement(lost_hurdle, "+t+")
    outcome = settle(lost_hurdle, half, TRAINING)
    assert (outcome.scored, outcome.exit_code) == (False, "judge:timeout")
    assert outcome.exit_reason == (
        "the score lies between 0.000 and 1.000, which is wider than 0.1; 1 of 3 rows unjudged: timeout (R02)"
    )
    assert settle(lost_hurdle, half, HARBOR).reward == 1.0, "in a Harbor verifier the score stands"
    assert not settled("t++++", weights=[30, 2, 2, 2, 2]).scored


def test_section_3_a_gap_that_is_exactly_the_limit_is_not_wider():
    for hits in range(10):
        answers = "+" * hits + "-" * (9 - hits) + "t"
        assert settled(answers).scored, "0.8 − 0.7 is more than 0.1 in floats"
    assert not settled("+++++++++t", weights=[1] * 9 + [1.001]).scored


def test_section_3_binary_rewards_follow_the_threshold_and_warn_once():
    _outcome._warn_of_binary_rewards.cache_clear()
    binary = JudgeSettings(reward_mode="binary")
    with pytest.warns(UserWarning, match="binary rewards"):
        assert settled("+++-", binary).reward == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settled("++--", binary).reward == 0.0


def test_section_3_passed_is_reported_in_every_mode_and_never_of_an_unscored_rollout():
    assert settled("+++-").fields["passed"] is True
    assert settled("++--").fields["passed"] is False
    assert settled("+++-", JudgeSettings(pass_compare="gt")).fields["passed"] is False
    assert settled("++++", JudgeSettings(pass_compare="gt")).fields["passed"] is True
    assert settled("+" * 9 + "t" * 7).fields["passed"] is False


def test_section_3_the_threshold_is_met_by_decimals_that_floats_put_below_it():
    outcome = settled("++-", weights=[0.3, 0.3, 0.2])
    assert outcome.card.score < 0.75, "or this test shows nothing"
    assert outcome.fields["passed"] is True


@pytest.mark.filterwarnings("ignore:binary rewards")
def test_section_3_in_binary_mode_bounds_on_both_sides_of_the_threshold_are_unscored_everywhere():
    binary = JudgeSettings(reward_mode="binary", **HARBOR_DEFAULTS)
    outcome = settled("+++t", binary)
    assert outcome.scored and outcome.reward == 1.0
    outcome = settled("++-t", binary)
    assert outcome.scored is False
    assert outcome.exit_reason.startswith(
        "the score lies between 0.500 and 0.750, on both sides of the threshold 0.75; "
    )
    assert settled("+--t", binary).reward == 0.0
    assert settled("++-t", HARBOR).reward == 0.5
    assert settled("+++t", JudgeSettings(reward_mode="binary")).scored is False, "in training the gap counts too"


def test_section_7_mixed_faults_take_the_exit_code_of_the_kind_with_most_rows():
    kinds = {"t": FaultKind.TIMEOUT, "p": FaultKind.UNPARSEABLE, "r": FaultKind.REFUSAL}
    outcome = settled("tppr", **kinds)
    assert (outcome.exit_code, outcome.fields["judge_error_kind"]) == ("judge:parse_error", "unparseable")
    assert outcome.exit_reason.endswith("unparseable (R02, R03); timeout (R01); refusal (R04)")
    outcome = settled("rt", **kinds)
    assert (outcome.exit_code, outcome.fields["judge_error_kind"]) == ("judge:timeout", "timeout")


def test_section_7_refusals_and_the_like_are_also_counted_by_themselves():
    kinds = {
        "r": FaultKind.REFUSAL,
        "c": FaultKind.CONTENT_FILTER,
        "l": FaultKind.CONTEXT_LENGTH,
        "t": FaultKind.TIMEOUT,
    }
    fields = settled("rclt", **kinds).fields
    assert (fields["judge_fault_count"], fields["judge_fault_submission"]) == (4, 3)


def test_section_3_a_rubric_that_cannot_be_scored_is_a_scorer_error():
    spec = rubric(-1, -1)
    outcome = settle(spec, judgement(spec, "+t"), HARBOR)
    assert (outcome.status, outcome.reward, outcome.exit_code) == ("error", None, "judge:scorer_error")
    assert outcome.exit_reason.startswith("scorer_error: no row has a positive weight")
    assert (outcome.fields["judge_error_kind"], outcome.fields["judge_unjudged"]) == ("scorer_error", 1)
    assert (outcome.fields["judge_score_lo"], outcome.fields["judge_score_hi"]) == (0.0, 1.0)


def test_section_7_exit_reason_is_one_line_of_bearable_length():
    spec = rubric(*[1] * 40)
    faults = {identity: Fault(FaultKind.SERVER, "502\nBad gateway") for identity in spec.ids}
    outcome = settle(spec, Judgement({}, faults), TRAINING)
    assert outcome.exit_reason == (
        "nothing was judged; 40 of 40 rows unjudged: "
        "server (R01, R02, R03, R04, R05, R06, R07, R08 and 32 more: 502 Bad gateway)"
    )


def test_section_7_a_row_must_be_in_one_half_of_a_judgement():
    spec = rubric(1, 1)
    hit, fault = RowVerdict(True), Fault(FaultKind.TIMEOUT)
    for verdicts, faults, named in (
        ({"R01": hit}, {}, "R02"),
        ({"R01": hit, "R02": hit}, {"R02": fault}, "R02"),
        ({"R01": hit, "R02": hit, "R03": hit}, {}, "R03"),
    ):
        with pytest.raises(ValueError, match=f"one of verdicts and faults: {named}$"):
            settle(spec, Judgement(verdicts, faults), TRAINING)


# --- fields -----------------------------------------------------------------------------------------------------


def test_section_7_fields_of_a_judged_rollout():
    spec = RubricSpec.parse(
        [{"text": "a", "weight": 99}, {"text": "g", "weight": 0, "scores": {"0": "n", "1": "y"}}, {"text": "c"}]
    )
    verdicts = {
        "R01": RowVerdict(True, evidence_unresolved=True),
        "R02": RowVerdict(True, 1.0, level_fallback=True, evidence_unresolved=True),
    }
    faults = {"R03": Fault(FaultKind.CONTENT_FILTER, "flagged")}
    usage = Usage(calls=5, input_tokens=1000, cached_tokens=600, output_tokens=70, cost_usd=0.125)
    context = OutcomeContext(3, True, {"files": 0, "missing": False, "from_chat": True, "stray": 1}, 2, "cut", True)
    outcome = settle(spec, Judgement(verdicts, faults, usage, seconds=12.5, reused=1), TRAINING, context)
    assert dict(outcome.fields) == {
        "judge_scored": True,
        "judge_coverage": 2 / 3,
        "judge_unjudged": 1,
        "judge_degraded": True,
        "judge_error_kind": "content_filter",
        "judge_fault_count": 1,
        "judge_fault_submission": 1,
        "judge_seconds": 12.5,
        "judge_evidence_pages": 3,
        "judge_evidence_cut": 2,
        "judge_evidence_level": "cut",
        "judge_called": True,
        "judge_score_lo": 1.0,
        "judge_score_hi": 1.0,
        "judge_level_fallback": 1,
        "judge_evidence_unresolved": 2,
        "injection_suspected": True,
        "delivery_missing": False,
        "delivery_from_chat": True,
        "passed": True,
        "judge_calls": 5,
        "judge_reused": 1,
        "judge_limiter_fallback": True,
        "judge_input_tokens": 1000,
        "judge_cached_tokens": 600,
        "judge_output_tokens": 70,
        "judge_cost_usd": 0.125,
        "judge_cost_known": True,
    }
    assert outcome.delivery["stray"] == 1
    assert outcome.metrics()["judge_coverage"] == pytest.approx(2 / 3)


def test_section_7_an_unknown_cost_is_0_and_said_to_be_unknown():
    spec = rubric(1)
    outcome = settle(spec, Judgement({"R01": RowVerdict(True)}, {}, Usage(calls=1, cost_usd=None)), TRAINING)
    assert (outcome.fields["judge_cost_usd"], outcome.fields["judge_cost_known"]) == (0.0, False)


def test_section_6_nothing_delivered_is_a_reward_of_0_that_no_filter_removes():
    spec = RubricSpec.parse(
        [{"text": "a", "weight": 2, "tag": "t"}, {"text": "h", "hurdle": True}, {"text": "n", "weight": -1}]
    )
    outcome = not_delivered(
        spec, TRAINING, OutcomeContext(delivery={"files": 0, "missing": True, "from_chat": False, "stray": 2})
    )
    assert (outcome.status, outcome.scored, outcome.reward, outcome.exit_code) == ("success", True, 0.0, None)
    assert outcome.exit_reason == "nothing delivered: no file and no reply"
    fields = outcome.fields
    assert (fields["judge_coverage"], fields["judge_unjudged"], fields["judge_degraded"]) == (1.0, 0, False)
    assert (fields["judge_called"], fields["delivery_missing"], fields["passed"]) == (False, True, False)
    assert (fields["judge_score_lo"], fields["judge_score_hi"], fields["judge_error_kind"]) == (0.0, 0.0, "")
    assert outcome.card.by_tag["t"].possible == 2.0
    assert (outcome.card.score, outcome.card.coverage, outcome.card.fatal) == (0.0, 1.0, False)
    assert outcome.delivery["stray"] == 2


def test_section_6_nothing_delivered_is_decided_before_anything_else():
    assert not_delivered(rubric(-1), TRAINING, OutcomeContext()).reward == 0.0
    generous = JudgeSettings(pass_threshold=0, reward_mode="binary")
    assert not_delivered(rubric(1), generous, OutcomeContext()).reward == 0.0


def test_section_6_a_reply_that_does_not_count_is_named():
    strict = JudgeSettings(chat_fallback=False)
    assert "JUDGE_CHAT_FALLBACK is off" in not_delivered(rubric(1), strict, OutcomeContext()).exit_reason
    lenient = JudgeSettings(chat_fallback=False, lenient_delivery=True)
    assert "no reply" in not_delivered(rubric(1), lenient, OutcomeContext()).exit_reason


def test_section_9_a_rollout_that_is_lost_before_any_call_is_unscored():
    outcome = unscored(FaultKind.SCORER_ERROR, "rubric.json: 2 rows cannot be read\n  row 1: no text", rows=3)
    assert (outcome.status, outcome.scored, outcome.reward) == ("error", False, None)
    assert outcome.exit_code == "judge:scorer_error"
    assert outcome.exit_reason == "scorer_error: rubric.json: 2 rows cannot be read row 1: no text"
    fields = outcome.fields
    assert (fields["judge_coverage"], fields["judge_unjudged"], fields["judge_called"]) == (0.0, 3, False)
    assert (fields["judge_score_lo"], fields["judge_score_hi"]) == (0.0, 1.0)
    assert unscored(FaultKind.NO_CREDENTIAL, "no key").exit_code == "judge:no_credential"
    assert unscored(FaultKind.INTERNAL, "", context=OutcomeContext(injection_suspected=True)).fields[
        "injection_suspected"
    ]


OUTCOMES = {
    "judged": lambda: settled("++-+"),
    "partly judged": lambda: settled("+++++++++++t"),
    "systemic": lambda: settled("+ttt"),
    "nothing judged": lambda: settled("t"),
    "no positive weight": lambda: settled("+", weights=[-1]),
    "nothing delivered": lambda: not_delivered(rubric(1), TRAINING, OutcomeContext()),
    "no rubric": lambda: unscored(FaultKind.SCORER_ERROR, "no rubric"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_section_7_every_field_is_on_every_outcome_and_metrics_are_finite_floats(name):
    outcome = OUTCOMES[name]()
    assert outcome.fields.keys() == TEXT_FIELDS | FLAGS | NUMBERS
    assert all(type(outcome.fields[flag]) is bool for flag in FLAGS)
    metrics = outcome.metrics()
    assert metrics.keys() == FLAGS | NUMBERS
    assert all(type(value) is float and math.isfinite(value) for value in metrics.values())
    assert metrics["judge_scored"] == outcome.scored == (outcome.reward is not None) == (outcome.status == "success")
    assert (outcome.exit_code is None) is outcome.scored
    assert outcome.exit_reason or outcome.fields["judge_unjudged"] == 0
    assert "\n" not in outcome.exit_reason


@given(
    st.lists(st.tuples(st.sampled_from("+-tpr"), st.integers(-2, 5), st.booleans()), min_size=1, max_size=10),
    st.sampled_from([TRAINING, HARBOR]),
)
def test_section_3_a_scored_rollout_is_always_within_the_rules(rows, settings):
    spec = RubricSpec.parse([{"text": "x", "weight": weight, "hurdle": hurdle} for _, weight, hurdle in rows])
    kinds = {"t": FaultKind.TIMEOUT, "p": FaultKind.UNPARSEABLE, "r": FaultKind.REFUSAL}
    outcome = settle(spec, judgement(spec, [answer for answer, _, _ in rows], **kinds), settings)
    lost, fields = Counter(answer in "+-" for answer, _, _ in rows)[False], outcome.fields
    assert fields["judge_unjudged"] == lost
    assert fields["judge_score_lo"] <= fields["judge_score_hi"]
    if outcome.scored:
        assert 0 <= outcome.reward <= 1
        assert lost < len(rows)
        assert lost < 2 or lost <= 0.4 * len(rows) + 1e-9
        if settings is TRAINING:
            assert fields["judge_score_hi"] - fields["judge_score_lo"] <= 0.1 + 1e-9
    else:
        assert outcome.reward is None
        assert outcome.card.error or lost > 0
