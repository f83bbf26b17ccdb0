"""`HarborRubric(log=…)`: figures of every scored group, for curves; and what is said at the end of a run."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from rubric_env.classic import Family, HarborRubric, HarborRubricGroup, _log, build_environment
from rubric_env.classic._tally import Tally
from rubric_env.rubric import RubricSpec
from rubric_env.scoring import Judgement, Outcome, RowVerdict, Usage, settle
from rubric_env.settings import JudgeSettings
from tests.classic.conftest import make_state, score, verdicts, vf
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario

ROWS = [
    {"id": "R1", "description": "The total is named.", "weight": 3, "tag": "figures", "criterion_type": "fact"},
    {"id": "R2", "description": "The owner is named.", "weight": 1, "tag": "people", "criterion_type": "fact"},
    {"id": "R3", "description": "It guesses.", "weight": -1, "tag": "conduct", "criterion_necessity": "optional"},
]

Logged = list[tuple[dict[str, float], int]]
logged: Logged = []
RUN: ContextVar[str] = ContextVar("RUN", default="none")


def keep(figures: dict[str, float], step: int) -> None:
    logged.append((figures, step))


@pytest.fixture(autouse=True)
def _empty() -> None:
    logged.clear()


async def written(*rubrics: Any) -> Logged:
    """What was logged, once all of it is."""
    for rubric in rubrics:
        await rubric.teardown()
    return logged


async def test_a_group_is_logged_once_with_finite_floats_under_rising_steps(make_rubric: Any) -> None:
    rubric = make_rubric(log=keep)
    await score(rubric, [make_state("GOOD"), make_state("HALF"), make_state("LOST")])
    await score(vf.RubricGroup([rubric]), [make_state("BAD")])
    (first, one), (second, two) = await written(rubric)
    assert one < two
    assert all(type(value) is float and math.isfinite(value) for value in (*first.values(), *second.values()))
    assert first["rubric/rollouts"] == 3.0
    assert first["rubric/reward"] == 0.875
    assert first["rubric/judge_scored"] == first["rubric/judge_coverage"] == pytest.approx(2 / 3)
    assert first["rubric/fault/auth"] == 2.0
    assert second["rubric/reward"] == 0.0


async def test_every_field_is_there_even_where_nothing_was_judged(make_rubric: Any) -> None:
    rubric = make_rubric(log=keep)
    await score(rubric, [make_state("LOST"), make_state("GOOD", error=vf.Error("earlier"))])
    ((figures, _),) = await written(rubric)
    assert (figures["rubric/rollouts"], figures["rubric/judge_scored"]) == (1.0, 0.0)
    assert {"rubric/judge_cost_usd", "rubric/judge_calls", "rubric/judge_score_lo"} <= figures.keys()
    assert "rubric/reward" not in figures


@pytest.fixture
def told(judge: Endpoint) -> None:
    """ALL meets every row of `ROWS`, the violation too; ONE meets the first alone."""
    for word, hits in {"ALL": (True, True, True), "ONE": (True, False, False)}.items():
        answer = verdicts(dict(zip(("R1", "R2", "R3"), hits, strict=True)))
        judge.rule(lambda call, word=word: f"reply {word}" in call.text, Scenario(word, content=answer))


@pytest.mark.usefixtures("told")
async def test_the_score_is_told_by_tag_type_and_necessity(make_rubric: Any) -> None:
    rubric = make_rubric(rubric=ROWS, log=keep, name="strict")
    await score(rubric, [make_state("ALL"), make_state("ONE")])
    ((figures, _),) = await written(rubric)
    told = {name: value for name, value in figures.items() if name.count("/") == 2}
    # Nothing can be earned where all rows are violations.
    assert told == {"strict/tag/figures": 1.0, "strict/tag/people": 0.5, "strict/type/fact": 0.875}


# --- a log that fails -------------------------------------------------------------------------------------------------


async def test_a_log_that_raises_is_shown_once_and_asked_again(
    make_rubric: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def full(figures: dict[str, float], step: int) -> None:
        if step % 2 == first % 2:
            raise SystemExit("disk full")
        keep(figures, step)

    probe = make_rubric(log=keep)
    await score(probe, [make_state("GOOD")])
    first = (await written(probe))[0][1] + 1
    logged.clear()
    rubric = make_rubric(log=full)
    for _ in range(4):
        (state,) = await score(rubric, [make_state("GOOD")])
        assert (state["reward"], state["error"]) == (1.0, None)
    assert len(await written(rubric)) == 2
    assert sum("disk full" in (record.exc_text or "") for record in caplog.records) == 1
    assert said(caplog)[-1] == "log raised for 2 groups"


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A log that does not come back before the test is over, under short limits and in a thread of its own."""
    over = threading.Event()
    monkeypatch.setattr(_log, "PATIENCE", 0.2)
    monkeypatch.setattr(_log, "KEPT", 2)
    _log._writer.cache_clear()
    yield lambda figures, step: over.wait(120) and None
    over.set()
    _log._writer.cache_clear()


async def test_a_log_that_hangs_holds_up_no_group_and_the_end_but_a_moment(
    make_rubric: Any, stuck: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    rubric = make_rubric(log=stuck)
    began = time.monotonic()
    for _ in range(6):
        (state,) = await score(rubric, [make_state("GOOD")])
        assert (state["reward"], state["error"]) == (1.0, None)
    for _ in range(3):  # as verifiers does
        await rubric.teardown()
    assert time.monotonic() - began < 60
    told = [line for line in said(caplog) if "too slow" in line]
    assert told == ["figures are dropped: log is too slow", "log was too slow for 6 groups"]


async def test_a_slow_log_leaves_the_event_loop_free_and_loses_nothing(make_rubric: Any) -> None:
    free = threading.Event()
    released: list[bool] = []

    def slow(figures: dict[str, float], step: int) -> None:
        released.append(free.wait(10))
        keep(figures, step)

    rubric = make_rubric(log=slow)
    for _ in range(3):
        await score(rubric, [make_state("GOOD")])
    # Only a loop that is free, also while the end waits, comes to it.
    asyncio.get_running_loop().call_later(0.1, free.set)
    assert len(await written(rubric)) == 3
    assert released == [True] * 3
    assert [step for _, step in logged] == sorted(step for _, step in logged)


@pytest.mark.parametrize("wrong", ["wandb", "no_such_module:log", f"{__name__}:nothing", f"{__name__}:ROWS", 3])
def test_a_log_that_cannot_be_called_is_refused_before_any_rollout(wrong: Any) -> None:
    with pytest.raises(ValueError, match="log = "):
        HarborRubric(settings={"backend": "local"}, log=wrong)


def test_a_log_that_would_never_run_is_refused() -> None:
    async def later(figures: dict[str, float], step: int) -> None: ...

    with pytest.raises(ValueError, match="a plain function"):
        HarborRubric(settings={"backend": "local"}, log=later)


async def test_a_log_named_by_text_is_looked_up_when_it_is_called(
    make_rubric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`wandb.log` becomes another function when wandb.init is called."""
    rubric = make_rubric(log=f"{__name__}:keep")
    later: Logged = []
    monkeypatch.setitem(globals(), "keep", lambda figures, step: later.append((figures, step)))
    await score(rubric, [make_state("GOOD")])
    assert await written(rubric) == []
    assert len(later) == 1


async def test_a_log_runs_in_the_context_of_the_scoring(make_rubric: Any) -> None:
    """trackio knows its run by a context variable."""
    RUN.set("mine")
    seen: list[str] = []
    rubric = make_rubric(log=lambda figures, step: seen.append(RUN.get()))
    await score(rubric, [make_state("GOOD")])
    await written(rubric)
    assert seen == ["mine"]


# --- several rubrics, several environments ----------------------------------------------------------------------------


async def turns(state: Any) -> float:
    return 2.0


async def test_each_of_two_rubrics_beside_others_has_its_own_figures(
    make_rubric: Any, caplog: pytest.LogCaptureFixture
) -> None:
    strict, mild = make_rubric(log=keep, name="strict"), make_rubric(log=keep, name="mild", rubric=ROWS[:1])
    monitor = vf.Rubric()
    monitor.add_metric(turns)
    group = HarborRubricGroup([strict, vf.MathRubric(), mild, monitor])
    states = await score(group, [make_state("HALF", answer="42"), make_state("GOOD", answer="42")])
    (first, _), (second, _) = await written(group)
    assert {name.partition("/")[0] for name in first} == {"strict"}
    assert {name.partition("/")[0] for name in second} == {"mild"}
    assert (first["strict/reward"], second["mild/reward"], second["mild/tag/figures"]) == (0.875, 1.0, 1.0)
    assert [state["reward"] for state in states] == [1.75, 2.0]
    for state in states:
        assert state["metrics"].keys() >= {"turns", "correct_answer", "strict_judge_scored", "mild_judge_scored"}
        assert not any("/" in name for name in state["metrics"])
    heads = [line for line in said(caplog) if "mean reward" in line]
    assert heads == [
        "strict: rubric judge: mean reward over 2 scored rollouts 0.8750; unscored 0",
        "mild: rubric judge: mean reward over 2 scored rollouts 1.0000; unscored 0",
    ]


async def test_environments_of_one_group_are_told_apart_by_their_ids(make_rubric: Any, policy: Endpoint) -> None:
    rows = [{"question": "Who owns the total?", "answer": ""}]
    envs = []
    for name in ("office", "research"):
        rubric = make_rubric(log=keep, rubric=ROWS[:1])
        rubric.log_prefix = name
        envs.append(vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=vf.RubricGroup([rubric])))
    both = vf.EnvGroup(envs, env_names=["office", "research"])
    client = vf.ClientConfig(api_base_url=policy.base_url, api_key_var="NONE")
    results = await both.evaluate(client, "policy", num_examples=2, rollouts_per_example=2)
    assert [output["reward"] for output in results["outputs"]] == [1.0] * 4
    figures = await written(*(env.rubric for env in envs))
    assert sorted(next(iter(group)) for group, _ in figures) == ["office/rollouts", "research/rollouts"]
    assert len({step for _, step in figures}) == 2


@pytest.fixture
def policy() -> Iterator[Endpoint]:
    with Endpoint() as server:
        server.prose = "reply GOOD"
        yield server


async def test_json_arguments_name_the_function_and_the_environment_the_figures(tmp_path: Path) -> None:
    tests = tmp_path / "a" / "tests"
    tests.mkdir(parents=True)
    (tests.parent / "instruction.md").write_text("Say who.")
    (tests / "judge_instruction.md").write_text("Judge.")
    (tests / "rubric.json").write_text('[{"description": "Names reply", "weight": 1}]')
    env = build_environment(
        Family("harbor-x", tmp_path, tools=()), judge={"settings": {"backend": "local"}, "log": f"{__name__}:keep"}
    )
    await score(env.rubric, [make_state("GOOD", info=env.get_dataset()[0]["info"])])
    ((figures, _),) = await written(env.rubric)
    assert figures["harbor-x/judge_scored"] == 1.0


# --- the end of a run -------------------------------------------------------------------------------------------------


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the rubrics said at the end, line by line."""
    return [
        line.strip()
        for record in caplog.records
        if record.levelno == logging.WARNING and record.name.endswith("HarborRubric")
        for line in record.message.splitlines()
    ]


@pytest.mark.usefixtures("told")
async def test_the_end_says_what_the_averages_hide(make_rubric: Any, caplog: pytest.LogCaptureFixture) -> None:
    rubric = make_rubric(rubric=ROWS)
    await score(rubric, [make_state("ALL"), make_state("ONE"), make_state("LOST")])
    await score(rubric, [make_state("GOOD", error=vf.Error("earlier"))])
    await rubric.teardown()
    await rubric.teardown()
    head, tags, types, rows, bill = said(caplog)
    assert head == (
        "rubric judge: mean reward over 2 scored rollouts 0.7500; unscored 2 (1 auth, 1 failed before judging), "
        "which vf-eval averages as 0"
    )
    assert (tags, types, rows) == ("by tag: figures 1.00 · people 0.50", "by type: fact 0.88", "rows lost: 3 auth")
    assert re.fullmatch(r"4 calls, tokens [\d,]+ in, [\d,]+ out, price unknown", bill)


def outcome(tags: Sequence[str], cost: float | None) -> Outcome:
    rows = [{"id": f"R{n}", "description": "-", "weight": n, "tag": tag} for n, tag in enumerate(tags, 1)]
    spec = RubricSpec.parse(rows)
    usage = Usage(1, 1200, 1000, 30, cost)
    return settle(spec, Judgement({row.id: RowVerdict(True) for row in spec}, {}, usage), JudgeSettings())


@pytest.mark.parametrize(
    ("costs", "bill"), [((0.01, 0.02), "$0.0300"), ((0.01, None), "at least $0.0100"), ((None, None), "price unknown")]
)
def test_a_cost_with_unknown_parts_is_a_lower_bound(costs: Sequence[float | None], bill: str) -> None:
    tally = Tally()
    for cost in costs:
        tally.add(outcome(["a"], cost))
    last = tally.report("office", again=False).splitlines()[-1]
    assert last.strip() == f"2 calls, tokens 2,400 (2,000 cached) in, 60 out, {bill}"


def test_many_tags_and_long_ones_make_no_long_report() -> None:
    tally = Tally()
    tally.add(outcome([f"tag\n{'x' * 1000}{n}" for n in range(200)], 0.0))
    head, tags, *_ = tally.report("office", again=True).splitlines()
    assert head.startswith("office: rubric judge: mean reward over 1 scored rollouts 1.0000")
    assert len(tags) < 600
    assert tags.endswith(" · 188 more")
