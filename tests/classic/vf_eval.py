"""The real vf-eval, on loopback: its command line, its files, and the endpoints that its policy and its judge are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.endpoint import Call, Endpoint
from tests.servers.scenarios import Scenario

PLUGGED = Path(__file__).parent / "plugged"
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@dataclass(frozen=True)
class Saved:
    """What a run left behind."""

    rows: list[dict[str, Any]]
    metadata: dict[str, Any]
    results: Path
    said: str
    """On the terminal."""
    logs: list[str]
    """Of the env server's workers."""


def vf_eval(
    out: Path, env_id: str, arguments: Any, policy: Endpoint, judge: Endpoint, *options: str, **env: str
) -> Saved:
    """Run the command and read its files. `env` adds to the environment variables, from which `JUDGE_*` are taken."""
    hidden = ("JUDGE_", "OPENAI_", "PRIME_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(hidden)},
        **{"JUDGE_API_KEY": "judge-secret", "JUDGE_BASE_URL": judge.base_url, "JUDGE_MODEL": "judge-model"},
        **{
            "POLICY_KEY": "policy",
            "PYTHONPATH": str(PLUGGED),
            "HF_HUB_OFFLINE": "1",
            "TMPDIR": str(_made(out / "tmp")),
        },
        **env,
    }
    command = [
        *(str(Path(sys.executable).parent / "vf-eval"), env_id, "-a", json.dumps(arguments)),
        *("-m", "policy", "-b", policy.base_url, "-k", "POLICY_KEY", "-n", "-1", "-d", "-s"),
        *("-C", "judge_result,advantage,trajectory", "-o", str(out), *options),
    ]
    done = subprocess.run(command, env=environment, cwd=out, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    logs = [path.read_text("utf-8") for path in sorted(out.rglob("env_worker_*.log"))]
    [results] = out.rglob("results.jsonl")
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    metadata = json.loads((results.parent / "metadata.json").read_text("utf-8"))
    return Saved(rows, metadata, results, done.stdout + done.stderr, logs)


def case_of(row: Mapping[str, Any]) -> str:
    """The case that a saved row belongs to: prompts begin with `Case NAME.`"""
    return next(str(m["content"]) for m in row["prompt"] if m["role"] == "user").split()[1].rstrip(".")


def plays(policy: Endpoint, *turns: Mapping[str, Any], when: str = "", times: int | None = None) -> None:
    """The policy's turns, told apart by how often it has spoken; `when` is in its messages."""
    for number, turn in enumerate(turns):

        def fits(call: Call, number: int = number) -> bool:
            spoken = sum(message["role"] == "assistant" for message in call.body["messages"])
            return spoken == number and when in str(call.body["messages"])

        finish = "tool_calls" if turn.get("tool_calls") else "stop"
        policy.rule(fits, Scenario("turn", content="", message=turn, finish=finish, usage=USAGE), times=times)


def says(text: str) -> dict[str, Any]:
    return {"content": text}


def uses(tool: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": tool, "arguments": text}
    return {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
