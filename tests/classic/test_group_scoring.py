"""SPEC 9 and the traps of RubricGroup: reward, advantage and steps are those of the whole reward, in every order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from rubric_env.classic import HarborRubricGroup
from tests.classic.conftest import make_state, score, vf


def length_rubric() -> Any:
    """Another member with its own opinion: 0.5 for every reply."""

    def flat(completion: Any) -> float:
        return 0.5

    return vf.Rubric(funcs=[flat], weights=[0.2])


def monitor() -> Any:
    rubric = vf.Rubric()

    async def num_turns(state: Any) -> int:
        return len(state["trajectory"])

    rubric.add_metric(num_turns)
    return rubric


async def test_alone_rewards_are_scores_and_advantages_are_centred(make_rubric: Any) -> None:
    states = await score(make_rubric(), [make_state("GOOD"), make_state("HALF"), make_state("BAD")])
    assert [s["reward"] for s in states] == [1.0, 0.75, 0.0]
    mean = 1.75 / 3
    assert [s["advantage"] for s in states] == pytest.approx([1 - mean, 0.75 - mean, -mean])
    for state in states:
        assert state["trajectory"][0]["reward"] == state["reward"]
        assert state["trajectory"][0]["advantage"] == state["advantage"]
        assert state["metrics"]["judge_advantage"] == state["advantage"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("group", [vf.RubricGroup, HarborRubricGroup])
async def test_in_a_group_in_any_order_the_whole_reward_counts(make_rubric: Any, group: Any, order: Any) -> None:
    members = [make_rubric(), length_rubric(), monitor()]
    states = await score(group([members[n] for n in order]), [make_state("GOOD", steps=2), make_state("BAD", steps=2)])
    assert [s["reward"] for s in states] == pytest.approx([1.1, 0.1])
    assert [s["advantage"] for s in states] == pytest.approx([0.5, -0.5])
    for state in states:
        assert [step["reward"] for step in state["trajectory"]] == [state["reward"]] * 2
        assert [step["advantage"] for step in state["trajectory"]] == [state["advantage"]] * 2
        assert state["metrics"]["num_turns"] == 2
        assert state["metrics"]["judge_advantage"] == pytest.approx(state["advantage"])


@pytest.mark.parametrize("group", [vf.RubricGroup, HarborRubricGroup])
async def test_an_unscored_rollout_keeps_nothing_of_what_other_rubrics_gave(make_rubric: Any, group: Any) -> None:
    for members in ([make_rubric(), length_rubric()], [length_rubric(), make_rubric()]):
        lost, good = await score(group(members), [make_state("LOST"), make_state("GOOD")])
        assert [lost["reward"], lost["advantage"], lost["trajectory"][0]["reward"]] == [0.0, 0.0, 0.0]
        assert good["reward"] == pytest.approx(1.1)


async def test_step_values_that_the_environment_set_stay(make_rubric: Any) -> None:
    for build in (
        lambda: vf.RubricGroup([make_rubric(), monitor()]),
        lambda: HarborRubricGroup([monitor(), make_rubric()]),
    ):
        state = make_state("GOOD", steps=2)
        state["trajectory"][0]["reward"] = 0.3
        await score(build(), [state, make_state("BAD")])
        assert [step["reward"] for step in state["trajectory"]] == [0.3, 1.0]


async def test_an_unscored_rollout_is_marked_and_left_out_of_the_baseline(make_rubric: Any) -> None:
    states = await score(make_rubric(), [make_state("GOOD"), make_state("BAD"), make_state("LOST")])
    lost = states[2]
    assert isinstance(lost["error"], vf.Error)
    assert "auth" in str(lost["error"])
    assert lost["reward"] == 0.0
    assert [s["advantage"] for s in states] == pytest.approx([0.5, -0.5, 0.0])
    assert [s["metrics"]["judge_scored"] for s in states] == [1.0, 1.0, 0.0]
    assert lost["trajectory"][0]["advantage"] == 0.0


async def test_a_group_in_which_all_got_the_same_reward_is_counted(make_rubric: Any) -> None:
    flat = await score(make_rubric(), [make_state("HALF"), make_state("HALF")])
    assert [s["metrics"]["judge_flat_group"] for s in flat] == [1.0, 1.0]
    varied = await score(make_rubric(), [make_state("HALF"), make_state("GOOD")])
    assert [s["metrics"]["judge_flat_group"] for s in varied] == [0.0, 0.0]


async def test_section_8_a_group_whose_rollouts_were_shown_unequal_evidence_is_flagged(
    make_rubric: Any, tmp_path: Any
) -> None:
    for name, size in (("short", 1), ("long", 3000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.md").write_text("A paragraph of the report.\n\n" * size)
    info = {name: {"submission_dir": str(tmp_path / name)} for name in ("short", "long")}
    rubric = make_rubric(settings={"evidence_tokens": 2000})
    for names, flagged in ((("short", "long"), 1.0), (("short", "short"), 0.0), (("long", "long"), 0.0)):
        states = await score(rubric, [make_state("GOOD", info=info[name]) for name in names])
        assert [s["metrics"]["judge_scored"] for s in states] == [1.0, 1.0]
        assert [s["metrics"]["judge_uneven_evidence"] for s in states] == [flagged, flagged]


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
async def test_other_advantages(make_rubric: Any, kind: str) -> None:
    states = await score(make_rubric(advantage=kind), [make_state("GOOD"), make_state("BAD")])
    expected = {"grpo": 0.5 / (0.5**0.5 + 1e-4), "rloo": 1.0}[kind]
    assert [s["advantage"] for s in states] == pytest.approx([expected, -expected])


async def test_without_a_group_func_nothing_asks_for_group_scoring_and_settling_still_works(make_rubric: Any) -> None:
    rubric = make_rubric(advantage=None)
    assert not rubric.has_group_rewards
    states = await score(vf.RubricGroup([rubric, monitor()]), [make_state("GOOD"), make_state("BAD")])
    assert [s["advantage"] for s in states] == pytest.approx([0.5, -0.5])


@pytest.mark.parametrize(
    "wrap", [lambda r: r, lambda r: vf.RubricGroup([r, monitor()]), lambda r: HarborRubricGroup([monitor(), r])]
)
async def test_independent_scoring_works_despite_the_group_func(make_rubric: Any, wrap: Any) -> None:
    state = make_state("HALF")
    rubric = wrap(make_rubric())
    await rubric.score_rollout(state)
    await rubric.cleanup(state)
    assert (state["reward"], state["advantage"]) == (0.75, 0.0)
    assert state["trajectory"][0]["reward"] == 0.75
    assert state["metrics"]["judge_coverage"] == 1.0


async def test_two_named_rubrics_live_in_one_group(make_rubric: Any) -> None:
    strict = make_rubric(name="strict")
    lenient = make_rubric(name="lenient", rubric=[{"id": "R1", "description": "Anything is said.", "weight": 1}])
    (state,) = await score(HarborRubricGroup([strict, lenient]), [make_state("HALF")])
    assert state["reward"] == pytest.approx(1.75)
    assert state["metrics"]["strict_judge_coverage"] == state["metrics"]["lenient_judge_coverage"] == 1.0
    with pytest.raises(ValueError, match="name="):
        HarborRubricGroup([make_rubric(), make_rubric()])


async def test_user_funcs_sync_and_async_are_added_as_on_any_rubric(make_rubric: Any) -> None:
    rubric = make_rubric()

    async def brevity(completion: Any) -> float:
        return 1.0

    def asks_for_ours(verdict_parser: Any, judge_model: str, judge_client: Any) -> float:
        parsed = verdict_parser.parse('{"R1": {"hit": true}}')
        return float(judge_model == "judge-model" and judge_client is not None and parsed.verdicts["R1"].hit is True)

    rubric.add_reward_func(brevity, weight=0.5)
    rubric.add_metric(asks_for_ours)
    (state,) = await score(rubric, [make_state("GOOD")])
    assert state["reward"] == 1.5
    assert state["metrics"]["asks_for_ours"] == 1.0


async def test_equal_submissions_of_a_group_are_asked_once(make_rubric: Any, judge: Any) -> None:
    await score(make_rubric(), [make_state("GOOD") for _ in range(4)])
    assert len(judge.calls) == 1


async def test_nothing_of_the_judging_stays_on_the_state_but_its_result(make_rubric: Any) -> None:
    (state,) = await score(make_rubric(), [make_state("GOOD")])
    assert {k for k in state if k.startswith("_judge")} == set()
    assert state["judge_result"]["status"] == "success"


@pytest.mark.parametrize("nested", [False, True])
async def test_every_rubric_of_a_plain_group_shows_the_final_advantage_and_lets_go_of_its_memory(
    make_rubric: Any, nested: bool
) -> None:
    first, second = make_rubric(name="first"), make_rubric(name="second")
    members = [vf.RubricGroup([first, length_rubric()]), second] if nested else [first, second]
    states = await score(vf.RubricGroup(members), [make_state("GOOD"), make_state("BAD"), make_state("HALF")])
    for state in states:
        assert state["metrics"]["first_judge_advantage"] == state["metrics"]["second_judge_advantage"]
        assert state["metrics"]["first_judge_advantage"] == state["advantage"] == state["trajectory"][0]["advantage"]
    assert sum(state["advantage"] for state in states) == pytest.approx(0.0)
    assert [state["reward"] for state in states] == pytest.approx([2.1, 0.1, 1.6] if nested else [2.0, 0.0, 1.5])
    assert not first.engine._desk.journal._memory
    assert not second.engine._desk.journal._memory


async def test_group_funcs_get_the_class_objects_too(make_rubric: Any) -> None:
    def asks(states: Any, judge_client: Any, verdict_parser: Any, judge_model: str) -> list[float]:
        return [float(judge_client is not None and hasattr(verdict_parser, "parse") and bool(judge_model))] * len(
            states
        )

    rubric = make_rubric()
    rubric.add_metric(asks)
    (state,) = await score(rubric, [make_state("GOOD")])
    assert state["metrics"]["asks"] == 1.0


async def test_without_a_cleanup_only_the_group_stays_on_the_state_and_is_short_in_print(make_rubric: Any) -> None:
    states = [make_state("GOOD"), make_state("BAD")]
    await make_rubric().score_group(states)
    assert [key for key in states[0] if key.startswith("_judge")] == ["_judge_group"]
    assert len(repr(states[0]["_judge_group"])) < 200
    assert [state["advantage"] for state in states] == [0.5, -0.5]


async def test_a_state_that_stands_twice_in_a_group_is_judged_once(make_rubric: Any, judge: Any) -> None:
    state = make_state("GOOD")
    await score(make_rubric(), [state, state])
    assert (state["reward"], state["advantage"], len(judge.calls)) == (1.0, 0.0, 1)


async def test_scoring_a_group_again_gives_the_same(make_rubric: Any, judge: Any) -> None:
    rubric, states = make_rubric(), [make_state("GOOD"), make_state("BAD")]
    await rubric.score_group(states)
    await score(rubric, states)
    assert [(s["reward"], s["advantage"]) for s in states] == [(1.0, 0.5), (0.0, -0.5)]
    assert len(judge.calls) == 2
