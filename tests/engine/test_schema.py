"""SPEC 4: the response schema is strict, and there is one with free-string ids per block shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rubric_env.engine.schema import loose_schema, strict_schema
from rubric_env.rubric import RubricSpec

BINARY = {"id": "B", "description": "is so", "weight": 1}
NEGATIVE = {"id": "N", "description": "is wrong", "weight": -1, "scores": {"0": "no", "1": "yes"}}
HALVES = {"id": "H", "description": "is good", "weight": 1, "scores": {"0": "no", "0.5": "half", "1": "all"}}
THIRDS = {"id": "T", "description": "is fine", "weight": 1, "scores": {"0": "no", "0.3": "some", "1": "all"}}


def entries(schema: dict[str, Any]) -> list[dict[str, Any]]:
    items = schema["properties"]["verdicts"]["items"]
    return items.get("anyOf", [items])


def strict(*rows: dict[str, Any], nullable: bool = False) -> dict[str, Any]:
    return strict_schema(RubricSpec.parse(list(rows)), nullable)


def loose(*rows: dict[str, Any], nullable: bool = False) -> dict[str, Any]:
    return loose_schema(RubricSpec.parse(list(rows)), nullable)


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for value in schema.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from objects(value)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("build", [strict, loose])
def test_strict_endpoints_take_it_all_required_and_nothing_besides(build: Any, nullable: bool) -> None:
    schema = build(BINARY, HALVES, THIRDS, nullable=nullable)
    assert schema["type"] == "object"
    found = list(objects(schema))
    assert len(found) > 2
    for item in found:
        assert item["required"] == list(item["properties"])
        assert item["additionalProperties"] is False


def test_section_4_ids_are_an_enum_of_the_blocks_ids() -> None:
    (entry,) = entries(strict(BINARY, NEGATIVE))
    assert entry["properties"]["id"] == {"type": "string", "enum": ["B", "N"]}


def test_section_4_reason_and_evidence_come_before_hit_and_level() -> None:
    (entry,) = entries(strict(HALVES))
    assert list(entry["properties"]) == ["id", "reason", "evidence", "hit", "level"]


def test_section_4_level_is_an_enum_of_the_legal_values_on_graded_rows_only() -> None:
    binary, halves, thirds = entries(strict(BINARY, HALVES, THIRDS, NEGATIVE))
    assert binary["properties"]["id"]["enum"] == ["B", "N"]
    assert "level" not in binary["properties"]
    assert halves["properties"]["level"] == {"type": "number", "enum": [0, 0.5, 1]}
    assert thirds["properties"]["level"]["enum"] == [0, 0.3, 1]


def test_section_4_null_only_where_the_evidence_records_a_failure_of_ours() -> None:
    (plain,), (nullable,) = entries(strict(HALVES)), entries(strict(HALVES, nullable=True))
    assert plain["properties"]["hit"] == {"type": "boolean"}
    assert nullable["properties"]["hit"] == {"type": ["boolean", "null"]}
    assert nullable["properties"]["level"] == {"type": ["number", "null"], "enum": [0, 0.5, 1, None]}


def test_section_4_one_loose_schema_per_block_shape() -> None:
    other = {**BINARY, "id": "B2"}
    assert json.dumps(loose(BINARY, NEGATIVE)) == json.dumps(loose(other))
    assert json.dumps(loose(HALVES)) == json.dumps(loose(THIRDS, HALVES))
    assert json.dumps(loose(BINARY, HALVES)) == json.dumps(loose(THIRDS, other))
    shapes = {json.dumps(loose(*rows)) for rows in ([BINARY], [HALVES], [BINARY, HALVES])}
    assert len(shapes) == 3
