"""SPEC 7, JUDGE_REUSE: equal submissions in a group are asked once, a killed command resumes without paying again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rubric_env.engine.engine import JudgeEngine
from tests.engine.conftest import Judging, case, faults, rows, until
from tests.servers.scenarios import SCENARIOS


async def calls_of_second(judging: Judging, first: Any, second: Any, **settings: Any) -> int:
    engine = judging.engine(**settings)
    await engine.judge(first)
    before = len(judging.endpoint.calls)
    outcome = await engine.judge(second)
    assert outcome.reward == 1.0
    return len(judging.endpoint.calls) - before


async def test_section_7_equal_submissions_in_a_group_are_asked_once(judging: Judging) -> None:
    assert await calls_of_second(judging, case(rows(4), group="g"), case(rows(4), group="g")) == 0


async def test_section_7_also_when_they_are_judged_at_the_same_time(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.05)
    judging.endpoint.truth = {"R02": False}
    engine = judging.engine()
    outcomes = await asyncio.gather(*(engine.judge(case(rows(8), group="g")) for _ in range(6)))
    assert [outcome.reward for outcome in outcomes] == [7 / 8] * 6
    assert len(judging.endpoint.calls) == 2
    # the rollout that asked first pays
    assert sorted(outcome.fields["judge_calls"] for outcome in outcomes) == [0, 0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"group": "h"},
        {"group": ""},
        {"reply": "another reply"},
        {"task": "another task"},
        {"instruction": "another instruction"},
        {"reference": "a reference"},
        {"sample": 1},
        {"rubric": rows(4, weight=2)},
        {"rubric": rows(4, note="a field of its own")},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_section_7_the_key_holds_everything_a_verdict_depends_on(
    judging: Judging, change: dict[str, Any]
) -> None:
    first = {"rubric": rows(4), "group": "g"}
    assert await calls_of_second(judging, case(**first), case(**{**first, **change})) == 1


async def test_only_the_row_that_changed_is_asked_again(judging: Judging) -> None:
    changed = [*rows(3), {"id": "R04", "description": "another text", "weight": 1}]
    await calls_of_second(judging, case(rows(4), group="g"), case(changed, group="g"))
    assert judging.asked()[-1] == ("R04",)


async def test_section_7_off_asks_every_time(judging: Judging) -> None:
    assert await calls_of_second(judging, case(rows(4), group="g"), case(rows(4), group="g"), reuse="off") == 1


@pytest.mark.parametrize("reuse", ["run", "always"])
async def test_section_7_run_and_always_know_no_groups(judging: Judging, reuse: str) -> None:
    assert await calls_of_second(judging, case(rows(4), group="g"), case(rows(4), group="h"), reuse=reuse) == 0


async def test_section_7_error_verdicts_are_never_stored(judging: Judging) -> None:
    judging.endpoint.rule(lambda call: call.ids == ("R04",), "prose", times=1)
    engine = judging.engine(batch=1, max_tries=1, max_uncertainty=None)
    first = await engine.judge(case(rows(4), group="g"))
    assert first.fields["judge_unjudged"] == 1
    second = await engine.judge(case(rows(4), group="g"))
    assert second.reward == 1.0
    assert judging.asked()[-1] == ("R04",)


async def test_section_7_a_killed_command_resumes_without_paying_again(judging: Judging, tmp_path: Path) -> None:
    journal = str(tmp_path / "out" / "journal.sqlite")
    judging.endpoint.rule(lambda call: "R05" in call.ids, "hang", times=1)
    engine = judging.engine(reuse="run", journal=journal, concurrency=2)
    task = asyncio.create_task(engine.judge(case(rows(8))))
    await until(lambda: len(judging.events) == 1)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    resumed = judging.engine(reuse="run", journal=journal)
    assert (await resumed.judge(case(rows(8)))).reward == 1.0
    assert judging.asked() == [("R01", "R02", "R03", "R04"), ("R05", "R06", "R07", "R08"), ("R05", "R06", "R07", "R08")]


async def test_workers_that_share_a_file_ask_equal_submissions_once(judging: Judging, tmp_path: Path) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.1)
    workers = [judging.engine(journal=str(tmp_path / "journal.sqlite")) for _ in range(3)]
    outcomes = await asyncio.gather(*(worker.judge(case(rows(8), group="g")) for worker in workers))
    assert [outcome.reward for outcome in outcomes] == [1.0] * 3
    assert sorted(row for ids in judging.asked() for row in ids) == [row["id"] for row in rows(8)]


async def test_rollouts_in_other_loops_ask_equal_submissions_once(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.1)
    engine = judging.engine()

    def elsewhere() -> float | None:
        async def judge() -> float | None:
            outcome = await engine.judge(case(rows(8), group="g"))
            await engine.aclose()
            return outcome.reward

        return asyncio.run(judge())

    here, there = await asyncio.gather(engine.judge(case(rows(8), group="g")), asyncio.to_thread(elsewhere))
    assert (here.reward, there) == (1.0, 1.0)
    assert len(judging.endpoint.calls) == 2


async def test_who_waits_keeps_its_own_deadline(judging: Judging, tmp_path: Path) -> None:
    judging.endpoint.default = SCENARIOS["hang"]
    journal = str(tmp_path / "journal.sqlite")
    first = asyncio.create_task(judging.engine(journal=journal).judge(case(rows(4), group="g")))
    await until(lambda: len(judging.endpoint.calls) == 1)
    async with asyncio.timeout(30):
        second = await judging.engine(journal=journal, deadline=0.5).judge(case(rows(4), group="g"))
    assert set(faults(second).values()) == {"deadline"}
    assert len(judging.endpoint.calls) == 1
    first.cancel()


async def test_who_waits_asks_itself_when_the_first_one_is_cancelled(judging: Judging) -> None:
    judging.endpoint.script("hang")
    engine = judging.engine()
    first = asyncio.create_task(engine.judge(case(rows(4), group="g")))
    await until(lambda: len(judging.endpoint.calls) == 1)
    second = asyncio.create_task(engine.judge(case(rows(4), group="g")))
    await asyncio.sleep(0.05)
    first.cancel()
    assert (await second).reward == 1.0
    assert len(judging.endpoint.calls) == 2


async def test_what_stands_after_the_last_try_is_kept_too(judging: Judging) -> None:
    graded = rows(1, type="gradient", levels={"0": "none", "1": "all"})
    judging.endpoint.default = SCENARIOS["no_level"]
    assert await calls_of_second(judging, case(graded, group="g"), case(graded, group="g"), max_tries=1) == 0


async def test_a_group_that_is_scored_is_forgotten(judging: Judging) -> None:
    engine: JudgeEngine = judging.engine()
    await engine.judge(case(rows(4), group="g"))
    engine.forget("g")
    await engine.judge(case(rows(4), group="g"))
    assert len(judging.endpoint.calls) == 2
