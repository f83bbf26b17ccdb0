"""Runs contenders, each in its own interpreter and against its own endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

from _endpoint import Plan, endpoints
from peers.job import Job

HERE = Path(__file__).parent
VENVS = HERE.parent / ".venv-peers"
Figures = dict[str, Any]


@dataclass(frozen=True)
class Contender:
    """`module` is the adapter in `peers`, and for a peer the name of its virtual environment."""

    name: str
    module: str
    mode: str = ""
    peer: bool = True

    @property
    def interpreter(self) -> str | None:
        """None: not installed."""
        python = VENVS / self.module / "bin" / "python" if self.peer else Path(sys.executable)
        return str(python) if python.exists() else None


OURS = Contender("rubric-env", "ours", peer=False)
BARE = Contender("bare openai client", "bare_client", peer=False)
PEERS = (
    Contender("py-openjudge 0.2.4", "openjudge"),
    Contender("autorubric 1.6.1", "autorubric"),
    Contender("autorubric, 1 call a rollout", "autorubric", mode="item"),
    Contender("deepeval 4.3.1 GEval", "deepeval"),
    Contender("verifiers 0.4.0 RubricJudge", "verifiers"),
    Contender("rubric 2.2.0 one-shot", "rubric"),
    Contender("pydantic-evals 2.62.0", "pydantic_evals"),
    Contender("inspect-ai 0.3.285", "inspect"),
    Contender("harbor-rewardkit 0.2.3", "rewardkit"),
)
NOT_INSTALLED = "not installed: make bench-peers"


def contend(
    contender: Contender, plans: Sequence[Plan], job: Mapping[str, Any], limit: float = 300.0
) -> Iterator[Figures]:
    """The job against an endpoint of each plan, one after the other: figures of the run and of the endpoint.

    `failed` is there when nothing came: why, or that `limit` seconds were over.
    """
    with endpoints(plans) as servers:
        left = list(servers)
        while left:
            jobs = [asdict(Job(server.base_url, mode=contender.mode, **job)) for server in left]
            with TemporaryFile("w+") as errors, _started(contender, jobs, errors) as process:
                while left:
                    figures = _line(process, errors, limit)
                    yield figures | left.pop(0).figures()
                    if "failed" in figures:
                        break


@contextmanager
def _started(
    contender: Contender, jobs: Sequence[Mapping[str, Any]], errors: IO[str]
) -> Iterator[subprocess.Popen[str]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JUDGE_", "OPENAI_"))}
    command = [str(contender.interpreter), "-m", "peers", contender.module, json.dumps(jobs)]
    # Some leave folders of their own where they were started, and in the place for temporary files.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        clean |= {"PYTHONPATH": str(HERE), "TMPDIR": folder}
        process = subprocess.Popen(command, cwd=folder, env=clean, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _line(process: subprocess.Popen[str], errors: IO[str], limit: float) -> Figures:
    assert process.stdout is not None
    over = threading.Event()

    def end() -> None:
        over.set()
        process.kill()

    watch = threading.Timer(limit, end)
    watch.start()
    line = process.stdout.readline()
    watch.cancel()
    if line:
        return json.loads(line)  # type: ignore[no-any-return]
    if over.is_set():
        return {"failed": f"still waiting after {limit:g} s"}
    process.wait()
    errors.seek(0)
    return {"failed": (errors.read().splitlines() or ["crashed"])[-1][-300:]}
