"""The commands themselves: `eval` of verifiers 0.3.1 or `vf-eval` of 0.4, and the replay of a saved run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric_env.scoring import FaultKind, unscored
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario
from tests.v1.conftest import HARNESS, make_instance

FIELDS = unscored(FaultKind.INTERNAL, "").metrics().keys()
OLD = Path(sys.executable).with_name("eval").exists()
"""In 0.3.1 `vf-eval` is still the classic command."""


@pytest.fixture(autouse=True)
def qualities(endpoint: Endpoint) -> None:
    """HALF is scored 0.75 and BAD 0; LOST meets a key that is refused, SLOW an endpoint that hangs."""
    endpoint.truth = lambda call: {
        "R1": "reply BAD" not in call.text,
        "R2": not any(word in call.text for word in ("reply HALF", "reply BAD")),
    }
    endpoint.rule(lambda call: "reply LOST" in call.text, "401")
    endpoint.rule(lambda call: "reply SLOW" in call.text, "hang")


def command(name: str, *words: str, judge: Endpoint | None, cwd: Path) -> subprocess.CompletedProcess[str]:
    hidden = ("JUDGE_", "OPENAI_", "PRIME_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    env |= {"PYTHONPATH": str(HARNESS), "POLICY_KEY": "policy", "COLUMNS": "200"}
    if judge:
        env |= {"JUDGE_API_KEY": "judge-secret", "JUDGE_BASE_URL": judge.base_url}
    program = Path(sys.executable).with_name(name if OLD else f"vf-{name}")
    return subprocess.run([program, *words], env=env, cwd=cwd, capture_output=True, text=True, timeout=240)


def evaluate(
    instances: Path, policy: Endpoint, judge: Endpoint | None, out: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    return command(
        "eval",
        *("rubric-tasks", "--env.taskset.instances", json.dumps([str(instances)]), "-m", "policy-model"),
        *("--client.base-url", policy.base_url, "--client.api-key-var", "POLICY_KEY"),
        *("--env.agent.harness.id", "loopback_policy", "--env.agent.runtime.type", "subprocess"),
        *("--no-push", "--rich", "None", "-o", str(out), *words),
        judge=judge,
        cwd=instances,
    )


def saved(out: Path, done: subprocess.CompletedProcess[str]) -> dict[str, list[Any]]:
    """The traces of each task, by its name."""
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "Unclosed" not in done.stderr
    [file] = out.rglob("traces.jsonl")
    found: dict[str, list[Any]] = {}
    for line in file.read_text("utf-8").splitlines():
        for trace in json.loads(line)["traces"]:
            found.setdefault(trace["task"]["data"]["name"], []).append(trace)
    return found


def case(instances: Path, policy: Endpoint, name: str, *replies: str) -> None:
    """An instance, and what its rollouts deliver, the last for all that follow."""
    make_instance(instances / name, **{"instruction.md": f"Case {name}. Write output/memo.md."})
    for number, reply in enumerate(replies, 1):
        times = 1 if number < len(replies) else None
        policy.rule(lambda call: f"Case {name}." in str(call.body), Scenario(name, content=reply), times=times)


def scores(traces: list[Any]) -> list[float | None]:
    return [reward and reward["score"] for trace in traces for reward in [trace["rewards"].get("rubric_judge")]]


def test_a_run_scores_what_was_delivered_and_fails_what_nobody_could_judge_and_so_does_its_replay(
    endpoint: Endpoint, policy: Endpoint, tmp_path: Path
) -> None:
    instances, out = tmp_path / "instances", tmp_path / "out"
    for name in ("GOOD", "HALF", "BAD", "LOST", "SLOW"):
        case(instances, policy, name, f"FILE output/memo.md: reply {name}")
    case(instances, policy, "SILENT", "")
    options = ("--env.agent.timeout.scoring", "15", "--env.taskset.task.submissions", str(tmp_path / "kept"))
    done = evaluate(instances, policy, endpoint, out, "-r", "2", *options)
    found = saved(out, done)
    judged = {"GOOD": 1.0, "HALF": 0.75, "BAD": 0.0, "SILENT": 0.0}
    for name, traces in found.items():
        assert scores(traces) == [judged.get(name)] * 2
        for trace in traces:
            assert trace["ok"] == (name in judged)
            assert trace["metrics"].keys() >= FIELDS
            assert trace["metrics"]["judge_scored"] == trace["metrics"]["judge_coverage"] == float(name in judged)
            assert trace["metrics"]["delivery_missing"] == float(name == "SILENT")
            assert trace["info"]["judge_result"]["task_score"] == judged.get(name)
            assert trace["info"]["judge_result"]["details"]["delivery"]["files"] == ["output/memo.md"] * (
                name != "SILENT"
            )
            assert trace["stop_condition"] == "agent_completed", "not `scoring_timeout`, which 0.4 lets count as 0"
    for name, reason in (("LOST", "auth"), ("SLOW", "the scoring time-out of 15 s leaves no more")):
        for error in [error for trace in found[name] for error in trace["errors"]]:
            assert error["type"] == "HarborJudgeError" and reason in error["message"]
    for name in ("GOOD", "HALF", "BAD"):  # equal submissions of a task are paid once
        [usage] = [usage for trace in found[name] for usage in trace["extra_usage"]]
        assert usage["prompt_tokens"] == sum(trace["metrics"]["judge_input_tokens"] for trace in found[name]) > 0
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert b"judge-secret" not in b"".join([done.stdout.encode(), done.stderr.encode(), *written])

    again = tmp_path / "again"
    [run] = [file.parent for file in out.rglob("traces.jsonl")]
    with Endpoint() as other:
        other.rule(lambda call: "reply BAD" in call.text, "401")
        done = command("replay", str(run), "--rich", "False", "-o", str(again), judge=other, cwd=tmp_path)
    replayed = saved(again, done)
    assert scores(replayed["HALF"]) == [1.0, 1.0], "though the time-out of the run is long over"
    assert scores(replayed["BAD"]) == [None, None]
    assert [trace["ok"] for trace in replayed["BAD"]] == [False, False]


def test_attempts_of_a_group_are_compared_and_the_unscored_stay_out(
    endpoint: Endpoint, policy: Endpoint, tmp_path: Path
) -> None:
    instances = tmp_path / "instances"
    files = [f"FILE output/memo.md: reply {name}" for name in ("GOOD", "BAD", "LOST")]
    case(instances, policy, "group", *files)
    options = ("--env.id", "rubric-group", "--env.attempts", "3", "--env.advantage", "rloo", "-r", "1")
    [traces] = saved(tmp_path / "out", evaluate(instances, policy, endpoint, tmp_path / "out", *options)).values()
    found = {score: trace["metrics"] for score, trace in zip(scores(traces), traces, strict=True)}
    assert {score: metrics["judge_advantage"] for score, metrics in found.items()} == {1.0: 1.0, 0.0: -1.0, None: 0.0}
    assert {metrics["judge_flat_group"] for metrics in found.values()} == {0.0}
    assert sorted(trace["ok"] for trace in traces) == [False, True, True]


def test_without_a_key_the_command_ends_before_any_rollout(policy: Endpoint, tmp_path: Path) -> None:
    case(tmp_path / "instances", policy, "GOOD", "FILE output/memo.md: reply GOOD")
    done = evaluate(tmp_path / "instances", policy, None, tmp_path / "out")
    assert done.returncode != 0
    assert "no judge credential" in done.stdout + done.stderr
    assert policy.calls == []
