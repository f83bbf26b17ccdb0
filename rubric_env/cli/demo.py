"""`rubric-env demo`: a real vf-eval run of harbor-gdp, offline and free unless `--live`."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rubric_env.cli._common import CommandError, console, emit, say
from rubric_env.cli._report import print_report, read_rollouts, summary

SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.I)
OURS = ("JUDGE_", "OPENAI_", "POLICY_", "PRIME_", "ANTHROPIC_")
QUALITIES = ("good", "medium", "poor")
"""Played first, so that every instance shows the span; odder answers follow."""
LIVE_POLICY = ("POLICY_BASE_URL", "POLICY_API_KEY", "POLICY_MODEL")


def demo(
    live: Annotated[bool, typer.Option("--live", help="use JUDGE_* and POLICY_* instead of the offline parts")] = False,
    out: Annotated[Path, typer.Option("-o", "--out", help="folder for the results")] = Path("demo-output"),
    rollouts: Annotated[int, typer.Option("-r", help="rollouts an instance", min=1)] = 4,
    examples: Annotated[int, typer.Option("-n", help="instances; -1 = all", min=-1)] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="the summary as JSON on stdout")] = False,
) -> None:
    """Run vf-eval on the shipped instances: rollouts, files, evidence, judge calls, scores, rewards, advantages."""
    home = importlib.util.find_spec("harbor_gdp")
    if home is None or home.origin is None or importlib.util.find_spec("verifiers") is None:
        raise CommandError("the demo needs the environment harbor-gdp and verifiers: run `make demo` in a checkout")
    instances = Path(home.origin).parent / "instances"
    recordings = sorted(
        (json.loads(path.read_text("utf-8")) for path in sorted(instances.glob("*/recordings/*.json"))),
        key=lambda recording: QUALITIES.index(recording["quality"]) if recording["quality"] in QUALITIES else 99,
    )
    folder = out / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if live:
            environment, policy = _live_environment()
            calls = None
        else:
            from rubric_env.local import LocalJudgeServer, ReplayPolicyServer

            judge = stack.enter_context(LocalJudgeServer())
            replay = stack.enter_context(ReplayPolicyServer(recordings))
            environment = _offline_environment(judge.base_url)
            policy = ["-m", replay.model, "-b", replay.base_url, "-k", "DEMO_POLICY_KEY"]
            calls = judge
            say(f"judge   {judge.base_url}  local-lexical: matches words, no LLM; it checks the wiring, not quality")
            say(f"policy  {replay.base_url}  replays {len(recordings)} recorded answers; no model runs")
        shipped = len(list(instances.glob("*/tests/rubric.json")))
        total = rollouts * (shipped if examples < 0 else min(examples, shipped))
        command = [
            *(str(Path(sys.executable).parent / "vf-eval"), "harbor-gdp", *policy),
            *("-n", str(examples), "-r", str(rollouts), "-c", "32", "-s", "-d", "-C", "judge_result"),
            *("-o", str(folder.resolve()), "-a", "{}"),
        ]
        _run(command, environment, folder, total, calls)
    rows = read_rollouts(folder, recordings)
    if not rows:
        raise CommandError(f"vf-eval saved no rollout; its output is in {folder / 'vf-eval.log'}")
    agreement = None if live else _agreement(instances)
    if as_json:
        emit(summary(rows, folder, agreement))
    else:
        print_report(rows, folder, agreement, live)
    if unscored := sum(not row.scored for row in rows):
        raise CommandError(f"{unscored} of {len(rows)} rollouts could not be scored; the reasons are in the table")


def _offline_environment(judge_url: str) -> dict[str, str]:
    # Whatever keys lie around stay out of the child: the demo is free by construction, not by luck.
    kept = {k: v for k, v in os.environ.items() if not SECRET.search(k) and not k.startswith(OURS)}
    return {
        **kept,
        "JUDGE_BASE_URL": judge_url,
        "JUDGE_API_KEY": "local",
        "JUDGE_MODEL": "local-lexical",
        "DEMO_POLICY_KEY": "local",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
    }


def _live_environment() -> tuple[dict[str, str], list[str]]:
    from rubric_env.judges import NoCredential, resolve_credentials

    if missing := [name for name in LIVE_POLICY if not os.environ.get(name)]:
        raise CommandError(f"--live needs a policy: set {', '.join(missing)}", 2)
    try:
        credentials = resolve_credentials()
    except NoCredential as error:
        raise CommandError(f"judge:no_credential: {error}", 2) from None
    url, _, model = (os.environ[name] for name in LIVE_POLICY)
    say(f"judge   {credentials.base_url}\npolicy  {url} {model}")
    return dict(os.environ), ["-m", model, "-b", url, "-k", "POLICY_API_KEY"]


def _run(command: list[str], environment: Mapping[str, str], folder: Path, total: int, judge: Any) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    log = folder / "vf-eval.log"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with log.open("wb") as stream, Progress(*columns, console=console()) as progress:
        bar = progress.add_task("starting vf-eval", total=total)
        process = subprocess.Popen(
            command, env=dict(environment), stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            for done in _poll(process, folder):
                asked = f", {judge.requests} judge calls" if judge is not None else ""
                progress.update(
                    bar, completed=done, description=f"rollouts{asked}" if done or asked else "starting vf-eval"
                )
        except KeyboardInterrupt:
            _stop(process)
            raise CommandError(f"interrupted; finished rollouts are kept in {folder}", 130) from None
    if process.returncode:
        tail = log.read_text("utf-8", "replace").strip().splitlines()[-8:]
        raise CommandError("vf-eval failed (its whole output is in {}):\n  {}".format(log, "\n  ".join(tail)))


def _poll(process: subprocess.Popen[bytes], folder: Path) -> Iterator[int]:
    while process.poll() is None:
        time.sleep(0.3)
        yield sum(path.read_bytes().count(b"\n") for path in folder.glob("**/results.jsonl"))
    yield sum(path.read_bytes().count(b"\n") for path in folder.glob("**/results.jsonl"))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End vf-eval and the env server it started: they are a process group of their own."""
    import signal

    for sign, patience in ((signal.SIGINT, 5), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _agreement(instances: Path) -> str:
    from rubric_env.local import SAMPLES_NOTE, agreement

    return f"{agreement(instances)}. {SAMPLES_NOTE}"
