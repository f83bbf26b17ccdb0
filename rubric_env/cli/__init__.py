"""The command `rubric-env`. JSON on stdout, people's words on stderr; exit 0, 1 = bad or unscored, 2 = usage."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import Annotated

import typer

from rubric_env import __version__
from rubric_env.cli import _common
from rubric_env.cli.demo import demo
from rubric_env.cli.doctor import doctor
from rubric_env.cli.evidence import evidence
from rubric_env.cli.judge import judge
from rubric_env.cli.lint import lint
from rubric_env.cli.local_judge import local_judge
from rubric_env.cli.parse import parse
from rubric_env.cli.score import score

__all__ = ["app", "main"]

app = typer.Typer(
    name="rubric-env",
    help="A rubric judge whose reward can be trusted: every rollout is scored, or honestly unscored.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"rubric-env {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before a command."""


for command in (demo, judge, lint, score, parse, evidence, doctor, local_judge):
    app.command()(command)


def main() -> None:
    """Entry point: known errors become one line, never a traceback."""
    warnings.showwarning = _common.show_warning
    for ending in _common.ENDINGS:
        # A closed terminal or a stopped job ends a command like Ctrl-C does: nothing goes on behind, nothing is lost.
        if signal.getsignal(ending) is signal.SIG_DFL:
            signal.signal(ending, signal.default_int_handler)
    try:
        app()
    except SystemExit as ended:
        # The command line library ends with this on Ctrl-C, without a word.
        if ended.code == 130:
            _common.say("interrupted")
        raise
    except _common.CommandError as error:
        _common.say(f"error: {error}", style="bold red")
        sys.exit(error.code)
    except KeyboardInterrupt:
        _common.say("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe went away; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        # A full disk, a folder that may not be written, a file where a folder should be.
        where = f"{error.filename}: " if error.filename else ""
        _common.say(f"error: {where}{error.strerror or error}", style="bold red")
        sys.exit(1)
