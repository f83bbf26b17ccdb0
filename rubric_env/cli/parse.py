"""`rubric-env parse`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rubric_env.cli._common import CommandError, emit, read_bytes, read_json


def parse(
    file: Annotated[Path, typer.Argument(help="a judge's reply; - = stdin")],
    ids: Annotated[str, typer.Option("--ids", help="the block's row ids, separated by commas")],
    texts: Annotated[Path | None, typer.Option(help="JSON {id: text}: answers that name a row by its text")] = None,
    marker: Annotated[str | None, typer.Option(help="the line after which the answer stands")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="accepted everywhere; this command always prints JSON")
    ] = False,
) -> None:
    """Read the verdicts out of a judge's reply.

    Says why a row has none; exit 1 when any row is unjudged.
    """
    from verdict_parsers import parse_verdicts

    wanted = [part.strip() for part in ids.split(",") if part.strip()]
    if not wanted:
        raise CommandError("--ids names no row", 2)
    known = read_json(texts) if texts else {}
    if not isinstance(known, dict) or not all(isinstance(text, str) for text in known.values()):
        raise CommandError(f"{texts}: an object of texts by row id is expected", 2)
    reply = read_bytes(file).decode("utf-8", "replace")
    parsed = parse_verdicts(reply, wanted, known, marker)
    emit({"verdicts": {k: asdict(v) for k, v in parsed.verdicts.items()}, "unjudged": dict(parsed.unjudged)})
    if parsed.unjudged:
        raise typer.Exit(1)
