"""SPEC 9: advantages over the scored rollouts of a group."""

import math
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.scoring import advantages

rewards = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=8)
kinds = st.sampled_from(["mean", "grpo", "rloo"])


def test_section_9_mean_is_reward_less_mean():
    assert advantages([1.0, 0.0, 0.5]) == [0.5, -0.5, 0.0]


def test_section_9_grpo_divides_by_the_standard_deviation_with_n_less_1_and_1e_4():
    group = [1.0, 0.0, 0.25, 0.5]
    expected = [(reward - fmean(group)) / (stdev(group) + 1e-4) for reward in group]
    assert advantages(group, "grpo") == pytest.approx(expected, rel=1e-12)


def test_section_9_rloo_leaves_one_out():
    group = [1.0, 0.0, 0.5]
    expected = [1.0 - 0.25, 0.0 - 0.75, 0.5 - 0.5]
    assert advantages(group, "rloo") == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["mean", "grpo", "rloo"])
@pytest.mark.parametrize("lost", [None, math.nan, math.inf, -math.inf])
def test_section_9_unscored_rollouts_get_0_and_stay_out_of_the_baseline(kind, lost):
    scored = advantages([1.0, 0.0, 0.25], kind)
    assert advantages([1.0, lost, 0.0, lost, 0.25], kind) == [scored[0], 0.0, scored[1], 0.0, scored[2]]


@pytest.mark.parametrize("kind", ["mean", "grpo", "rloo"])
@pytest.mark.parametrize("group", [[], [0.7], [None, 0.7], [None, None], [math.nan, 0.7]])
def test_section_9_fewer_than_two_scored_rollouts_have_no_advantage(kind, group):
    assert advantages(group, kind) == [0.0] * len(group)


@given(st.floats(0, 1), st.integers(2, 9), kinds)
def test_section_9_equal_rewards_have_exactly_no_advantage(reward, count, kind):
    assert advantages([reward] * count, kind) == [0.0] * count


@given(rewards, kinds)
def test_section_9_advantages_are_finite_and_sum_to_0(group, kind):
    values = advantages(group, kind)
    assert len(values) == len(group)
    assert all(map(math.isfinite, values))
    assert math.fsum(values) == pytest.approx(0, abs=1e-9)


def test_section_9_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'median' is none of mean, grpo, rloo"):
        advantages([0.1, 0.2], "median")
