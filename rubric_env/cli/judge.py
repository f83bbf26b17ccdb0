"""`rubric-env judge`: one instance and one submission."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rubric_env.cli._calls import show_call, total_line
from rubric_env.cli._common import CommandError, cell, console, emit, read_reply, say

if TYPE_CHECKING:
    from rubric_env.engine import CallEvent, Case
    from rubric_env.judges import Endpoint
    from rubric_env.scoring import Outcome
    from rubric_env.settings import JudgeSettings


def judge(
    instance: Annotated[Path, typer.Argument(help="a task directory in Harbor layout")],
    submission: Annotated[Path, typer.Option(help="what the policy delivered: files, or a workspace with output/")],
    out: Annotated[Path, typer.Option("-o", "--out", help="folder for result.json")],
    reply: Annotated[Path | None, typer.Option(help="the policy's final reply, as a text file")] = None,
    model: Annotated[str | None, typer.Option(help="judge model; else JUDGE_MODEL")] = None,
    base_url: Annotated[str | None, typer.Option(help="judge endpoint; needs a key from --api-key-file")] = None,
    api_key_file: Annotated[str | None, typer.Option(help="file with the key for --base-url")] = None,
    backend: Annotated[
        str | None, typer.Option(help="chat, responses, or local: offline and free, a wiring aid")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="settings file (TOML)")] = None,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="a line for every judge call")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="no table for people")] = False,
) -> None:
    """Judge one submission; exit 1 when it is unscored.

    Writes result.json, and with a score reward.json and reward.txt. The same command again asks only for what is open.
    """
    from rubric_env.engine import Case, JournalError
    from rubric_env.harbor import Instance, InstanceError, result_json, write_result
    from rubric_env.judges import NoCredential, resolve_endpoints
    from rubric_env.rubric import RubricError
    from rubric_env.scoring import FaultKind, unscored
    from rubric_env.settings import JudgeSettings, SettingsError, read_config
    from rubric_env.submission import SubmissionUnreadable, read_submission

    if base_url and not api_key_file:
        raise CommandError("--base-url goes with --api-key-file; or set JUDGE_BASE_URL and JUDGE_API_KEY", 2)
    try:
        settings = JudgeSettings.load(
            {"model": model, "backend": backend},
            config=config,
            defaults={"reuse": "run", "journal": str(out / "judge-journal.sqlite")},
        )
        endpoints = (
            None
            if settings.backend == "local"
            else resolve_endpoints(base_url=base_url, api_key_file=api_key_file, config=read_config(config))
        )
        task = Instance.load(instance)
    except NoCredential as error:
        raise CommandError(f"judge:no_credential: {error}") from None
    except (SettingsError, InstanceError, RubricError) as error:
        raise CommandError(str(error)) from None
    for warning in task.warnings:
        say(f"warning: {warning}", style="yellow")
    started = time.monotonic()
    # Before anything is paid: a result that cannot be written is money lost.
    out.mkdir(parents=True, exist_ok=True)
    try:
        delivered = read_submission(
            submission,
            read_reply(reply),
            usual_output=task.output_dir,
            lenient=settings.lenient_delivery,
            chat_fallback=settings.chat_fallback,
        )
    except SubmissionUnreadable as error:
        outcome = unscored(FaultKind.INTERNAL, str(error), rows=len(task.spec))
    else:
        case = Case(task.spec, delivered, task.task, task.judge_instruction, task.reference, name=task.name)
        try:
            outcome = asyncio.run(_run(settings, endpoints, case, verbose))
        except (SettingsError, JournalError) as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            kept = f"; verdicts so far are kept in {settings.journal}: run the same command to go on"
            raise CommandError(f"interrupted{kept if settings.journal else ''}", 130) from None
    write_result(outcome, settings, out)
    emit(result_json(outcome, settings))
    if not as_json:
        _table(outcome, task.name)
        say(total_line(outcome.fields, time.monotonic() - started))
        say(f"written to {out}")
        if settings.backend == "local":
            say("the local judge matches words, numbers and dates: a wiring aid, no measure of quality", style="yellow")
    if not outcome.scored:
        raise CommandError(f"unscored: {outcome.exit_reason}")
    if outcome.exit_reason:
        say(f"scored, but {outcome.exit_reason}", style="yellow")


async def _run(settings: JudgeSettings, endpoints: list[Endpoint] | None, case: Case, verbose: bool) -> Outcome:
    from rubric_env.engine import JudgeEngine
    from rubric_env.judges import make_judge

    engine = JudgeEngine(settings, make_judge(settings, endpoints))
    what = f"judging {len(case.spec)} rows with {settings.model if endpoints else 'the local judge'}"
    with console().status(cell(what)) as status:
        calls = 0

        def show(event: CallEvent) -> None:
            nonlocal calls
            calls += 1
            status.update(cell(f"{what}: {calls} calls"))
            if verbose:
                show_call(event.as_dict(), event.fault.detail if event.fault else "")

        engine.observe(show)
        try:
            return await engine.judge(case)
        finally:
            await engine.aclose()


def _table(outcome: Outcome, name: str) -> None:
    from rich.table import Table

    if outcome.judgement is None:
        return
    table = Table(title=cell(f"{name}: {'unscored' if outcome.reward is None else f'{outcome.reward:.3f}'}"))
    for column in ("row", "hit", "level", "reason"):
        table.add_column(column, overflow="fold")
    for row, verdict in outcome.judgement.verdicts.items():
        level = "" if verdict.level is None else f"{verdict.level:g}"
        table.add_row(cell(row), "yes" if verdict.hit else "no", level, cell(verdict.reason))
    # What happened stands below the table, once for all rows.
    for row, fault in outcome.judgement.faults.items():
        table.add_row(cell(row), "-", "", cell(str(fault.kind), "yellow"))
    console().print(table)
