"""Every call is seen: by observers, in the log, in a file that processes share. Nothing private is."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rubric_env.engine import CallEvent, Question
from rubric_env.engine.events import public_url
from rubric_env.engine.observers import EventFile
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import JudgeSettings, SettingsError
from tests.engine.conftest import REPLY, Judging, case, rows
from tests.servers.scenarios import Scenario, error

WRITERS, LINES = 4, 300
FIELDS = {
    *("start", "end", "wait", "seconds", "rollout", "rows", "attempt", "model", "endpoint", "mode", "fault"),
    *("requests", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"),
}


def event(name: str = "", fault: Fault | None = None, endpoint: str = "http://127.0.0.1:9/v1") -> CallEvent:
    question = Question(name, ("R01", "R02"), "m", endpoint, attempt=2)
    return CallEvent(question, 10.0, 10.5, 12.5, 1_800_000_000.0, fault, Usage(1, 100, 80, 20, None), "json_schema")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_an_event_is_one_json_object_with_wall_times() -> None:
    fields = json.loads(json.dumps(event(fault=Fault(FaultKind.SERVER, "said: secret words")).as_dict()))
    assert fields == {
        "start": 1_800_000_000.0,
        "end": 1_800_000_002.0,
        "wait": 0.5,
        "seconds": 2.0,
        "rollout": "",
        "rows": ["R01", "R02"],
        "attempt": 2,
        "model": "m",
        "endpoint": "http://127.0.0.1:9/v1",
        "mode": "json_schema",
        "fault": "server",
        "requests": 1,
        "input_tokens": 100,
        "cached_tokens": 80,
        "output_tokens": 20,
        "cost_usd": None,
    }
    assert fields.keys() == FIELDS


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("https://user:pa%40ss@host.example:8443/v1?api-key=k#k", "https://host.example:8443/v1"),
        ("https://key@host.example/openai/v1", "https://host.example/openai/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("local", "local"),
        ("", ""),
    ],
)
def test_an_endpoint_is_shown_without_what_may_be_a_key(endpoint: str, shown: str) -> None:
    assert public_url(endpoint) == shown


async def test_several_observers_see_every_call_and_a_broken_one_hinders_none(judging: Judging) -> None:
    engine = judging.engine()
    first: list[CallEvent] = []
    last: list[CallEvent] = []

    def broken(_: CallEvent) -> None:
        raise RuntimeError("this observer is broken")

    for observer in (first.append, broken, last.append):
        engine.observe(observer)
    assert (await engine.judge(case(rows(8)))).reward == 1.0
    assert first == last == judging.events
    assert len(first) == 2
    engine.on_call = None
    await engine.judge(case(rows(4)))
    assert (len(first), len(judging.events)) == (3, 2)


async def test_the_logger_rubric_env_calls_has_every_call(judging: Judging, caplog: pytest.LogCaptureFixture) -> None:
    judging.endpoint.script("503")
    with caplog.at_level(logging.DEBUG, "rubric_env.calls"):
        await judging.engine().judge(case(rows(2), name="of the log"))
    failed, answered = [record for record in caplog.records if record.name == "rubric_env.calls"]
    assert (failed.levelno, answered.levelno) == (logging.INFO, logging.DEBUG)
    assert failed.judge_call["fault"] == "server"  # type: ignore[attr-defined]
    text = answered.getMessage()
    assert "\n" not in text
    assert json.loads(text.removeprefix("judge call "))["rollout"] == "of the log"


async def test_judge_events_names_a_file_with_a_line_a_call(judging: Judging, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "calls.jsonl"
    engine = judging.engine(events=str(path))
    judging.endpoint.script(error("echo", 400, f"bad prompt: {REPLY} with key"))
    before = time.time()
    await engine.judge(case(rows(8), name="of the file"))
    await engine.aclose()
    lines = read(path)
    assert lines == [event.as_dict() for event in judging.events]
    assert before <= lines[0]["start"] < lines[0]["end"] <= time.time()
    await engine.judge(case(rows(4)))
    await engine.aclose()
    assert len(read(path)) == len(lines) + 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("judge-events")]


async def test_no_event_holds_a_secret_or_a_word_of_the_policy_or_the_judge(
    judging: Judging, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "calls.jsonl"
    judging.endpoint.script(
        error("echo", 400, f"cannot read: {REPLY}"), Scenario("prose", content="This judge only chats about the profit")
    )
    with caplog.at_level(logging.DEBUG, "rubric_env.calls"):
        engine = judging.engine(events=str(path))
        await engine.judge(case(rows(4)))
        await engine.aclose()
    for text in (path.read_text("utf-8"), caplog.text):
        assert '"fault": "bad_request"' in text
        for private in ("profit", "chats", "Judge strictly", '"key"', "Bearer"):
            assert private not in text


def _write_many(path: str, name: str) -> None:
    file = EventFile(path)
    for _ in range(LINES):
        file(event(name * 2000))
    file.close()


def test_processes_that_share_a_file_spoil_no_line(tmp_path: Path) -> None:
    path, spawn = tmp_path / "calls.jsonl", multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_write_many, args=(str(path), str(number))) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    names = [line["rollout"] for line in read(path)]
    assert sorted(names) == sorted(str(number) * 2000 for number in range(WRITERS) for _ in range(LINES))


def test_a_process_that_was_forked_writes_its_events_too(tmp_path: Path) -> None:
    file = EventFile(tmp_path / "calls.jsonl")
    file(event("before"))
    if not (pid := os.fork()):
        try:
            file(event("child"))
            file.close()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    file.close()
    assert sorted(line["rollout"] for line in read(tmp_path / "calls.jsonl")) == ["before", "child"]


def test_a_disk_that_is_slow_delays_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, released = EventFile(tmp_path / "calls.jsonl"), threading.Event()
    write = file._write
    monkeypatch.setattr(file, "_write", lambda line: released.wait(120) and write(line))
    start = time.monotonic()
    for _ in range(3):
        file(event())
    assert time.monotonic() - start < 60
    assert read(tmp_path / "calls.jsonl") == []
    released.set()
    file.close()
    assert len(read(tmp_path / "calls.jsonl")) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_warning_and_the_judging_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    file = EventFile("/dev/full")
    for _ in range(3):
        file(event())
    file.close()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "JUDGE_EVENTS=/dev/full: [Errno 28]" in caplog.text


def test_a_file_that_cannot_be_opened_is_told_before_anything_is_paid(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "calls.jsonl"):
        with pytest.raises(SettingsError, match=r"events = .*cannot be written"):
            EventFile(path)
    assert JudgeSettings.load({}, environ={"JUDGE_EVENTS": "calls.jsonl"}).events == "calls.jsonl"


async def test_a_cancelled_rollout_leaves_the_events_of_its_calls(judging: Judging, tmp_path: Path) -> None:
    judging.endpoint.default = Scenario("slow", latency=30.0)
    engine = judging.engine(events=str(tmp_path / "calls.jsonl"))
    task = asyncio.create_task(engine.judge(case(rows(4))))
    await asyncio.to_thread(judging.endpoint.wait_in_flight, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await engine.aclose()
    assert [line["fault"] for line in read(tmp_path / "calls.jsonl")] == ["cancelled"]
