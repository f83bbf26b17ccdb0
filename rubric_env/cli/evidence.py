"""`rubric-env evidence`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rubric_env.cli._common import CommandError, emit, read_reply, say


class Pictures(StrEnum):
    """Pages that are drawn."""

    none = "none"
    some = "some"
    all = "all"


def evidence(
    folder: Annotated[Path, typer.Argument(help="a submission, or a workspace with output/", metavar="DIR")],
    out: Annotated[Path, typer.Option("-o", "--out", help="folder for the pack")],
    reply: Annotated[Path | None, typer.Option(help="the policy's final reply, as a text file")] = None,
    tokens: Annotated[int, typer.Option(help="budget, in estimated tokens", min=1000)] = 100_000,
    pictures: Annotated[
        Pictures, typer.Option(help="draw no pages, those that text does not stand for (decks, scans), or all")
    ] = Pictures.some,
    open_page: Annotated[bool, typer.Option("--open", help="open the contact sheet in a browser")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="accepted everywhere; this command always prints JSON")
    ] = False,
) -> None:
    """Write what a judge is shown, and a page about it for people.

    Prints a summary: the files, how far each was read, and passages that talk to the judge.
    """
    from rubric_env.evidence import build_pack, write_pack
    from rubric_env.submission import SubmissionUnreadable, read_submission

    try:
        submission = read_submission(folder, read_reply(reply))
    except SubmissionUnreadable as error:
        raise CommandError(str(error)) from None
    pack = build_pack(submission, budget_tokens=tokens, sights=pictures.value)
    manifest = write_pack(pack, out)
    page = out / "index.html"
    shown = ("name", "kind", "status", "note", "level", "folder")
    emit(
        {
            "delivery": submission.delivery,
            "files": [{key: file[key] for key in shown} for file in manifest["files"]],
            "notes": [*submission.notes, *pack.notes],
            "flags": manifest["flags"],
            "tokens": pack.tokens,
            "pages": pack.pages,
            "digest": pack.digest,
            "text": str(out / "evidence.txt"),
            "manifest": str(out / "manifest.json"),
            "page": str(page),
        }
    )
    for file in manifest["files"]:
        if "not drawn:" in file["note"]:
            say(f"{file['name']}: {file['note']}", style="yellow")
    say(f"{len(pack.extracts)} sources, about {pack.tokens} tokens: {page}")
    if open_page:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            say("no browser was found to open it", style="yellow")
