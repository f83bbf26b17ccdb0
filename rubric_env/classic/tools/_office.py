"""What the office tools share: arguments are checked, the work is done elsewhere, the file goes into the workspace."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rubric_env._computing import computing
from rubric_env._threads import Threads, aside
from rubric_env.classic.tools._workspace import ToolRefusal, Workspace
from rubric_env.office import OfficeError, perform
from rubric_env.submission import open_regular

LARGEST = 64 * 2**20
"""Bytes of a file that is edited."""

ITEMS = 500
"""Edits, sheets or slides of one call."""

CHARACTERS = 4_000_000
"""Of all arguments together."""

WAITING = 16
"""Calls that wait for a worker of their own accord, each with its file in memory; the rest wait for them."""

_waiting = Threads(WAITING, "rubric-env-office")

WRONG = 10
"""Problems of arguments that are named."""

Arguments = Callable[[], dict[str, Any]]
"""Gives a worker's arguments, checked, in a thread: a model of a hundred thousand cells takes its time."""


async def make(workspace: Workspace, tool: str, path: str, arguments: Arguments) -> str:
    """Make the file at `path`, replacing one that is there. Raises ToolRefusal, OSError."""

    def ready() -> tuple[dict[str, Any], Path]:
        return _given(arguments), _file(workspace, path, tool)

    return await _do(workspace, tool, *await aside.run(ready))


async def edit(workspace: Workspace, tool: str, path: str, arguments: Arguments, save_as: str | None = None) -> str:
    """Change the file at `path`, or leave it and write what it becomes to `save_as`; `arguments` are its `edits`.

    Raises ToolRefusal, OSError.
    """

    def ready() -> tuple[dict[str, Any], Path, Path]:
        read = _given(arguments)
        source = _file(workspace, path, tool)
        target = _file(workspace, save_as, tool) if save_as else source
        if not source.is_file():
            raise ToolRefusal(f"{path}: no such file; list_files shows what there is")
        if not read["edits"]:
            raise ToolRefusal("edits: there are none")
        return read, target, source

    return await _do(workspace, tool, *await aside.run(ready))


def from_text(value: Any) -> Any:
    """A list that came as its JSON text, as some models send it."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def checked(name: str, items: Any, model: type[BaseModel]) -> Arguments:
    """The argument `name`, a list of `model`; what gives it raises ToolRefusal with everything that is wrong."""

    def arguments() -> dict[str, Any]:
        given = from_text(items)
        if not isinstance(given, list):
            raise ToolRefusal(f"{name}: a list is wanted, not {type(given).__name__}")
        if len(given) > ITEMS:
            raise ToolRefusal(f"{name}: {len(given)} of them, a call takes {ITEMS}")
        read, wrong = [], []
        for number, item in enumerate(given, 1):
            try:
                read.append((item if isinstance(item, model) else model.model_validate(item)).model_dump())
            except ValidationError as error:
                wrong += [_told(f"{name.removesuffix('s')} {number}", one, model) for one in error.errors()]
        if wrong:
            more = [f"and {len(wrong) - WRONG} more problems"] if len(wrong) > WRONG else []
            raise ToolRefusal("\n".join(["nothing was written:", *wrong[:WRONG], *more]))
        return {name: read}

    return arguments


def _told(where: str, error: Any, model: type[BaseModel]) -> str:
    place = ".".join(str(one) for one in error["loc"] if isinstance(one, int) or "[" not in one)
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key {place[:60]}; there are {', '.join(model.model_fields)}"
    return ": ".join(filter(None, (where, place, error["msg"][:300])))


def _file(workspace: Workspace, path: str, tool: str) -> Path:
    suffix = f".{tool.rpartition('_')[2]}"
    if not path.lower().endswith(suffix):
        raise ToolRefusal(f"{path}: a name that ends in {suffix} is wanted")
    return workspace.resolve(path)


def _read(workspace: Workspace, file: Path) -> bytes:
    with workspace.refusing(workspace.name(file)), open_regular(file) as opened:
        data = opened.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ToolRefusal(f"{workspace.name(file)}: larger than {LARGEST // 2**20} MB")
    return data


def _given(arguments: Arguments) -> dict[str, Any]:
    with computing():
        given = arguments()
        if len(json.dumps(given)) > CHARACTERS:
            raise ToolRefusal(f"the arguments have more than {CHARACTERS:,} characters")
        return given


async def _do(
    workspace: Workspace, tool: str, arguments: dict[str, Any], target: Path, source: Path | None = None
) -> str:
    def work() -> str:
        name = workspace.name(target)
        data = _read(workspace, source) if source else None
        try:
            made = perform(tool, arguments, workspace.root, target.name, data)
        except OfficeError as error:
            raise ToolRefusal(f"{name}: {error}") from None
        workspace.write(target, made.data)
        return f"{'changed' if source == target else 'wrote'} {name} ({len(made.data):,} bytes): {made.said}"

    return await _waiting.run(work)
