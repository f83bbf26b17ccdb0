"""From a raw row to a Criterion, or to everything that is wrong with it at once."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rubric_env.rubric._criterion import TEXT_KEYS, Criterion
from rubric_env.rubric._source import Problem

LARGEST_WEIGHT = 1e100
"""Far beyond any use, and far enough from the largest float that sums of weights stay finite."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
T = TypeVar("T")


class _BadField(ValueError):
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def read_rows(rows: Sequence[Any]) -> tuple[list[Criterion], list[Problem]]:
    """The readable rows and all problems of all rows, in order. An id used twice is the later row's problem."""
    criteria: list[Criterion] = []
    problems: list[Problem] = []
    first: dict[str, int] = {}
    sound = _has_json_form(rows)
    for number, row in enumerate(rows, 1):
        criterion, found = _read_row(number, row, sound)
        problems += found
        identity = criterion.id if criterion else found[0].id
        if identity and first.setdefault(identity, number) != number:
            reason = f"the id is already used by row {first[identity]}: give each row an id of its own"
            problems.append(Problem(number, identity, reason, "duplicate-id"))
        elif criterion:
            criteria.append(criterion)
    return criteria, problems


def _read_row(number: int, row: Any, sound: bool) -> tuple[Criterion | None, list[Problem]]:
    if not isinstance(row, Mapping):
        reason = f'a {type(row).__name__} instead of an object: write {{"description": …, "weight": …}}'
        return None, [Problem(number, "", reason, "row-not-object")]
    fields = {key: value for key, value in row.items() if value is not None}
    faults: list[_BadField] = []

    def read(reader: Callable[..., T], default: T, *arguments: Any) -> T:
        try:
            return reader(*arguments)
        except _BadField as fault:
            faults.append(fault)
            return default

    if not sound:
        read(_json_values, None, row)
    read(_no_repeated_key, None, row)
    identity = read(_reference, "", fields.get("id", ""), "bad-id", "id") or f"R{number:02d}"
    weight = read(_weight, 0.0, fields)
    hurdle = read(_hurdle, False, fields.get("hurdle", False))
    criterion = Criterion(
        id=identity,
        description=read(_text, "", fields),
        weight=weight,
        hurdle=hurdle,
        depends_on=read(_depends_on, (), fields.get("depends_on", ())),
        levels=None if hurdle or weight < 0 else read(_levels, None, fields),
        checkpoints=read(_checkpoints, (), fields.get("checkpoints", ())),
        tag=str(fields.get("tag", "")),
        criterion_type=str(fields.get("criterion_type", "")),
        criterion_necessity=str(fields.get("criterion_necessity", "")),
        raw=dict(row),
    )
    if faults:
        return None, [Problem(number, identity, str(fault), fault.code) for fault in faults]
    return criterion, []


def _has_json_form(rows: Sequence[Any]) -> bool:
    """Whether all rows have one: seen at once, since thousands of rubrics are read in a row."""
    try:
        json.dumps(rows, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _json_values(row: Mapping[str, Any]) -> None:
    """A row is sent to a judge as JSON in UTF-8, so what has no form there must not wait until then."""
    try:
        json.dumps(dict(row), ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:  # an object of Python, half a surrogate pair, a circle
        raise _BadField("no-json-value", f"a value has no form in JSON and UTF-8: {error}") from None


def _no_repeated_key(table: Mapping[str, Any]) -> None:
    if repeated := getattr(table, "repeated", ()):
        raise _BadField("repeated-key", f"{', '.join(map(repr, repeated))} stands twice in one object: keep one")


def _reference(value: Any, code: str, field: str) -> str:
    """An id as text. A whole number that a table turned into a float is still that number: 3.0 is "3"."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    raise _BadField(code, f"{field} {value!r} is neither text nor a number")


def _text(fields: Mapping[str, Any]) -> str:
    given = {key: fields[key] for key in TEXT_KEYS if key in fields}
    for key, value in given.items():
        if not isinstance(value, str):
            raise _BadField("no-text", f"`{key}` is a {type(value).__name__}, not text")
        if value.strip():
            return value
    others = ", ".join(map(str, fields)) or "nothing"
    raise _BadField("no-text", f"no text: write it under `description` (the row has {others})")


def _weight(fields: Mapping[str, Any]) -> float:
    value = fields.get("weight", fields.get("points", 0))
    try:
        weight = _number(value)
    except ValueError as error:
        raise _BadField("bad-weight", f"weight {error}: write a finite number") from None
    if abs(weight) > LARGEST_WEIGHT:
        raise _BadField("bad-weight", f"weight {value} is beyond {LARGEST_WEIGHT:g}: write a smaller number")
    return weight


def _number(value: Any) -> float:
    """A finite number, or a decimal numeral in text, which is what tables with mixed columns make of numbers."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{'NaN' if math.isnan(number) else 'infinity'} is not finite")
    return number + 0.0  # no negative zero


def _hurdle(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _BadField("bad-hurdle", f"hurdle {value!r} is neither true nor false")
    return value


def _depends_on(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    ids = (_reference(item, "bad-depends-on", "depends_on") for item in items if item is not None)
    return tuple(dict.fromkeys(identity for identity in ids if identity))


def _checkpoints(value: Any) -> tuple[Mapping[str, Any], ...]:
    items = [item for item in value if item is not None] if isinstance(value, list | tuple) else [value]
    if not all(isinstance(item, Mapping) for item in items):
        raise _BadField("bad-checkpoints", "checkpoints must be a list of objects {id, description, content}")
    return tuple(items)


def _levels(fields: Mapping[str, Any]) -> Mapping[float, str] | None:
    """The table of a graded row. One that holds nothing but nulls is absent: tables add such to rows without one."""
    sources = ("levels", "scores") if fields.get("type") == "gradient" else ("scores",)
    for source in sources:
        table = fields.get(source)
        if table is None or (isinstance(table, Mapping) and table and all(text is None for text in table.values())):
            continue
        return _table(source, table)
    return None


def _table(source: str, table: Any) -> Mapping[float, str]:
    if not isinstance(table, Mapping):
        raise _BadField("bad-levels", f"{source} must map fractions to texts, not be a {type(table).__name__}")
    _no_repeated_key(table)
    levels: dict[float, str] = {}
    for key, text in table.items():
        if text is None:
            continue
        try:
            level = _number(key)
        except ValueError as error:
            raise _BadField("bad-levels", f"{source}: key {error}: keys are fractions from 0 to 1") from None
        if not 0 <= level <= 1:
            raise _BadField(
                "bad-levels", f"{source}: key {key!r} is outside 0..1: write it as a fraction, 0.75 for 75 %"
            )
        if level in levels:
            raise _BadField("bad-levels", f"{source}: two keys mean the level {level:g}: keep one")
        if not isinstance(text, str):
            raise _BadField("bad-levels", f"{source}: the text of {key!r} is a {type(text).__name__}, not text")
        levels[level] = text
    if len(levels) < 2:
        raise _BadField("too-few-levels", f"{source} has fewer than two levels: a graded row needs two at least")
    return dict(sorted(levels.items()))
