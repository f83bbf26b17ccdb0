"""`rubric-env lint`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rubric_env.cli._common import CommandError, console, emit, say


def lint(
    paths: Annotated[list[Path], typer.Argument(help="rubric.json files, instances, or folders of instances")],
    as_json: Annotated[bool, typer.Option("--json", help="findings as JSON on stdout")] = False,
) -> None:
    """Check rubrics before a judge is paid. Exit 1 when any has an error."""
    from rubric_env.harbor import find_instances
    from rubric_env.rubric import lint as lint_rubric
    from rubric_env.rubric import lint_instance

    found = {}
    for path in paths:
        if not path.exists():
            raise CommandError(f"{path}: no such file or folder", 2)
        if path.is_file():
            found[str(path)] = lint_rubric(path)
            continue
        instances = [path] if (path / "tests").is_dir() else list(find_instances(path))
        if not instances:
            raise CommandError(f"{path}: no rubric.json and no instance (a folder with tests/rubric.json) below", 2)
        found.update({str(instance): lint_instance(instance) for instance in instances})
    if as_json:
        emit([{"path": path, **asdict(finding)} for path, findings in found.items() for finding in findings])
    else:
        for name, findings in found.items():
            for item in findings:
                colour = "red" if item.severity == "error" else "yellow"
                console().print(f"[bold]{item.severity}[/] ", end="", style=colour)
                say(f"{name}{f' {item.row}' if item.row else ''}: {item.message} ({item.code})")
    errors = sum(item.severity == "error" for findings in found.values() for item in findings)
    warned = sum(map(len, found.values())) - errors
    say(f"{len(found)} rubrics: {errors} errors, {warned} warnings")
    if errors:
        raise typer.Exit(1)
