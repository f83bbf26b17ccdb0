"""`rubric-env score`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rubric_env.cli._common import CommandError, emit, read_json


def score(
    rubric: Annotated[Path, typer.Argument(help="a rubric.json")],
    verdicts: Annotated[
        Path, typer.Argument(help='{"ROW": {"hit": true, "level": 0.5}}, or a list with ids; - = stdin')
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="accepted everywhere; this command always prints JSON")
    ] = False,
) -> None:
    """Score verdicts against a rubric and print the scorecard. Calls nobody."""
    from rubric_env.rubric import RubricError, RubricSpec
    from rubric_env.scoring import score as score_verdicts

    given = read_json(verdicts)
    if isinstance(given, dict) and isinstance(given.get("verdicts"), dict | list):
        given = given["verdicts"]
    if isinstance(given, list):
        ids = [_row_id(item, n) for n, item in enumerate(given, 1)]
        if twice := [name for name, n in Counter(ids).items() if n > 1]:
            raise CommandError(f"{verdicts}: more than one verdict on {', '.join(twice)}")
        given = dict(zip(ids, given, strict=True))
    if not isinstance(given, dict):
        raise CommandError(f"{verdicts}: an object of verdicts by row id is expected", 1)
    try:
        card = score_verdicts(RubricSpec.parse(rubric), given)
    except (RubricError, ValueError) as error:
        raise CommandError(str(error)) from None
    emit(asdict(card))
    if card.score is None:
        raise CommandError(card.error)


def _row_id(item: Any, n: int) -> str:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        raise CommandError(f"verdict {n} has no id")
    return str(item["id"])
