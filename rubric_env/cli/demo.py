"""`rubric-env demo`: a real vf-eval run of a shipped environment, offline and free unless `--live`."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rubric_env.cli._calls import Tail, show_call
from rubric_env.cli._common import ENDINGS, CommandError, console, emit, say
from rubric_env.cli._report import print_report, read_rollouts, read_verdicts, summary
from rubric_env.cli.doctor import ask

KEPT_OUT = re.compile(
    r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|_PAT$|_PROXY$|^(JUDGE|OPENAI|POLICY|PRIME|ANTHROPIC)_", re.I
)
"""Variables that the offline child does without: whatever is a secret, and proxies, which loopback must not meet."""
SHIPPED = ("harbor-gdp", "harbor-wle", "harbor-dr", "harbor-ppt")
QUALITIES = ("good", "medium", "poor")
"""Played first, so that every instance shows the span; odder answers follow."""
LOCAL = "local-lexical: matches words, no LLM; it checks the wiring, not quality"
LIVE_POLICY = ("POLICY_BASE_URL", "POLICY_API_KEY", "POLICY_MODEL")


def demo(
    environment: Annotated[str, typer.Argument(help="harbor-gdp, harbor-wle, harbor-dr or harbor-ppt")] = "harbor-gdp",
    live: Annotated[bool, typer.Option("--live", help="use JUDGE_* and POLICY_* instead of the offline parts")] = False,
    out: Annotated[Path, typer.Option("-o", "--out", help="folder for the results")] = Path("demo-output"),
    rollouts: Annotated[int, typer.Option("-r", "--rollouts", help="rollouts an instance", min=1)] = 4,
    examples: Annotated[int, typer.Option("-n", "--examples", help="instances; -1 = all", min=-1)] = -1,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="a line for every judge call")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the summary as JSON on stdout")] = False,
) -> None:
    """Run vf-eval on the shipped instances, offline and free.

    The whole path: dataset, rollouts, files, evidence, judge calls, scores, rewards, advantages, and a table of them.
    """
    if examples == 0:
        raise CommandError("-n 0 leaves nothing to run: give a number of instances, or -1 for all", 2)
    instances = _instances(environment)
    recordings = sorted(
        (json.loads(path.read_text("utf-8")) for path in sorted(instances.glob("*/recordings/*.json"))),
        key=lambda recording: QUALITIES.index(recording["quality"]) if recording["quality"] in QUALITIES else 99,
    )
    # The number keeps two demos that start in the same second apart.
    folder = out / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        if live:
            variables, policy = _live()
            calls, recordings = None, []
        else:
            from rubric_env.local import LocalJudgeServer, ReplayPolicyServer

            judge = stack.enter_context(LocalJudgeServer())
            replay = stack.enter_context(ReplayPolicyServer(recordings))
            variables = _offline_environment(judge.base_url)
            policy = ["-m", replay.model, "-b", replay.base_url, "-k", "DEMO_POLICY_KEY"]
            calls = judge
            say(f"judge   {judge.base_url}  {LOCAL}")
            say(f"policy  {replay.base_url}  replays {len(recordings)} recorded answers; no model runs")
        shipped = len(list(instances.glob("*/tests/rubric.json")))
        total = rollouts * (shipped if examples < 0 else min(examples, shipped))
        command = [
            *(str(Path(sys.executable).parent / "vf-eval"), environment, *policy),
            *("-n", str(examples), "-r", str(rollouts), "-c", "32", "-s", "-d", "-C", "judge_result"),
            *("-o", str(folder.resolve()), "-a", "{}"),
        ]
        folder.mkdir(parents=True)
        if verbose:
            # The calls are made in another process; a file that the user has named for them is left in its place.
            variables.setdefault("JUDGE_EVENTS", str(folder.resolve() / "calls.jsonl"))
        tail = Tail(Path(variables["JUDGE_EVENTS"])) if verbose else None
        stopped = _run(command, variables, folder, total, calls, tail)
    rows = read_rollouts(folder, recordings)
    if not rows:
        raise stopped or CommandError(f"vf-eval saved no rollout; its output is in {folder / 'vf-eval.log'}")
    agreement = None if live else _agreement(folder, instances, recordings)
    if as_json:
        emit(summary(rows, folder, agreement))
    else:
        print_report(rows, folder, agreement, live)
    if stopped:
        raise stopped
    if unscored := sum(not row.scored for row in rows):
        raise CommandError(f"{unscored} of {len(rows)} rollouts could not be scored; the reasons are above")


def _instances(environment: str) -> Path:
    module = environment.replace("-", "_")
    if environment.replace("_", "-") not in SHIPPED:
        raise CommandError(f"{environment}: the demo has {', '.join(SHIPPED)}", 2)
    home = importlib.util.find_spec(module)
    if home is None or home.origin is None or importlib.util.find_spec("verifiers") is None:
        needs = f"`pip install . ./environments/{module}`, or `make demo`"
        raise CommandError(f"verifiers and {environment} are not both installed: {needs}, in a checkout of rubric-env")
    return Path(home.origin).parent / "instances"


def _offline_environment(judge_url: str) -> dict[str, str]:
    # Whatever keys lie around stay out of the child: the demo is free by construction, not by luck.
    return {
        **{name: value for name, value in os.environ.items() if not KEPT_OUT.search(name)},
        "JUDGE_BASE_URL": judge_url,
        "JUDGE_API_KEY": "local",
        "JUDGE_MODEL": "local-lexical",
        "DEMO_POLICY_KEY": "local",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
    }


def _live() -> tuple[dict[str, str], list[str]]:
    """Environment and policy arguments of a run that costs money, once its judge has answered."""
    from rubric_env.judges import NoCredential, make_judge, resolve_endpoints
    from rubric_env.settings import JudgeSettings, SettingsError

    missing = [name for name in LIVE_POLICY if not os.environ.get(name)]
    problems = [f"--live needs a policy: set {', '.join(missing)}"] if missing else []
    try:
        settings = JudgeSettings.load()
        endpoints = None if settings.backend == "local" else resolve_endpoints()
        make_judge(settings, endpoints)
    except (NoCredential, SettingsError) as error:
        problems.append(f"--live needs a judge: {error}")
    if problems:
        raise CommandError("\n".join(problems), 2)
    for endpoint in endpoints or ():
        if not (found := ask(settings, endpoint)).ok:
            raise CommandError(f"the judge does not answer, so no rollout was started: {found.detail}")
    url, _, model = (os.environ[name] for name in LIVE_POLICY)
    for endpoint in endpoints or ():
        say(f"judge   {endpoint.credentials.base_url}  {endpoint.model or settings.model}")
    if not endpoints:
        say(f"judge   in process  {LOCAL}")
    say(f"policy  {url}  {model}")
    return dict(os.environ), ["-m", model, "-b", url, "-k", "POLICY_API_KEY"]


def _run(
    command: list[str], environment: Mapping[str, str], folder: Path, total: int, judge: Any, tail: Tail | None
) -> CommandError | None:
    """Run vf-eval behind a progress bar. Why it did not come to its end, or None; what was finished is on disk.

    `judge` counts the calls, `tail` has their events.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    log = folder / "vf-eval.log"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with log.open("wb") as stream, Progress(*columns, console=console()) as progress:
        bar = progress.add_task("starting vf-eval", total=total)
        with _interrupts_deferred() as interrupted:
            process = subprocess.Popen(
                command,
                # Instances hold texts and file names in Chinese: the child reads them alike in every locale.
                env={**environment, "PYTHONUTF8": "1"},
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            if interrupted:
                raise KeyboardInterrupt
            for done in _poll(process, folder):
                calls = f", {judge.requests} judge calls" if judge and judge.requests else ""
                working = f"rollouts{calls}" if done is not None else "starting vf-eval"
                progress.update(bar, completed=done or 0, description=working)
                for call in tail.new() if tail else ():
                    show_call(call)
        except KeyboardInterrupt:
            say("stopping vf-eval; another Ctrl-C stops it sooner")
            _stop(process)
            return CommandError(f"interrupted; what was finished is in {folder}", 130)
    return CommandError(f"vf-eval failed: {_why(log)}\nits whole output: {log}") if process.returncode else None


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[list[int]]:
    """Collects what would interrupt: a Ctrl-C in the middle of starting a child would leave the child behind."""
    collected: list[int] = []
    handlers = {sign: signal.getsignal(sign) for sign in ENDINGS}
    for sign, handler in handlers.items():
        if handler is signal.default_int_handler:
            signal.signal(sign, lambda number, _: collected.append(number))
    try:
        yield collected
    finally:
        for sign, handler in handlers.items():
            signal.signal(sign, handler)


def _why(log: Path) -> str:
    if shutil.disk_usage(log).free < 100_000:
        return "the disk is full"
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["it wrote nothing"])[-1]


def _poll(process: subprocess.Popen[bytes], folder: Path) -> Iterator[int | None]:
    """How many rollouts are saved, several times a second until the process ends; None before the first can be."""
    running = True
    while running:
        time.sleep(0.3)
        running = process.poll() is None
        files = list(folder.glob("**/results.jsonl"))
        yield sum(path.read_bytes().count(b"\n") for path in files) if files else None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End vf-eval and the env server it started, a process group of their own; an impatient Ctrl-C is the next step."""
    import signal

    for sign, patience in ((signal.SIGINT, 5), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            process.wait(patience)
            return


def _agreement(folder: Path, instances: Path, recordings: Sequence[Mapping[str, Any]]) -> str:
    """How far the judge of this run agreed with the labels of the answers that were played."""
    from rubric_env.local import SAMPLES_NOTE, Agreement, compared
    from rubric_env.rubric import RubricSpec

    labels = {(answer["instance"], answer["quality"]): answer["labels"] for answer in recordings}
    rows = {
        answer: list(compared(RubricSpec.parse(instances / answer[0] / "tests/rubric.json"), labels[answer], verdicts))
        for answer, verdicts in read_verdicts(folder, recordings).items()
        if answer in labels
    }
    if not any(rows.values()):
        return "not seen: no recorded answer was judged."
    note = f" {SAMPLES_NOTE}" if instances.parent.name == "harbor_gdp" else ""
    return f"{Agreement.of(rows)}.{note}"
