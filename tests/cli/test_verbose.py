"""`--verbose`: a line a call, in any terminal, and what the calls came to."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from rubric_env.cli._calls import Tail, call_line, total_line
from rubric_env.cli._common import console
from rubric_env.cli.demo import _run
from tests.cli.test_commands import COMMAND, instance, run, write
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import error

__all__ = ["instance"]

CALL: dict[str, Any] = {
    "rollout": "gdp-001",
    "rows": ["R01", "R02", "R03", "R04"],
    "attempt": 1,
    "mode": "json_schema",
    "fault": None,
    "seconds": 12.34,
    "wait": 0.5,
    "input_tokens": 12_345,
    "cached_tokens": 9_876,
    "output_tokens": 640,
}
FAILED = {**CALL, "fault": "server", "attempt": 3, "input_tokens": 0, "cached_tokens": 0, "mode": ""}
TOTALS: dict[str, Any] = {
    "judge_calls": 5,
    "judge_input_tokens": 10_000,
    "judge_cached_tokens": 7_500,
    "judge_output_tokens": 640,
    "judge_cost_usd": 0.0123,
    "judge_cost_known": True,
}


def test_a_call_is_one_line_with_its_figures() -> None:
    assert call_line(CALL) == ("gdp-001 R01…R04  12.3 s  waited 0.5 s  12,345 in (80% cached)  640 out  json_schema")
    assert call_line({**CALL, "rollout": "", "rows": ["R01"], "mode": ""}).startswith("R01  12.3 s")
    assert call_line(FAILED, "overloaded") == "gdp-001 R01…R04  server  12.3 s  waited 0.5 s  try 3  overloaded"


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40, 20])
def test_a_line_fits_its_terminal(width: int) -> None:
    for call in (
        CALL,
        FAILED,
        {**CALL, "rollout": "a name of a rollout that is as long as they come in the field", "rows": ["甲" * 40]},
    ):
        line = call_line(call, "a detail that is long: " + "words " * 50, width)
        assert cell_len(line) <= width
        if width >= 40:
            assert (call["fault"] or "12.3 s") in line
    if width >= 100:
        assert call_line(CALL, width=width) == call_line(CALL)


def test_what_others_wrote_stays_on_the_line() -> None:
    call = {**FAILED, "rollout": "a\nb", "rows": ["x\r\ny"]}
    assert call_line(call, "line one\nline two\tend").splitlines() == [
        "a b x y  server  12.3 s  waited 0.5 s  try 3  line one line two end"
    ]


def test_the_total_says_calls_tokens_cached_share_cost_and_time() -> None:
    assert total_line(TOTALS, 14.24) == "5 calls, tokens: 10,000 in (75% cached), 640 out; $0.0123; 14.2 s"
    unknown = {**TOTALS, "judge_calls": 1, "judge_input_tokens": 0, "judge_cached_tokens": 0, "judge_cost_known": False}
    assert total_line(unknown, 1.0) == "1 call, tokens: 0 in, 640 out; price unknown; 1.0 s"


def test_a_tail_gives_whole_lines_that_came_since(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    assert list(Tail(path).new()) == []
    path.write_text('{"old": 1}\n')
    tail = Tail(path)
    with path.open("a") as file:
        file.write('{"cut by a full di{"a": 0}\n{"a": 1}\n{"b"')
        file.flush()
        assert list(tail.new()) == [{"a": 1}]
        file.write(": 2}\n")
    assert list(tail.new()) == [{"b": 2}]
    assert list(tail.new()) == []


def judge_arguments(instance: Path, tmp_path: Path, endpoint: Endpoint) -> tuple[list[str], dict[str, str]]:
    write(tmp_path / "sub" / "memo.md", "The owner is the ledger team.")
    arguments = ["judge", str(instance), "--submission", str(tmp_path / "sub"), "-o", str(tmp_path / "out")]
    return arguments, {"JUDGE_API_KEY": "k-123456789", "JUDGE_BASE_URL": endpoint.base_url}


def test_judge_verbose_shows_each_call_and_a_run_ends_with_what_it_cost(
    instance: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    arguments, environment = judge_arguments(instance, tmp_path, endpoint)
    endpoint.script(error("down", 503, "[red]down[/red] for [link=http://x]now"))
    done = run(*arguments, "-v", "--model", "m", **environment)
    assert done.returncode == 0, done.stderr
    failed, answered = [line for line in done.stderr.splitlines() if line.startswith("task c1…c2  ")]
    assert "server" in failed
    assert "[red]down[/red] for [link=http://x]now" in failed
    assert "waited" in answered
    assert "json_schema" in answered
    assert "price unknown" in done.stderr
    assert "2 calls, tokens: " in done.stderr
    assert json.loads(done.stdout)["status"] == "success"


def test_without_verbose_only_the_total_is_said_and_with_json_nothing(
    instance: Path, tmp_path: Path, endpoint: Endpoint
) -> None:
    arguments, environment = judge_arguments(instance, tmp_path, endpoint)
    quiet = run(*arguments, **environment)
    assert "waited" not in quiet.stderr
    assert "1 call, tokens: " in quiet.stderr
    again = run(*arguments, "--json", **environment)
    assert "tokens: " not in again.stderr


def test_demo_verbose_shows_the_calls_of_its_child(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    console.cache_clear()
    calls = tmp_path / "calls.jsonl"
    child = f"import os; open(os.environ['JUDGE_EVENTS'], 'a').write({json.dumps(CALL)!r} + chr(10))"
    environment = {**os.environ, "JUDGE_EVENTS": str(calls)}
    assert _run([sys.executable, "-c", child], environment, tmp_path, 1, None, Tail(calls)) is None
    assert capfd.readouterr().err.count("gdp-001 R01…R04  12.3 s") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("columns", [40, 100])
def test_on_a_terminal_a_line_is_one_line(instance: Path, tmp_path: Path, endpoint: Endpoint, columns: int) -> None:
    arguments, environment = judge_arguments(instance, tmp_path, endpoint)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(COMMAND), *arguments, "--verbose"],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, **environment, "COLUMNS": str(columns), "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
    os.close(ours)
    assert process.wait(60) == 0, shown
    # A call takes the place of the status line, which is erased and drawn again below it.
    drawn = re.sub(r"\x1b\[[\d;?]*\w|\r", "", shown.decode().replace("\x1b[2K", "\n"))
    lines = [line for line in drawn.split("\n") if "c1…c2" in line]
    assert len(lines) == 1
    assert cell_len(lines[0]) <= columns
    assert (" in (" in lines[0]) == (columns == 100)
