"""`rubric-env local-judge`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from rubric_env.cli._common import CommandError


def local_judge(
    port: Annotated[int, typer.Option(help="port on 127.0.0.1; 0 = a free one", min=0, max=65535)] = 8377,
    engine: Annotated[
        Literal["lexical", "llama"], typer.Option(help="lexical rule, or a very small real LLM")
    ] = "lexical",
    as_json: Annotated[
        bool, typer.Option("--json", help="accepted everywhere; this command always prints JSON")
    ] = False,
) -> None:
    """Serve the offline judge on loopback until Ctrl-C.

    A wiring aid, not a judge of quality. Prints its base URL.
    """
    from rubric_env.local import LocalError, serve_local_judge

    try:
        serve_local_judge(port=port, engine=engine)
    except LocalError as error:
        raise CommandError(str(error)) from None
