"""SPEC 7: a judging process that is killed at any point resumes without paying again for what was accepted."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.engine.kill_host import BATCH, row_ids
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS

KILLS = 200
PROJECT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).parent / "rubric-env"
LATENCY = 0.01
CASES_OF_FOUR = 4
"""That four processes judge at a time."""


class Host:
    """Starts judging processes, kills them, and keeps the books: what each had asked, and what was accepted."""

    def __init__(self, endpoint: Endpoint, journal: Path) -> None:
        self.endpoint = endpoint
        self.journal = journal
        self.accepted: set[str] = set()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.engine.kill_host", endpoint.base_url, str(journal)],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._in, self._out = self._process.stdin, self._process.stdout

    def judge(self, *cases: int) -> int:
        return int(self._say(f"judge {','.join(map(str, cases))}"))

    def wait(self, pid: int) -> int:
        return int(self._say(f"wait {pid}"))

    def kill(self, pid: int) -> None:
        """And learn what was accepted until then."""
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) in (0, -signal.SIGKILL)
        self.listen()

    def wait_for_calls(self, count: int) -> None:
        """If they come: what was written at a kill and not yet said is not asked again."""
        _wait(lambda: len(self.endpoint.calls) >= count, 0.5)

    def listen(self) -> None:
        self.accepted.update(self._say("accepted").split())

    def close(self) -> None:
        self._in.close()
        self._process.wait()
        self._out.close()

    def _say(self, command: str) -> str:
        print(command, file=self._in, flush=True)
        return self._out.readline()


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


@pytest.fixture
def host(endpoint: Endpoint, tmp_path: Path) -> Iterator[Host]:
    endpoint.default = SCENARIOS["ok"].after(LATENCY)
    host = Host(endpoint, tmp_path / "journal.sqlite")
    host.listen()  # it is ready, and has warmed up
    endpoint.calls.clear()
    yield host
    host.close()


def rows_of(cases: Iterable[int]) -> list[str]:
    return [row for case in cases for row in row_ids(case)]


def blocks_of(cases: Iterable[int]) -> int:
    """The calls of an undisturbed run."""
    return len(rows_of(cases)) // BATCH


def verdicts_in(journal: Path) -> int:
    with contextlib.closing(sqlite3.connect(journal)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert file.execute("SELECT count(*) FROM claim JOIN owner ON owner.id = claim.owner").fetchone() == (0,)
        return int(file.execute("SELECT count(*) FROM verdict").fetchone()[0])


def test_section_7_kill_9_at_any_point_pays_again_only_for_what_was_in_flight(host: Host) -> None:
    chance = random.Random(7)
    kills, case, in_flight_at_kills = 0, 0, 0
    while kills < KILLS:
        # Each pair of cases is judged by four processes, of which three are killed.
        for killed in (True, True, True, False):
            rows = set(rows_of([case, case + 1]))
            accepted, asked = set(host.accepted), len(host.endpoint.calls)
            pid = host.judge(case, case + 1)
            if killed:
                host.wait_for_calls(asked + chance.randint(0, len(rows - accepted) // BATCH))
                time.sleep(chance.uniform(0, 3 * LATENCY))
                host.kill(pid)
                kills += 1
            else:
                assert host.wait(pid) == 0
                host.listen()
            host.endpoint.settle()
            calls = host.endpoint.calls[asked:]
            assert not accepted & {row for call in calls for row in call.ids}, "accepted, and asked again"
            in_flight_at_kills += sum(not host.accepted.issuperset(call.ids) for call in calls)
        case += 2
    undisturbed = blocks_of(range(case))
    assert verdicts_in(host.journal) == undisturbed * BATCH
    # What was written at a kill but not yet said is not paid for again either.
    assert undisturbed < len(host.endpoint.calls) <= undisturbed + in_flight_at_kills
    print(
        f"{kills} kills: {len(host.endpoint.calls)} calls for {undisturbed} blocks, {in_flight_at_kills} were in flight"
    )


def test_processes_that_share_a_file_ask_every_question_once(host: Host) -> None:
    cases = range(4)
    pids = [host.judge(*cases) for _ in range(4)]
    assert [host.wait(pid) for pid in pids] == [0] * 4
    assert Counter(row for call in host.endpoint.calls for row in call.ids) == Counter(rows_of(cases))
    assert verdicts_in(host.journal) == len(rows_of(cases))


def test_section_7_also_with_four_writers_of_which_one_is_killed_again_and_again(host: Host) -> None:
    chance = random.Random(11)
    kills, case = [], 0
    for _ in range(10):
        cases = range(case, case + CASES_OF_FOUR)
        pids = [host.judge(*cases) for _ in range(4)]
        for _ in range(2):
            host.wait_for_calls(len(host.endpoint.calls) + chance.randint(1, 6))
            time.sleep(chance.uniform(0, 3 * LATENCY))
            before = len(host.endpoint.calls)
            host.kill(pids.pop(chance.randrange(4)))
            kills.append((before, len(host.endpoint.calls), set(host.accepted)))
            pids.append(host.judge(*cases))
        assert [host.wait(pid) for pid in pids] == [0] * 4
        case += CASES_OF_FOUR
    assert verdicts_in(host.journal) == len(rows_of(range(case)))
    asked = defaultdict(list)
    for number, call in enumerate(host.endpoint.calls):
        for row in call.ids:
            asked[row].append(number)
    for _, after, accepted in kills:
        assert not any(asked[row][-1] >= after for row in accepted), "accepted, and asked again"
    for numbers in asked.values():
        for first, again in pairwise(numbers):
            assert any(first < after and again >= before for before, after, _ in kills), (
                "asked twice, and no kill between"
            )
    print(f"{len(kills)} kills: {len(host.endpoint.calls)} calls for {blocks_of(range(case))} blocks")


def test_section_7_a_killed_command_resumes_from_its_output_folder(tmp_path: Path, endpoint: Endpoint) -> None:
    tests, submission, out = tmp_path / "task" / "tests", tmp_path / "submission", tmp_path / "out"
    tests.mkdir(parents=True)
    submission.mkdir()
    rows = [{"id": f"R{n}", "description": f"states fact {n}", "weight": 1} for n in range(8)]
    (tests / "rubric.json").write_text(json.dumps(rows))
    (tmp_path / "task" / "instruction.md").write_text("Report the facts.")
    (submission / "memo.md").write_text("All the facts.")
    settings = {
        "JUDGE_BATCH": "2",
        "JUDGE_CONCURRENCY": "1",
        "JUDGE_API_KEY": "key",
        "JUDGE_BASE_URL": endpoint.base_url,
    }
    command = [str(COMMAND), "judge", str(tmp_path / "task"), "--submission", str(submission), "-o", str(out)]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL)

    def is_hanging(calls: int) -> bool:
        """The last of so many calls is being asked, and what the others said was written."""
        if len(endpoint.calls) < calls:
            return False
        with contextlib.closing(sqlite3.connect(out / "judge-journal.sqlite")) as file:
            return bool(file.execute("SELECT count(*) FROM verdict").fetchone()[0] == calls)

    # One block at a time: each run gets one answer, and is killed while it asks for the next.
    for calls, row in ((2, "R2"), (4, "R4")):
        endpoint.rule(lambda call, row=row: row in call.ids, "hang", times=1)
        process = start()
        assert _wait(lambda calls=calls: is_hanging(calls), 120)
        process.kill()
        process.wait()
        endpoint.settle()
    assert start().wait() == 0
    blocks = [("R0", "R1"), ("R2", "R3"), ("R4", "R5"), ("R6", "R7")]
    assert [call.ids for call in endpoint.calls] == [*blocks[:2], *blocks[1:3], *blocks[2:]]
    assert json.loads((out / "result.json").read_text())["task_score"] == 1.0
