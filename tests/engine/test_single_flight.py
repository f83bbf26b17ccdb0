"""SPEC 7, journal: the same question is asked once, whoever asks it at the same time."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_env.engine import Journal, _journal_store
from rubric_env.scoring import RowVerdict

HIT = RowVerdict(True, reason="it says so")
LONG = 60.0
SOON = 20.0
"""Seconds in which a loaded machine gets round to anything."""


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "journal.sqlite" if request.param == "file" else None)
    yield journal
    journal.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Journal, Journal]]:
    """As two processes have it: they share nothing but the file."""
    journals = Journal(tmp_path / "journal.sqlite"), Journal(tmp_path / "journal.sqlite")
    yield journals
    for journal in journals:
        journal.close()


async def taken(journal: Journal, key: str, scope: str = "g", seconds: float = LONG) -> bool:
    return list((await journal.take(scope, [key], seconds)).mine) == [key]


async def test_one_asks_and_the_others_wait_for_the_verdict(journal: Journal) -> None:
    assert await taken(journal, "a")
    assert not await taken(journal, "a")
    assert await taken(journal, "a", scope="other")
    waiting = [asyncio.create_task(journal.wait("g", "a")) for _ in range(3)]
    await asyncio.sleep(0)
    await journal.accept("g", {"a": HIT})
    assert await asyncio.gather(*waiting) == [HIT] * 3
    assert (await journal.take("g", ["a"], LONG)).known == {"a": HIT}
    journal.release("other", ["a"])


async def test_who_takes_many_gets_what_is_known_and_what_nobody_asks(journal: Journal) -> None:
    await journal.accept("g", {"known": HIT})
    await journal.take("g", ["theirs"], LONG)
    got = await journal.take("g", ["open", "theirs", "known"], LONG)
    assert (got.known, got.mine) == ({"known": HIT}, ["open"])
    journal.release("g", ["open", "theirs"])


async def test_who_gives_up_lets_the_next_one_ask(journal: Journal) -> None:
    assert await taken(journal, "a")
    waiting = asyncio.create_task(journal.wait("g", "a"))
    await asyncio.sleep(0)
    journal.release("g", ["a"])
    assert await waiting is None
    assert await taken(journal, "a")
    journal.release("g", ["a"])


async def test_a_waiter_that_is_cancelled_takes_nobody_with_it(journal: Journal) -> None:
    await taken(journal, "a")
    gone, kept = (asyncio.create_task(journal.wait("g", "a")) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    await journal.accept("g", {"a": HIT})
    assert await kept == HIT


async def test_who_is_cancelled_while_taking_holds_nothing(tmp_path: Path) -> None:
    journal, other = Journal(tmp_path / "journal.sqlite"), Journal(tmp_path / "journal.sqlite")
    task = asyncio.create_task(journal.take("g", ["a"], LONG))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await taken(journal, "a")
    journal.release("g", ["a"])
    journal.close()
    assert await taken(other, "a")
    other.release("g", ["a"])
    other.close()


async def test_nobody_waits_longer_than_the_one_that_asks_may_take(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rubric_env.engine.journal.GRACE_SECONDS", 0.1)
    await taken(journal, "a", seconds=0.1)
    async with asyncio.timeout(SOON):
        assert await journal.wait("g", "a") is None
        assert await taken(journal, "a")
    journal.release("g", ["a"])


async def test_loops_in_other_threads_are_woken_too(journal: Journal) -> None:
    assert await taken(journal, "a")

    def elsewhere() -> RowVerdict | None:
        async def run() -> RowVerdict | None:
            assert not await taken(journal, "a")
            ready.set()
            return await journal.wait("g", "a")

        return asyncio.run(run())

    ready = threading.Event()
    waiting = asyncio.create_task(asyncio.to_thread(elsewhere))
    await asyncio.to_thread(ready.wait)
    await journal.accept("g", {"a": HIT})
    async with asyncio.timeout(SOON):
        assert await waiting == HIT


async def test_a_loop_that_was_closed_under_the_one_that_asked_stops_nobody(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rubric_env.engine.journal.GLANCE_SECONDS", 0.05)
    loop = asyncio.new_event_loop()
    held = await asyncio.to_thread(loop.run_until_complete, taken(journal, "a"))
    assert held
    assert not await taken(journal, "a")
    waiting = asyncio.create_task(journal.wait("g", "a"))
    await asyncio.sleep(0)
    loop.close()
    async with asyncio.timeout(SOON):
        assert await waiting is None
        assert await taken(journal, "a")
    journal.release("g", ["a"])


async def test_another_process_waits_for_the_verdict(two: tuple[Journal, Journal]) -> None:
    first, second = two
    assert await taken(first, "a")
    assert not await taken(second, "a")
    waiting = [asyncio.create_task(second.wait("g", "a")) for _ in range(2)]
    await asyncio.sleep(0)
    assert not await taken(second, "a")
    await first.accept("g", {"a": HIT})
    async with asyncio.timeout(SOON):
        assert await asyncio.gather(*waiting) == [HIT] * 2


async def test_another_process_asks_when_the_first_gives_up(two: tuple[Journal, Journal]) -> None:
    first, second = two
    await taken(first, "a")
    await taken(second, "a")
    waiting = asyncio.create_task(second.wait("g", "a"))
    await asyncio.sleep(0)
    first.release("g", ["a"])
    async with asyncio.timeout(SOON):
        assert await waiting is None
        assert await taken(second, "a")
        assert not await taken(first, "a")
    second.release("g", ["a"])


async def test_what_one_process_may_take_bounds_the_wait_of_another(
    two: tuple[Journal, Journal], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    monkeypatch.setattr("rubric_env.engine.journal.GRACE_SECONDS", 0.1)
    await taken(first, "a", seconds=0.1)
    async with asyncio.timeout(SOON):
        while not await taken(second, "a"):
            assert await second.wait("g", "a") is None
    second.release("g", ["a"])


def _take_and_hang(path: Path, took: multiprocessing.Event) -> None:  # type: ignore[valid-type]
    async def run() -> None:
        assert await taken(Journal(path), "a")
        took.set()  # type: ignore[attr-defined]
        await asyncio.sleep(3600)

    asyncio.run(run())


async def test_the_claim_of_a_process_that_was_killed_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    spawn = multiprocessing.get_context("spawn")
    took = spawn.Event()
    process = spawn.Process(target=_take_and_hang, args=(path, took))
    process.start()
    assert await asyncio.to_thread(took.wait, 60)
    journal = Journal(path)
    assert not await taken(journal, "a")
    waiting = asyncio.create_task(journal.wait("g", "a"))
    await asyncio.sleep(0)
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    async with asyncio.timeout(SOON):  # a lease takes longer to run out
        assert await waiting is None
        assert await taken(journal, "a")
    journal.release("g", ["a"])
    journal.close()


@pytest.mark.parametrize("lease, free", [(LONG, False), (-1.0, True)])
async def test_where_the_owner_cannot_be_seen_its_lease_decides(
    two: tuple[Journal, Journal], tmp_path: Path, lease: float, free: bool
) -> None:
    """It runs in another container, where our process ids mean other processes."""
    await taken(two[0], "a")
    with sqlite3.connect(tmp_path / "journal.sqlite") as file:
        file.execute("UPDATE owner SET place = 'another machine', pid = 2147483647, until = ?", (time.time() + lease,))
    file.close()
    assert await taken(two[1], "a") == free
    two[1].release("g", ["a"])


async def test_the_lease_of_a_process_that_lives_is_renewed(
    two: tuple[Journal, Journal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal_store, "LEASE_SECONDS", 0.6)
    await taken(two[0], "a")

    def until() -> float:
        with sqlite3.connect(tmp_path / "journal.sqlite") as file:
            return float(file.execute("SELECT until FROM owner").fetchone()[0])

    first = until()
    async with asyncio.timeout(SOON):
        while until() == first:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    two[0].release("g", ["a"])
