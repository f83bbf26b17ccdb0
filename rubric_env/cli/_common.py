"""What every command shares: where words and JSON go, and how a command fails."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class CommandError(Exception):
    """Ends a command with one line on stderr. `code` 1: the answer is bad; 2: the command was used wrongly."""

    def __init__(self, message: str, code: int = 1):
        super().__init__(message)
        self.code = code


@cache
def console() -> Console:
    """Rich on stderr: stdout belongs to JSON."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def say(text: str, style: str | None = None) -> None:
    """One line for people, as it stands (square brackets are text)."""
    console().print(text, style=style, markup=False, soft_wrap=True)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """`warnings.showwarning` for a command: the message without file and line."""
    say(f"warning: {message}", style="yellow")


def emit(value: Any) -> None:
    """The command's answer: one JSON value on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def read_bytes(path: Path) -> bytes:
    """A file's bytes, or standard input for `-`; CommandError names what cannot be read."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", 2) from None


def read_json(path: Path) -> Any:
    """A JSON file; CommandError names file, line and column."""
    try:
        return json.loads(read_bytes(path))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CommandError(f"{path}: no JSON: {error}", 1) from None
