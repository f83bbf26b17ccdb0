"""The command itself, its env server with two workers, and a resumed run, against endpoints on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.classic.test_workspace_env import FACT, say, scripted, write
from tests.servers.endpoint import Endpoint

MODULE = """
from pathlib import Path

from rubric_env.classic import Family, build_environment

TINY = Family("tiny-env", Path("none-ships"), tools=("list_files", "read_file", "write_file"))

def load_environment(instances, **arguments):
    return build_environment(TINY, instances, **arguments)
"""
CASES = {
    "delivers": [write("output/memo.md"), say("Done.")],
    "says-nothing": [say("")],
    "delivers-and-says-nothing": [write("output/memo.md"), say("")],
    "answers": [say(FACT)],
}
REWARDS = {"delivers": 1.0, "says-nothing": 0.0, "delivers-and-says-nothing": 1.0, "answers": 1.0}
FIGURES = """
import json, os
def keep(figures, step):
    with open(os.environ["FIGURES"], "a") as file:
        file.write(json.dumps([os.getpid(), step, figures]) + "\\n")
"""


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[Endpoint]:
    with Endpoint() as server:
        for case, turns in CASES.items():
            tests = tmp_path / "instances" / case / "tests"
            tests.mkdir(parents=True)
            (tests.parent / "instruction.md").write_text(f"Case {case}. Write output/memo.md, which states the total.")
            (tests / "rubric.json").write_text('[{"description": "States that the total is 42 euros", "weight": 1}]')
            (tests / "judge_instruction.md").write_text("Judge.")
            scripted(server, case, turns)
        yield server


def vf_eval(folder: Path, policy: Endpoint, judge: Endpoint, *options: str) -> list[dict[str, Any]]:
    """The rows that the command saved."""
    (folder / "tiny_env.py").write_text(MODULE)
    (folder / "figures.py").write_text(FIGURES)
    (folder / "scratch").mkdir(exist_ok=True)
    hidden = ("JUDGE_", "OPENAI_", "PRIME_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(hidden)},
        **{"JUDGE_API_KEY": "key", "JUDGE_BASE_URL": judge.base_url, "JUDGE_MODEL": "judge", "POLICY_KEY": "key"},
        **{"PYTHONPATH": str(folder), "FIGURES": str(folder / "figures.jsonl"), "NO_PROXY": "127.0.0.1"},
        **{"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "JUDGE_JOURNAL": str(folder / "journal.sqlite")},
        **{"JUDGE_REUSE": "always", "TMPDIR": str(folder / "scratch")},
    }
    arguments = {"instances": str(folder / "instances"), "judge": {"log": "figures:keep"}}
    command = [
        *(str(Path(sys.executable).parent / "vf-eval"), "tiny-env", "-m", "policy", "-b", policy.base_url),
        *("-k", "POLICY_KEY", "-n", "4", "-r", "2", "-d", "-s", "-C", "judge_result,advantage"),
        *("-a", json.dumps(arguments), "-o", str(folder / "out"), *options),
    ]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    (results,) = (folder / "out").rglob("results.jsonl")
    return [json.loads(line) for line in results.read_text("utf-8").splitlines()]


def case_of(row: dict[str, Any]) -> str:
    return next(str(m["content"]) for m in row["prompt"] if m["role"] == "user").split()[1].rstrip(".")


def test_vf_eval_with_two_workers_and_its_resumed_run(tmp_path: Path, policy: Endpoint, endpoint: Endpoint) -> None:
    rows = vf_eval(tmp_path, policy, endpoint, "-w", "2")
    assert len(rows) == 8
    for row in rows:
        assert (row["error"], row["judge_scored"], row["reward"]) == (None, 1.0, REWARDS[case_of(row)])
        assert row["metrics"]["workspace_files"] == float("delivers" in case_of(row))
        assert row["advantage"] == row["judge_advantage"] == 0.0
        assert row["judge_flat_group"] == 1.0
        assert row["judge_result"]["task_score"] == row["reward"]
    assert {case_of(row) for row in rows if row["delivery_missing"]} == {"says-nothing"}
    (metadata,) = (tmp_path / "out").rglob("metadata.json")
    assert json.loads(metadata.read_text("utf-8"))["avg_reward"] == 0.75
    logged = [json.loads(line) for line in (tmp_path / "figures.jsonl").read_text("utf-8").splitlines()]
    assert sum(figures["tiny-env/rollouts"] for _, _, figures in logged) == 8.0
    logs = [path.read_text("utf-8") for path in (tmp_path / "out").rglob("env_worker_*.log")]
    assert len(logs) == 2
    assert "rubric judge: mean reward over" in "".join(logs)
    assert len({pid for pid, _, _ in logged}) == 2
    assert list((tmp_path / "scratch").glob("workspace-*")) == []

    (results,) = (tmp_path / "out").rglob("results.jsonl")
    results.write_text("".join(results.read_text("utf-8").splitlines(keepends=True)[:5]), "utf-8")
    again = vf_eval(tmp_path, policy, endpoint, "--disable-env-server", "--resume", str(results.parent))
    assert sorted((case_of(row), row["reward"]) for row in again) == sorted(
        (case_of(row), row["reward"]) for row in rows
    )
