"""From whatever a caller holds (rows, JSON text, a path) to a list of raw rows, or one clear error."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROW_KEYS = ("rubrics", "criteria", "items")
"""Where an object keeps its rows, in this order."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a row cannot be used. `row` counts from 1, 0 is the file as a whole; `code` is kebab-case and stable."""

    row: int
    id: str
    reason: str
    code: str

    def __str__(self) -> str:
        if not self.row:
            return self.reason
        return f"row {self.row} ({self.id}): {self.reason}" if self.id else f"row {self.row}: {self.reason}"


class RubricError(ValueError):
    """A rubric that cannot be used. The message names the source and, for every bad row at once, what to change."""

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source, self.problems = source, tuple(problems)
        bad = len({problem.row for problem in problems if problem.row})
        head = f"{source}: {bad} row{'s' if bad > 1 else ''} cannot be read\n  " if bad else f"{source}: "
        super().__init__(head + "\n  ".join(map(str, problems)))

    def __reduce__(self) -> tuple[type[RubricError], tuple[str, tuple[Problem, ...]]]:
        return RubricError, (self.source, self.problems)


class JsonObject(dict[str, Any]):
    """A decoded JSON object that remembers which keys stood in it twice: JSON keeps the last one silently."""

    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Raw rows, the name that messages call their source by, and the warning that came with reading it ("" = none)."""

    rows: Sequence[Any]
    name: str
    warning: str = ""


def read_text(path: str | Path) -> tuple[str, str]:
    """A text file and a warning, "" if there is none: UTF-8, else GB18030, else Latin-1 (SPEC 4). Raises OSError."""
    return decode_text(Path(path).read_bytes(), path)


def decode_text(data: bytes, path: str | Path) -> tuple[str, str]:
    """The same for bytes that were read; `path` is for the warning."""
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        pass
    try:
        text, encoding = data.decode("gb18030"), "GB18030"
    except UnicodeDecodeError:
        text, encoding = data.decode("latin-1"), "Latin-1"
    return text, f"{path} is not UTF-8: read as {encoding}; save it as UTF-8"


def read_source(source: Any) -> Source:
    """Rows of a list, an object, JSON text (it starts with a bracket or a brace) or a file. Raises RubricError."""
    name, warning = "rubric", ""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n")[:1] in ("[", "{"):
        name = "rubric (JSON text)"
        source = _decode(source.lstrip("\ufeff"), name)
    elif isinstance(source, str | Path):
        text, name, warning = _read_file(source)
        source = _decode(text, name)
    return Source(_rows(source, name), name, warning)


def warn_of(source: Source) -> None:
    if source.warning:
        warnings.warn(source.warning, stacklevel=3)


def _read_file(path: str | Path) -> tuple[str, str, str]:
    name = str(path) if len(str(path)) <= 300 else f"{str(path)[:100]}…"
    if not str(path).strip():
        raise _file_error("rubric", "empty text: give rows, JSON text or the path of a rubric.json", "missing-file")
    if Path(path).is_dir():
        raise _file_error(name, "a directory: give the path of the rubric.json in it", "missing-file")
    try:
        text, warning = read_text(path)
    except FileNotFoundError:
        raise _file_error(name, "no such file (and not JSON text, which starts with [ or {)", "missing-file") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise _file_error(name, f"cannot be opened: {getattr(error, 'strerror', error)}", "missing-file") from None
    return text, name, warning


def _decode(text: str, name: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _file_error(name, f"not JSON: {error.msg} at {where}", "not-json") from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, brackets without end
        raise _file_error(name, f"not JSON that can be read: {error}", "not-json") from None


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    result = JsonObject(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        result.repeated = tuple(key for key in result if keys.count(key) > 1)
    return result


def _rows(data: Any, name: str) -> Sequence[Any]:
    if isinstance(data, Mapping):
        key = next((key for key in ROW_KEYS if data.get(key) is not None), None)
        if key is None:
            found = ", ".join(map(str, data)) or "none"
            wanted = "`rubrics`, `criteria` or `items`"
            raise _file_error(name, f"an object without rows under {wanted} (its keys: {found})", "no-rows")
        data = data[key]
    if not isinstance(data, list | tuple):
        kind = type(data).__name__
        raise _file_error(name, f"a list of rows is needed, or an object that holds one; this is a {kind}", "no-rows")
    if not data:
        raise _file_error(name, "the list of rows is empty: write at least one row", "no-rows")
    return data


def _file_error(name: str, reason: str, code: str) -> RubricError:
    return RubricError(name, [Problem(0, "", reason, code)])
