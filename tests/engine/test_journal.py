"""SPEC 7, journal: accepted verdicts are not paid for twice."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from rubric_env.engine import Journal, JournalError
from rubric_env.scoring import RowVerdict

HIT = RowVerdict(True, 0.5, 0.51, True, "因为 \ud83d", "output/a.md ¶1", True, "hit:true", "whole", 3)
MISS = RowVerdict(False)


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return Journal(tmp_path / "new" / "journal.sqlite" if request.param == "file" else None)


async def test_what_was_accepted_is_known_within_its_scope(journal: Journal) -> None:
    await journal.accept("g1", {"a": HIT, "b": MISS})
    assert await journal.read("g1", ["a", "b", "c"]) == {"a": HIT, "b": MISS}
    assert await journal.read("g2", ["a"]) == {}


async def test_more_keys_than_a_statement_has_parameters(journal: Journal) -> None:
    keys = [f"k{n}" for n in range(40_000)]
    await journal.accept("", dict.fromkeys(keys, MISS))
    assert len(await journal.read("", keys)) == len(keys)


async def test_one_asks_and_the_others_wait_for_the_verdict(journal: Journal) -> None:
    assert journal.take("g", "a")
    assert not journal.take("g", "a")
    assert journal.take("other", "a")
    waiting = [asyncio.create_task(journal.wait("g", "a")) for _ in range(3)]
    await asyncio.sleep(0)
    await journal.accept("g", {"a": HIT})
    assert await asyncio.gather(*waiting) == [HIT] * 3
    assert journal.take("g", "a")


async def test_who_gives_up_lets_the_next_one_ask(journal: Journal) -> None:
    assert journal.take("g", "a")
    waiting = asyncio.create_task(journal.wait("g", "a"))
    await asyncio.sleep(0)
    journal.release("g", ["a"])
    assert await waiting is None
    assert journal.take("g", "a")


async def test_a_waiter_that_is_cancelled_takes_nobody_with_it(journal: Journal) -> None:
    journal.take("g", "a")
    gone, kept = (asyncio.create_task(journal.wait("g", "a")) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    await journal.accept("g", {"a": HIT})
    assert await kept == HIT


async def test_memory_forgets_groups_that_are_scored() -> None:
    journal = Journal()
    await journal.accept("g", {"a": HIT})
    journal.forget("g")
    assert await journal.read("g", ["a"]) == {}


async def test_memory_is_bounded_in_verdicts_also_within_one_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rubric_env.engine.journal.HELD", 3)
    journal = Journal()
    await journal.accept("old", {"a": HIT})
    await journal.accept("gone", {"a": HIT})
    journal.forget("gone")
    for key in "abc":
        await journal.accept("", {key: HIT})
    assert await journal.read("old", ["a"]) == {}
    assert (await journal.read("", list("abc"))).keys() == set("abc")
    await journal.accept("", {"d": HIT})
    assert (await journal.read("", list("abcd"))).keys() == set("bcd")


async def test_section_7_a_file_outlives_its_process_and_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    first, second = Journal(path), Journal(path)
    await first.accept("run", {"a": HIT})
    assert await second.read("run", ["a"]) == {"a": HIT}
    first.close()
    first.close()
    await first.accept("run", {"b": MISS})
    assert await second.read("run", ["a", "b"]) == {"a": HIT, "b": MISS}


async def test_a_verdict_is_written_though_its_rollout_is_cancelled_meanwhile(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    task = asyncio.create_task(journal.accept("run", {"a": HIT}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await journal.read("run", ["a"]) == {"a": HIT}


def test_one_file_serves_several_loops(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    asyncio.run(journal.accept("run", {"a": HIT}))
    assert asyncio.run(journal.read("run", ["a"])) == {"a": HIT}


def test_a_file_that_is_no_journal_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at " * 50)
    with pytest.raises(JournalError, match=r"JUDGE_JOURNAL=.*notes\.txt.*name another file"):
        Journal(path)
    with pytest.raises(JournalError, match=r"JUDGE_JOURNAL="):
        Journal(tmp_path)


async def test_a_file_that_fails_later_warns_and_judging_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.sqlite"
    journal = Journal(path)
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE verdict_1")
    await journal.accept("run", {"a": HIT})
    assert await journal.read("run", ["a"]) == {}
    assert "judging goes on without it" in caplog.text
