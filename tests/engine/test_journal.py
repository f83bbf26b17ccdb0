"""SPEC 7, journal: accepted verdicts are not paid for twice. Who asks what: test_single_flight; kills: test_kill."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rubric_env.engine import Journal, JournalError, _journal_file, _journal_memory, _journal_store
from rubric_env.scoring import RowVerdict

HIT = RowVerdict(True, 0.5, 0.51, True, "因为 \ud83d", "output/a.md ¶1", True, "hit:true", "whole", 3)
MISS = RowVerdict(False)
LONG = RowVerdict(True, reason="x" * 2000)


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "new" / "journal.sqlite" if request.param == "file" else None)
    yield journal
    journal.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def filed(path: Path) -> Iterator[Journal]:
    journal = Journal(path)
    yield journal
    journal.close()


def opened(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))


def keys_in(path: Path) -> set[str]:
    with opened(path) as file:
        return {key for (key,) in file.execute("SELECT key FROM verdict")}


async def test_what_was_accepted_is_known_within_its_scope(journal: Journal) -> None:
    await journal.accept("g1", {"a": HIT, "b": MISS})
    assert await journal.read("g1", ["a", "b", "c"]) == {"a": HIT, "b": MISS}
    assert await journal.read("g2", ["a"]) == {}


async def test_a_group_may_have_any_name(journal: Journal) -> None:
    await journal.accept("组 '\ud83d\"", {"a": HIT})
    assert await journal.read("组 '\ud83d\"", ["a"]) == {"a": HIT}


async def test_more_keys_than_a_statement_has_parameters(journal: Journal) -> None:
    keys = [f"k{n}" for n in range(40_000)]
    await journal.accept("", dict.fromkeys(keys, MISS))
    assert len(await journal.read("", keys)) == len(keys)


async def test_the_last_verdict_of_a_key_counts(journal: Journal) -> None:
    await journal.accept("g", {"a": HIT})
    await journal.accept("g", {"a": MISS})
    assert await journal.read("g", ["a"]) == {"a": MISS}


def child(work: Callable[[], bool]) -> int:
    """Forks a process that exits with 0 when `work` is true."""
    if pid := os.fork():
        return pid
    done = False
    try:
        done = work()
    finally:
        os._exit(0 if done else 1)


def code_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


# In memory


async def test_memory_forgets_groups_that_are_scored() -> None:
    journal = Journal()
    await journal.accept("g", {"a": HIT})
    journal.forget("g")
    assert await journal.read("g", ["a"]) == {}


async def test_memory_is_bounded_and_drops_what_was_unused_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_journal_memory, "HELD_BYTES", 3 * 3_000)
    journal = Journal()
    await journal.accept("old", {"a": LONG})
    await journal.accept("gone", {"a": LONG})
    journal.forget("gone")
    for key in "abc":
        await journal.accept("", {key: LONG})
    assert await journal.read("old", ["a"]) == {}
    assert (await journal.read("", ["a"])).keys() == {"a"}
    await journal.accept("", {"d": LONG})
    assert (await journal.read("", list("abcd"))).keys() == set("acd")
    journal.forget("")
    assert not journal._memory


async def test_a_verdict_of_any_length_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_journal_memory, "HELD_BYTES", 10_000)
    journal = Journal()
    await journal.accept("g", {"a": RowVerdict(True, reason="x" * 20_000), "b": HIT})
    assert await journal.read("g", ["a", "b"]) == {"b": HIT}


# In a file


async def test_section_7_a_file_outlives_its_process_and_is_shared(path: Path) -> None:
    first, second = Journal(path), Journal(path)
    await first.accept("run", {"a": HIT})
    assert await second.read("run", ["a"]) == {"a": HIT}
    first.close()
    first.close()
    await first.accept("run", {"b": MISS})
    assert await second.read("run", ["a", "b"]) == {"a": HIT, "b": MISS}
    first.close()
    second.close()


async def test_an_accepted_verdict_is_in_the_file_before_anything_builds_on_it(filed: Journal, path: Path) -> None:
    await filed.take("run", ["a"], 60)
    seen = []

    async def wait() -> None:
        seen.append((await filed.wait("run", "a"), keys_in(path)))

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await filed.accept("run", {"a": HIT})
    assert keys_in(path) == {"a"}
    await waiting
    assert seen == [(HIT, {"a"})]


async def test_what_comes_together_is_written_together(filed: Journal, path: Path) -> None:
    await filed.accept("run", {"first": HIT})
    with opened(path) as other:
        commits = []
        other.execute("BEGIN IMMEDIATE")
        accepting = [asyncio.create_task(filed.accept("run", {f"k{n}": MISS})) for n in range(50)]
        await asyncio.sleep(0.1)
        other.execute("ROLLBACK")
        while not all(task.done() for task in accepting):
            await asyncio.sleep(0)
            commits.append(other.execute("PRAGMA data_version").fetchone()[0])
    assert len(keys_in(path)) == 51
    # one that waited for the lock, and all that came meanwhile
    assert len(set(commits)) <= 3


async def test_a_verdict_is_written_though_its_rollout_is_cancelled_meanwhile(filed: Journal) -> None:
    task = asyncio.create_task(filed.accept("run", {"a": HIT}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await filed.read("run", ["a"]) == {"a": HIT}


def test_one_file_serves_several_loops(filed: Journal) -> None:
    asyncio.run(filed.accept("run", {"a": HIT}))
    assert asyncio.run(filed.read("run", ["a"])) == {"a": HIT}


async def test_closing_waits_for_what_is_pending_and_ends_the_thread(path: Path) -> None:
    before = set(threading.enumerate())
    journal = Journal(path)
    accepting = [asyncio.create_task(journal.accept("run", {f"k{n}": HIT})) for n in range(100)]
    await asyncio.sleep(0)
    journal.close()
    assert len(keys_in(path)) == 100
    assert set(threading.enumerate()) <= before
    await asyncio.gather(*accepting)


def test_a_journal_that_nobody_closes_keeps_no_process_and_loses_nothing(path: Path) -> None:
    program = f"""if True:
        import asyncio
        from rubric_env.engine import Journal
        from rubric_env.scoring import RowVerdict
        async def main():
            journal = Journal({str(path)!r})
            for n in range(100):
                asyncio.create_task(journal.accept("run", {{f"k{{n}}": RowVerdict(True)}}))
            await asyncio.sleep(0)
        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(keys_in(path)) == 100


async def test_who_waits_for_the_file_does_not_stop_the_loop(filed: Journal, path: Path) -> None:
    await filed.accept("run", {"first": HIT})
    with opened(path) as other:
        other.execute("BEGIN IMMEDIATE")
        accepting = asyncio.create_task(filed.accept("run", {"a": HIT}))
        await asyncio.sleep(0.2)  # it waits by now
        for _ in range(20):
            await asyncio.sleep(0.001)
            assert not accepting.done()
        other.execute("ROLLBACK")
    await accepting
    assert "a" in keys_in(path)


def test_a_file_is_made_once_though_all_make_it_at_the_same_time(tmp_path: Path) -> None:
    for n in range(10):
        start = time.time() + 0.05

        def make(path: Path = tmp_path / str(n), start: float = start) -> bool:
            time.sleep(max(0.0, start - time.time()))
            return Journal(path) is not None

        assert [code_of(pid) for pid in [child(make) for _ in range(4)]] == [0] * 4


def test_a_journal_made_before_the_workers_were_forked_serves_them_all(path: Path) -> None:
    journal = Journal(path)

    def accept(key: str) -> bool:
        asyncio.run(journal.accept("run", {key: HIT}))
        return True

    assert [code_of(pid) for pid in [child(lambda key=key: accept(key)) for key in "abc"]] == [0, 0, 0]
    assert keys_in(path) == set("abc")


def test_one_that_was_in_use_when_its_process_was_forked_goes_on_in_memory_there(path: Path) -> None:
    journal = Journal(path)
    asyncio.run(journal.accept("run", {"before": HIT}))

    def accept_and_read() -> bool:
        asyncio.run(journal.accept("run", {"child": HIT}))
        return asyncio.run(journal.read("run", ["before", "child"])) == {"child": HIT}

    assert code_of(child(accept_and_read)) == 0
    asyncio.run(journal.accept("run", {"after": HIT}))
    journal.close()
    assert keys_in(path) == {"before", "after"}


# Its size


async def test_a_file_is_bounded_and_drops_what_was_unused_longest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_journal_store, "LIMIT_BYTES", 2**20)
    monkeypatch.setattr(_journal_store, "EVICTED", 50)
    journal = Journal(path)
    await journal.accept("run", {"old": LONG, "used": LONG})
    for n in range(20):
        with opened(path) as file:
            file.execute("UPDATE verdict SET used = used - 7200")  # two hours go by
        assert len(await journal.read("run", ["used"])) == 1
        await journal.accept("run", {f"{n}-{m}": LONG for m in range(50)})
    assert set(await journal.read("run", ["old", "used", "0-0", "19-49"])) == {"used", "19-49"}
    journal.close()
    with opened(path) as file:
        assert file.execute("PRAGMA page_count").fetchone()[0] * 4096 < 1.2 * 2**20


async def test_a_read_writes_nothing_while_the_last_one_is_recent(filed: Journal, path: Path) -> None:
    await filed.accept("run", {"a": HIT})
    with opened(path) as other:
        version = other.execute("PRAGMA data_version").fetchone()
        await filed.read("run", ["a"])
        await filed.take("run", ["a"], 60)
        assert other.execute("PRAGMA data_version").fetchone() == version


# Files that cannot be used


def test_a_file_that_is_no_journal_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be looked at " * 50)
    with pytest.raises(JournalError, match=r"JUDGE_JOURNAL=.*notes\.txt.*name another file"):
        Journal(path)
    with pytest.raises(JournalError, match=r"JUDGE_JOURNAL="):
        Journal(tmp_path)


@pytest.mark.parametrize(
    "statements, message",
    [
        (["CREATE TABLE people (name TEXT)"], "another program"),
        (["PRAGMA user_version = 2"], "another program"),
        ([f"PRAGMA application_id = {_journal_store.APPLICATION}", "PRAGMA user_version = 99"], "another version"),
        (["CREATE TABLE verdict_1 (scope TEXT, key TEXT, verdict TEXT)"], "another version"),
    ],
    ids=["tables", "number", "newer", "older"],
)
def test_a_file_of_others_is_refused_and_stays_as_it_is(path: Path, statements: list[str], message: str) -> None:
    with opened(path) as file:
        for statement in statements:
            file.execute(statement)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=rf"JUDGE_JOURNAL=.*{message}.*name another file"):
        Journal(path)
    assert path.read_bytes() == before


def test_a_damaged_file_is_refused_with_the_remedy(path: Path) -> None:
    journal = Journal(path)
    asyncio.run(journal.accept("run", {f"k{n}": LONG for n in range(500)}))
    journal.close()
    content = bytearray(path.read_bytes())
    content[8 * 4096 : 40 * 4096] = os.urandom(32 * 4096)
    path.write_bytes(content)
    with pytest.raises(JournalError, match=r"JUDGE_JOURNAL=.*damaged.*move it, its -wal and its -shm away"):
        Journal(path)
    assert path.read_bytes() == content
    path.rename(path.with_suffix(".old"))
    Journal(path)


async def test_damage_that_shows_in_use_is_said_with_the_remedy_and_judging_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_journal_store, "CHECKED_BYTES", 0)
    journal = Journal(path)
    keys = [f"k{n}" for n in range(500)]
    await journal.accept("run", dict.fromkeys(keys, LONG))
    journal.close()
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(32 * 4096))
    journal = Journal(path)
    assert await journal.read("run", keys) == {}
    assert "move it, its -wal and its -shm away" in caplog.text
    await journal.accept("run", {"k0": HIT})
    assert await journal.read("run", ["k0"]) == {"k0": HIT}
    journal.close()


async def test_a_verdict_that_cannot_be_read_is_asked_again(filed: Journal, path: Path) -> None:
    await filed.accept("run", {"a": HIT, "b": HIT})
    with opened(path) as file:
        file.execute("UPDATE verdict SET verdict = substr(verdict, 3) WHERE key = 'a'")
    assert (await filed.take("run", ["a", "b"], 60)).mine == ["a"]
    await filed.accept("run", {"a": MISS})
    assert await filed.read("run", ["a", "b"]) == {"a": MISS, "b": HIT}


def test_other_fields_of_a_verdict_are_another_version() -> None:
    """What is read by position must not change under the same number."""
    fields = [field.name for field in dataclasses.fields(RowVerdict)]
    assert (_journal_store.VERSION, fields) == (
        2,
        [
            *("hit", "level", "level_raw", "level_fallback", "reason", "evidence", "evidence_unresolved"),
            *("spelled", "recovered_by", "tries"),
        ],
    )


# Files that fail later


async def test_a_file_that_fails_later_warns_once_and_judging_goes_on(
    filed: Journal, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal_file, "RETRY_SECONDS", 0.05)
    await filed.accept("run", {"a": HIT})
    with opened(path) as other:
        other.execute("ALTER TABLE verdict RENAME TO hidden")
        await filed.accept("run", {"b": HIT})
        assert await filed.read("run", ["a", "b"]) == {"b": HIT}
        assert (await filed.take("run", ["c", "b"], 60)).mine == ["c"]
        await filed.accept("run", {"c": MISS})
        await asyncio.sleep(0.2)
        assert caplog.text.count("judging goes on without it") == 1
        other.execute("ALTER TABLE hidden RENAME TO verdict")
    async with asyncio.timeout(60):
        while keys_in(path) != {"a", "b", "c"}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert "works again, 2 verdicts written" in caplog.text
    assert await filed.read("run", ["a", "b", "c"]) == {"a": HIT, "b": HIT, "c": MISS}


async def test_a_file_that_is_locked_for_long_loses_no_verdict(
    filed: Journal, path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_journal_file, "PATIENCE", 0.1)
    monkeypatch.setattr(_journal_store, "BUSY_SECONDS", 0.05)
    with opened(path) as other:
        other.execute("BEGIN IMMEDIATE")
        await filed.accept("run", {"a": HIT})
        assert "locked" in caplog.text
        assert await filed.read("run", ["a"]) == {"a": HIT}
        other.execute("ROLLBACK")
    filed.close()
    assert keys_in(path) == {"a"}


async def test_a_full_disk_loses_no_verdict_that_it_has_room_for_later(
    filed: Journal, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filed.accept("run", {"a": HIT})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        for n in range(10):
            await filed.accept("run", {f"{n}-{m}": LONG for m in range(100)})
        assert (await filed.read("run", ["a", "0-0", "9-99"])).keys() == {"a", "0-0", "9-99"}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "judging goes on without it" in caplog.text
    filed.close()
    assert len(keys_in(path)) == 1001


async def test_what_never_gets_into_the_file_is_said_at_the_end(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(path)
    with opened(path) as other:
        other.execute("DROP TABLE verdict")
    await journal.accept("run", {"a": HIT, "b": HIT})
    journal.close()
    assert "2 verdicts are not in it" in caplog.text


def test_a_file_that_may_only_be_read_is_read(caplog: pytest.LogCaptureFixture) -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to other users
    path = folder / "journal.sqlite"
    journal = Journal(path)
    asyncio.run(journal.accept("run", {"a": HIT}))
    journal.close()
    folder.chmod(0o777)
    path.chmod(0o444)

    def accept_and_read() -> bool:
        if os.geteuid() == 0:
            os.setuid(65534)  # root writes everything
        journal = Journal(path)
        asyncio.run(journal.accept("run", {"b": MISS}))
        known = asyncio.run(journal.read("run", ["a", "b"]))
        return known == {"a": HIT, "b": MISS} and "judging goes on without it" in caplog.text

    assert code_of(child(accept_and_read)) == 0
    assert keys_in(path) == {"a"}
    shutil.rmtree(folder)
