"""The answer as JSON schema, in the subset that strict endpoints take: every property required, none besides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rubric_env.rubric import Criterion

Schema = dict[str, Any]


def strict_schema(rows: Iterable[Criterion], nullable: bool) -> Schema:
    """Ids are an enum of the block's; graded rows need a `level` out of their own choices.

    Rows with equal choices share one variant of the entry, so that a block of binary rows needs no `anyOf`.
    """
    kinds: dict[tuple[float, ...], list[str]] = {}
    for row in rows:
        kinds.setdefault(row.level_choices, []).append(row.id)
    return _answer(
        _entry(
            {"enum": ids},
            {"enum": [*map(_number, levels), *([None] if nullable else [])]} if levels else None,
            nullable,
        )
        for levels, ids in kinds.items()
    )


def loose_schema(rows: Iterable[Criterion], nullable: bool) -> Schema:
    """One schema per block shape (binary, graded, both), for providers that compile a grammar per schema."""
    return _answer(_entry({}, {} if graded else None, nullable) for graded in sorted({row.graded for row in rows}))


def _answer(entries: Iterable[Schema]) -> Schema:
    variants = list(entries)
    return _object({"verdicts": {"type": "array", "items": variants[0] if len(variants) == 1 else {"anyOf": variants}}})


def _entry(row_id: Schema, level: Schema | None, nullable: bool) -> Schema:
    """`row_id` and `level` narrow the types of those two; `level` None: a binary row, which has none."""

    def judged(kind: str) -> Schema:
        return {"type": [kind, "null"] if nullable else kind}

    text = {"type": "string"}
    graded = {} if level is None else {"level": judged("number") | level}
    return _object({"id": text | row_id, "reason": text, "evidence": text, "hit": judged("boolean"), **graded})


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _number(level: float) -> int | float:
    return int(level) if level == int(level) else level
