from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rubric_env.v1", reason="no fitting verifiers.v1 (0.3.1 or 0.4)", exc_type=ImportError)

from tests.servers.endpoint import Endpoint

HARNESS = Path(__file__).parent / "harness"

ROWS = [
    {"id": "R1", "description": "The memo names the total.", "weight": 3},
    {"id": "R2", "description": "The memo names the owner.", "weight": 1},
]
RULES: dict[str, Any] = {"per_timeout": 60, "max_tries": 1, "resplit": False}


@pytest.fixture(autouse=True)
def fresh_environment() -> None:
    """A process reads the environment once for each configuration."""
    from rubric_env.v1 import _judge

    _judge._Shared.known.clear()


@pytest.fixture
def policy() -> Iterator[Endpoint]:
    """Says its `prose` to everyone."""
    with Endpoint() as server:
        server.prose = "The total is 5."
        yield server


@pytest.fixture
def instances(tmp_path: Path) -> Path:
    """A folder with one instance, `memo`."""
    make_instance(tmp_path / "instances" / "memo")
    return tmp_path / "instances"


def make_instance(root: Path, **files: str) -> Path:
    given = {
        "instruction.md": "Write output/memo.md.",
        "tests/rubric.json": json.dumps(ROWS),
        "tests/judge_instruction.md": "Be exact.",
        **files,
    }
    for name, text in given.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


Run = Callable[..., list[Any]]


@pytest.fixture
def run(endpoint: Endpoint, policy: Endpoint, instances: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A real run of verifiers' eval in this process; returns its episodes.

    `judge` adds to the judge's configuration (None: the taskset's own default), `task`, `agent` and `env` to theirs;
    `taskset` replaces that over `instances`.
    """
    monkeypatch.syspath_prepend(str(HARNESS))
    monkeypatch.setenv("POLICY_KEY", "policy")
    monkeypatch.setenv("KEY_OF_JUDGE", "judge")

    def go(
        rollouts: int = 1,
        *,
        judge: Any = (),
        task: Any = (),
        taskset: Any = None,
        agent: Any = (),
        env: Any = (),
    ) -> list[Any]:
        from verifiers.v1.cli.eval.runner import run_eval
        from verifiers.v1.configs.cli.eval import EvalConfig

        plugged = {
            "id": "rubric_judge",
            "model": "judge-model",
            "base_url": endpoint.base_url,
            "api_key_var": "KEY_OF_JUDGE",
            **dict(judge or ()),
            "settings": {**RULES, **dict(judge or {}).get("settings", {})},
        }
        judges = {} if judge is None else {"judges": [plugged]}
        values: dict[str, Any] = {
            "env": {
                "taskset": {
                    **(taskset or {"id": "rubric_tasks", "instances": [str(instances)]}),
                    "task": {**judges, **dict(task)},
                },
                "agent": {"harness": {"id": "loopback_policy"}, "runtime": {"type": "subprocess"}, **dict(agent)},
                **dict(env),
            },
            "model": "policy-model",
            "client": {"base_url": policy.base_url, "api_key_var": "POLICY_KEY"},
            "num_rollouts": rollouts,
            "output_dir": str(tmp_path / "out"),
            "push": False,
            "rich": None,
        }
        if "serve" in EvalConfig.model_fields:  # 0.3.1 can run in worker processes, 0.4 cannot
            values["serve"] = None
        return asyncio.run(run_eval(EvalConfig.model_validate(values)))

    return go
