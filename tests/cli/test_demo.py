"""`rubric-env demo`: what it needs, what it keeps from its child, how it ends, and the table."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rubric_env.cli._common import console
from rubric_env.cli._report import FIGURES, print_report, read_rollouts
from rubric_env.cli.demo import _offline_environment
from tests.cli.test_commands import COMMAND, run, write
from tests.servers.endpoint import Endpoint

pytest.importorskip("harbor_gdp", reason="environments/harbor_gdp is not installed")

POLICY = {"POLICY_BASE_URL": "http://127.0.0.1:9/v1", "POLICY_API_KEY": "policy-secret", "POLICY_MODEL": "m"}
NO_POLICY = dict.fromkeys(POLICY, "")


def test_live_names_all_that_is_missing_at_once_and_leaves_no_folder(tmp_path: Path) -> None:
    done = run("demo", "--live", "-o", tmp_path / "out", **NO_POLICY)
    assert done.returncode == 2
    assert all(name in done.stderr for name in (*POLICY, "JUDGE_API_KEY"))
    assert "JUDGE_BATCH" not in done.stderr
    assert "batch" in run("demo", "--live", JUDGE_BATCH="banana", JUDGE_API_KEY="k", **POLICY).stderr
    assert not (tmp_path / "out").exists()


def test_live_starts_no_rollout_when_the_judge_does_not_answer(tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.rule(lambda call: True, "401")
    key = {"JUDGE_API_KEY": "judge-secret", "JUDGE_BASE_URL": endpoint.base_url}
    done = run("demo", "--live", "-o", tmp_path / "out", **POLICY, **key)
    assert done.returncode == 1
    assert "no rollout was started" in done.stderr
    assert "auth" in done.stderr
    assert "secret" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_no_instances_are_no_run(tmp_path: Path) -> None:
    assert run("demo", "-n", "0", "-o", tmp_path / "out").returncode == 2


def test_an_environment_that_is_not_shipped_is_one_line_with_those_that_are(tmp_path: Path) -> None:
    done = run("demo", "harbor-foo", "-o", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "harbor-foo: the demo has harbor-gdp, harbor-wle, harbor-dr, harbor-ppt" in done.stderr


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("demo", "-o", tmp_path / "file")
    assert done.returncode == 1
    assert str(tmp_path / "file") in done.stderr.strip().splitlines()[-1]


def test_secrets_and_proxies_stay_out_of_the_offline_child(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = ["OPENAI_API_KEY", "JUDGE_BATCH", "HF_TOKEN", "PGPASSWORD", "GITHUB_PAT", "https_proxy", "ALL_PROXY"]
    for name in hidden:
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    child = _offline_environment("http://127.0.0.1:1/v1")
    assert not child.keys() & set(hidden)
    assert child["JUDGE_BASE_URL"] == "http://127.0.0.1:1/v1"
    assert child["PATH"] == os.environ["PATH"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see the child")
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_however_the_demo_is_stopped_nothing_goes_on_behind_it(tmp_path: Path, sign: signal.Signals) -> None:
    command = [str(COMMAND), "demo", "-n", "1", "-r", "1", "-o", str(tmp_path / "out")]
    # A runner started with nohup ignores SIGHUP, and its children inherit that.
    default = functools.partial(signal.signal, sign, signal.SIG_DFL)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    limit = time.monotonic() + 120
    while not list(tmp_path.glob("out/*/vf-eval.log")) or not children.read_text().split():
        assert time.monotonic() < limit
        time.sleep(0.05)
    (child,) = children.read_text().split()
    process.send_signal(sign)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said.splitlines()[-1]
    assert "Traceback" not in said
    assert not Path(f"/proc/{child}").exists()


def saved(name: str, reward: float, scored: bool, faults: list[str], **row: Any) -> str:
    criteria = [{"id": f"R{n}", "fault": fault} for n, fault in enumerate(faults)]
    metrics = {"judge_scored": float(scored), "judge_called": 1.0, **row.pop("metrics", {})}
    result = {"details": {"criteria": criteria}, "exit_reason": ""}
    return json.dumps(
        {"info": json.dumps({"name": name}), "reward": reward, "metrics": metrics, "judge_result": result, **row}
    )


def report(folder: Path, lines: list[str], capsys: Any) -> str:
    write(folder / "evals" / "results.jsonl", "".join(f"{line}\n" for line in lines) + '{"cut": "her')
    print_report(read_rollouts(folder, []), folder, None, live=True)
    return str(capsys.readouterr().err)


def test_the_table_counts_faults_by_kind_and_says_each_cause_once(tmp_path: Path, capsys: Any) -> None:
    fault = "auth: HTTP 401: key [redacted]"
    lines = [saved("[a]", 0.0, False, [fault, fault]), saved("[a]", 0.0, False, [fault]), saved("b", 0.5, True, [""])]
    said = report(tmp_path, lines, capsys)
    assert "2 auth" in said
    assert said.count("HTTP 401") == 1
    assert f"2 rollouts: {fault}" in said
    assert "[a]" in said
    assert "mean score 0.500 over 1 scored rollouts, 2 unscored" in said


@pytest.mark.parametrize(("columns", "dropped"), [(60, {"cover", "calls", "tokens"}), (80, {"tokens"}), (120, set())])
def test_a_narrow_terminal_gets_fewer_figures_and_no_broken_words(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, columns: int, dropped: set[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    console.cache_clear()
    said = report(tmp_path, [saved("a-name-of-23-characters", 0.0, False, ["breaker_open: gone"] * 14)], capsys)
    console.cache_clear()
    table = said.partition("mean score")[0]
    assert "14 breaker_open" in table
    assert {name for name in FIGURES if f" {name} " not in table} - {"s"} == dropped


def test_the_head_of_the_table_and_long_answers_need_room_too(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    console.cache_clear()
    said = report(tmp_path, [saved("short", 0.5, True, [])], capsys)
    console.cache_clear()
    assert "instance and answer" in said and "…" not in said.partition("mean score")[0]


def test_a_rollout_that_never_came_to_the_judge_says_why(tmp_path: Path, capsys: Any) -> None:
    error = {"error": "ModelError", "error_chain_repr": "ModelError() -> ConnectError('refused')"}
    lines = [saved("a", 0.0, False, [], error=error), saved("b", 0.0, False, [], judge_result=None)]
    said = report(tmp_path, lines, capsys)
    assert "ConnectError('refused')" in said
    assert "no error saved" in said


def test_an_equal_answer_that_was_not_asked_again_is_explained(tmp_path: Path, capsys: Any) -> None:
    free: Mapping[str, Any] = {"metrics": {"judge_called": 0.0}}
    assert "equal answer" in report(tmp_path, [saved("a", 1.0, True, [], **free)], capsys)
    nothing = saved("a", 0.0, True, [], metrics={"judge_called": 0.0, "delivery_missing": 1.0})
    assert "equal answer" not in report(tmp_path, [nothing], capsys)
