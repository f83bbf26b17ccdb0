"""Files that take long do not keep others waiting: a feedback queue of two levels before few processes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rubric_env.evidence._turns import MOST, Turns, processes
from rubric_env.evidence._workers import WorkerDied, Workers
from tests.evidence import burner
from tests.evidence.burner import Burn

PATIENCE = 60
"""Seconds after which a test that hangs has failed."""


class Line:
    """Threads that want a turn; `order` is that in which they got it."""

    def __init__(self, size: int) -> None:
        self.turns = Turns(size)
        self.order: list[str] = []
        self._leave: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def want(self, name: str, *, long: bool = False) -> None:
        """Join the line; returns when the thread waits or has its turn."""
        waiting = self.turns._long if long else self.turns._short
        before, held, leave = len(waiting), len(self.order), threading.Event()
        self._leave[name] = leave

        def take() -> None:
            with self.turns.turn(long=long):
                self.order.append(name)
                assert leave.wait(PATIENCE)

        self._threads.append(threading.Thread(target=take, daemon=True))
        self._threads[-1].start()
        until(lambda: len(waiting) > before or len(self.order) > held)

    def leave(self, name: str) -> None:
        self._leave[name].set()

    def end(self) -> None:
        for leave in self._leave.values():
            leave.set()
        for thread in self._threads:
            thread.join(PATIENCE)


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line(2)
    yield made
    made.end()


def test_who_comes_first_is_served_first(line: Line) -> None:
    for name in "abcd":
        line.want(name)
    for name in "ab":
        line.leave(name)
    until(lambda: len(line.order) == 4)
    assert line.order[:2] == ["a", "b"] and set(line.order[2:]) == {"c", "d"}


def test_what_was_long_waits_for_all_that_come_for_the_first_time(line: Line) -> None:
    for name in "ab":
        line.want(name)
    line.want("long", long=True)
    for name in "cd":
        line.want(name)
    for name in "ab":
        line.leave(name)
    until(lambda: len(line.order) == 4)
    assert "long" not in line.order
    line.leave("c")
    until(lambda: line.order[-1] == "long")


def test_one_place_is_never_taken_by_what_is_long(line: Line) -> None:
    for number in range(3):
        line.want(f"long {number}", long=True)
    assert line.order == ["long 0"]
    line.want("short")
    assert line.order == ["long 0", "short"]
    line.leave("short")
    line.leave("long 0")
    until(lambda: line.order[-1] == "long 1")


def test_where_there_is_one_place_it_serves_both() -> None:
    line = Line(1)
    try:
        line.want("long", long=True)
        line.want("short")
        line.leave("long")
        until(lambda: line.order == ["long", "short"])
    finally:
        line.end()


def test_a_turn_is_given_back_whatever_happened_in_it() -> None:
    turns = Turns(1)
    for long in (False, True):
        with pytest.raises(ValueError), turns.turn(long=long):
            raise ValueError
    with turns.turn(long=False):
        pass


def test_there_are_as_many_processes_as_suit_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, expected in ((1, 1), (2, 2), (4, 2), (8, 4), (64, MOST)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        assert processes() == expected


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(2, burner.MODULE, first_try=1)
    yield made
    made.stop()


def test_a_job_that_needs_more_than_a_first_try_is_done_all_the_same(workers: Workers, tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert workers.do(Burn(str(log), "long", 2.5)) == {"burnt": 2.5}
    assert log.read_text().split() == ["long", "long"]


def test_one_that_needs_more_than_it_may_dies_of_that_limit(workers: Workers, tmp_path: Path) -> None:
    with pytest.raises(WorkerDied, match="more than 2 s of CPU time") as died:
        workers.do(Burn(str(tmp_path / "log"), "endless", 600, cpu_seconds=2))
    assert not died.value.ours
    assert workers.do(Burn(str(tmp_path / "log"), "other", 0.01)) == {"burnt": 0.01}


def test_short_jobs_do_not_wait_for_the_whole_of_long_ones(workers: Workers, tmp_path: Path) -> None:
    log, done = tmp_path / "log", []

    def work(name: str, seconds: float) -> None:
        workers.do(Burn(str(log), name, seconds))
        done.append(name)

    long = [threading.Thread(target=work, args=(f"long-{number}", 3.0)) for number in range(3)]
    for thread in long:
        thread.start()
    until(lambda: log.exists() and len(log.read_text().split()) >= 2)
    short = [threading.Thread(target=work, args=(f"short-{number}", 0.01)) for number in range(5)]
    for thread in short:
        thread.start()
    for thread in (*short, *long):
        thread.join(PATIENCE)
    assert len(done) == 8
    assert [name.partition("-")[0] for name in done[:5]] == ["short"] * 5


def test_workers_that_were_stopped_are_started_again(workers: Workers, tmp_path: Path) -> None:
    job = Burn(str(tmp_path / "log"), "job", 0.01)
    workers.do(job)
    workers.stop()
    assert workers.do(job) == {"burnt": 0.01}
