"""What every command shares: where words and JSON go, and how a command fails."""

from __future__ import annotations

import json
import re
import signal
import sys
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

ENDINGS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What stops a command from outside."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


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
    """One line for people, as it stands (square brackets are text); a terminal gets it wrapped between words."""
    text = _CONTROL.sub(" ", text)
    if console().is_terminal:
        text = "\n".join(_wrap(line, console().width) for line in text.split("\n"))
    console().print(text, style=style, markup=False, soft_wrap=True)


def cell(text: str, style: str = "") -> Text:
    """Text of a judge, an endpoint or a file for a table: no markup in it, and nothing that a terminal obeys."""
    from rich.text import Text

    return Text(_CONTROL.sub(" ", text), style)


def _wrap(line: str, width: int) -> str:
    """Rich breaks a long path to fit; here a word stays whole, so that it can be copied."""
    from rich.cells import cell_len

    lines: list[str] = []
    for word in line.split(" "):
        if lines and (not lines[-1].strip() or cell_len(lines[-1]) + 1 + cell_len(word) <= width):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


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
    """The command's answer: one JSON value on stdout, in ASCII where stdout cannot carry more."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, ensure_ascii=plain, indent=2, allow_nan=False) + "\n")
    # A full disk or a closed pipe shows here, while it can still be told, and not when the interpreter ends.
    sys.stdout.flush()


def read_bytes(path: Path) -> bytes:
    """A file's bytes, or standard input for `-`; CommandError names what cannot be read."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", 2) from None


def read_reply(path: Path | None) -> str:
    """A policy's reply, "" without a path, `-` = stdin; other encodings than UTF-8 are found, with a warning."""
    if path is None or str(path) == "-":
        return read_bytes(path).decode("utf-8", "replace") if path else ""
    from rubric_env.rubric import read_text

    try:
        text, warning = read_text(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", 2) from None
    if warning:
        warnings.warn(warning, stacklevel=2)
    return text


def read_json(path: Path) -> Any:
    """A JSON file in which no object has a key twice; CommandError names file and place."""
    try:
        return json.loads(read_bytes(path), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{path}: not JSON that can be read: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found
