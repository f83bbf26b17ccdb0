"""`rubric-env evidence`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rubric_env.cli._common import CommandError, emit, read_reply, say


def evidence(
    folder: Annotated[Path, typer.Argument(help="a submission, or a workspace with output/", metavar="DIR")],
    out: Annotated[Path, typer.Option("-o", "--out", help="folder for the pack")],
    reply: Annotated[Path | None, typer.Option(help="the policy's final reply, as a text file")] = None,
    tokens: Annotated[int, typer.Option(help="budget, in estimated tokens", min=1000)] = 100_000,
    as_json: Annotated[
        bool, typer.Option("--json", help="accepted everywhere; this command always prints JSON")
    ] = False,
) -> None:
    """Write what a judge would be shown of a submission.

    Prints a summary: the files, how far each was read, and passages that talk to the judge.
    """
    from rubric_env.evidence import build_pack
    from rubric_env.submission import SubmissionUnreadable, read_submission

    try:
        submission = read_submission(folder, read_reply(reply))
    except SubmissionUnreadable as error:
        raise CommandError(str(error)) from None
    pack = build_pack(submission, budget_tokens=tokens)
    out.mkdir(parents=True, exist_ok=True)
    text = out / "evidence.txt"
    text.write_text(pack.text(pack.digest[:32]), "utf-8")
    emit(
        {
            "delivery": submission.delivery,
            "files": [{"name": e.name, "kind": e.kind, "status": e.status, "note": e.note} for e in pack.extracts],
            "notes": [*submission.notes, *pack.notes],
            "flags": [{"address": flag.address, "excerpt": flag.excerpt} for flag in pack.flags],
            "tokens": pack.tokens,
            "pages": pack.pages,
            "digest": pack.digest,
            "text": str(text),
        }
    )
    say(f"{len(pack.extracts)} sources, about {pack.tokens} tokens: {text}")
