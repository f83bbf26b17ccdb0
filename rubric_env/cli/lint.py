"""`rubric-env lint`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rubric_env.cli._common import CommandError, emit, say


def lint(
    paths: Annotated[list[Path], typer.Argument(help="rubric.json files, instances, or folders of instances")],
    as_json: Annotated[bool, typer.Option("--json", help="findings as JSON on stdout")] = False,
) -> None:
    """Check rubrics and instances before a judge is paid. Exit 1 when any has an error."""
    from rubric_env.harbor import InstanceError, find_instances
    from rubric_env.harbor import lint as lint_instance
    from rubric_env.rubric import lint as lint_rubric

    found = {}
    for path in paths:
        if not path.exists():
            raise CommandError(f"{path}: no such file or folder", 2)
        if path.is_file():
            found[str(path)] = lint_rubric(path)
            continue
        try:
            instances = list(find_instances(path))
        except InstanceError as error:
            raise CommandError(str(error), 2) from None
        if not instances:
            raise CommandError(f"{path}: no rubric.json and no instance (a folder with tests/rubric.json) below", 2)
        found.update({str(instance): lint_instance(instance) for instance in instances})
    if as_json:
        emit([{"path": path, **asdict(finding)} for path, findings in found.items() for finding in findings])
    else:
        for name, findings in found.items():
            for item in findings:
                colour = "red" if item.severity == "error" else "yellow"
                where = f"{name} {item.row}" if item.row else name
                message = item.message.removeprefix(f"{name}: ")
                say(f"{item.severity} {where}: {message} ({item.code})", style=colour)
    errors = sum(item.severity == "error" for findings in found.values() for item in findings)
    counts = {"rubric": len(found), "error": errors, "warning": sum(map(len, found.values())) - errors}
    say(", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items()))
    if errors:
        raise typer.Exit(1)
