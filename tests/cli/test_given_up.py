"""SPEC 7: a command whose endpoint dies says so in one line, exits 1 and keeps what was judged."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_commands import run, write
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS


def test_section_7_a_dead_endpoint_ends_the_command_and_keeps_its_verdicts(endpoint: Endpoint, tmp_path: Path) -> None:
    rows = [{"id": f"c{n}", "description": f"states fact {n}", "weight": 1} for n in range(8)]
    write(tmp_path / "task" / "tests" / "rubric.json", rows)
    write(tmp_path / "task" / "instruction.md", "State facts.")
    write(tmp_path / "delivered" / "facts.md", "Facts.")
    command = ["judge", tmp_path / "task", "--submission", tmp_path / "delivered", "-o", tmp_path / "out"]
    variables = {
        "JUDGE_API_KEY": "a-key-that-must-not-show",
        "JUDGE_BASE_URL": endpoint.base_url,
        "JUDGE_BATCH": "1",
        "JUDGE_CONCURRENCY": "1",
    }
    endpoint.script("ok", "ok")
    endpoint.default = SCENARIOS["drop"]
    done = run(*command, **variables)
    assert done.returncode == 1
    assert len(endpoint.calls) == 2 + 3 + 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "judge endpoint given up: 3 of 3 calls failed, then 3 probes; last error: connection" in line
    assert "likely cause: a dead endpoint or a wrong URL" in line
    assert json.loads(done.stdout)["exit_code"] == "judge:api_error"
    assert not (tmp_path / "out" / "reward.txt").exists()

    endpoint.default = SCENARIOS["ok"]
    again = run(*command, **variables)
    assert (again.returncode, json.loads(again.stdout)["task_score"]) == (0, 1.0)
    assert len(endpoint.calls) == 8 + 6
    assert variables["JUDGE_API_KEY"] not in done.stdout + done.stderr + again.stdout + again.stderr
