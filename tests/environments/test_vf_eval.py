"""The real vf-eval, its policy and its judge on loopback: what a user of harbor-gdp runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_env.local import LocalJudgeServer, ReplayPolicyServer
from tests.servers.endpoint import Endpoint

pytest.importorskip("verifiers", reason="the classic extra is not installed")
harbor_gdp = pytest.importorskip("harbor_gdp", reason="environments/harbor_gdp is not installed")

INSTANCES = Path(harbor_gdp.__file__).parent / "instances"
VF_EVAL = Path(sys.executable).parent / "vf-eval"


@pytest.fixture(scope="module")
def policy() -> Iterator[ReplayPolicyServer]:
    recordings = [json.loads(path.read_text("utf-8")) for path in sorted(INSTANCES.glob("*/recordings/*.json"))]
    with ReplayPolicyServer(recordings) as server:
        yield server


@pytest.fixture(scope="module")
def judge() -> Iterator[LocalJudgeServer]:
    with LocalJudgeServer() as server:
        yield server


def vf_eval(
    policy: ReplayPolicyServer, judge_url: str, out: Path, *flags: str, **environment: str
) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, the saved rollouts, and what vf-eval printed."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
    command = [
        *(str(VF_EVAL), "harbor-gdp", "-m", policy.model, "-b", policy.base_url, "-k", "POLICY_KEY"),
        *("-s", "-d", "-C", "judge_result", "-o", str(out), *flags),
    ]
    done = subprocess.run(
        command,
        env={
            **clean,
            "JUDGE_API_KEY": "judge-secret",
            "JUDGE_BASE_URL": judge_url,
            "JUDGE_MODEL": LocalJudgeServer.model,
            "POLICY_KEY": "x",
            "HF_HUB_OFFLINE": "1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    rows = [json.loads(line) for path in out.glob("**/results.jsonl") for line in path.read_text("utf-8").splitlines()]
    return done.returncode, rows, done.stdout + done.stderr


@pytest.mark.parametrize(
    "flags",
    [(), ("--disable-env-server",), ("--disable-env-server", "-i")],
    ids=["env-server", "in-process", "independent"],
)
def test_whole_path_from_dataset_to_saved_results(
    policy: ReplayPolicyServer, judge: LocalJudgeServer, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    code, rows, said = vf_eval(policy, judge.base_url, tmp_path, "-n", "2", "-r", "2", *flags)
    assert code == 0, said[-3000:]
    assert len(rows) == 4
    for row in rows:
        metrics = row["metrics"]
        assert metrics["judge_scored"] == 1.0
        assert metrics["judge_coverage"] == 1.0
        assert metrics["rubric_reward"] == pytest.approx(row["reward"])
        assert {"num_turns", "total_tool_calls", "workspace_files", "judge_advantage"} <= metrics.keys()
        assert row["judge_result"]["task_score"] == pytest.approx(row["reward"])
        assert len(row["judge_result"]["details"]["criteria"]) >= 6
    for example in {row["example_id"] for row in rows}:
        advantages = [row["metrics"]["judge_advantage"] for row in rows if row["example_id"] == example]
        assert sum(advantages) == pytest.approx(0.0)
    text = "".join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())
    assert "judge-secret" not in text + said
    if "--disable-env-server" in flags:
        assert "rubric judge: mean reward over 4 scored rollouts" in said


def test_a_dead_judge_gives_no_reward_that_looks_like_the_policys(
    policy: ReplayPolicyServer, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.rule(lambda call: True, "401")
    code, rows, said = vf_eval(policy, endpoint.base_url, tmp_path, "-n", "1", "-r", "2", "--disable-env-server")
    assert code == 0, said[-3000:]
    for row in rows:
        if row["metrics"]["delivery_missing"]:
            continue
        assert row["metrics"]["judge_scored"] == 0.0
        assert "HarborJudgeError" in row["error"]["error_chain_repr"]
        assert row["metrics"]["judge_advantage"] == 0.0
    assert "unscored" in said


def test_no_key_stops_before_any_rollout_is_paid(policy: ReplayPolicyServer, tmp_path: Path) -> None:
    code, rows, said = vf_eval(policy, "", tmp_path, "-n", "1", JUDGE_API_KEY="", OPENAI_API_KEY="")
    assert code != 0
    assert rows == []
    assert "JUDGE_API_KEY" in said


def test_a_users_own_folder_of_instances(policy: ReplayPolicyServer, judge: LocalJudgeServer, tmp_path: Path) -> None:
    import shutil

    mine = tmp_path / "mine"
    name = sorted(path.name for path in INSTANCES.iterdir() if path.is_dir())[0]
    shutil.copytree(INSTANCES / name, mine / "one")
    (mine / "broken" / "tests").mkdir(parents=True)
    (mine / "broken" / "tests" / "rubric.json").write_text("[{]")
    code, rows, said = vf_eval(
        policy,
        judge.base_url,
        tmp_path / "out",
        "-n",
        "-1",
        "-r",
        "1",
        "--disable-env-server",
        "-a",
        json.dumps({"instances": str(mine)}),
    )
    assert code == 0, said[-3000:]
    assert len(rows) == 1
    assert "broken" in said
