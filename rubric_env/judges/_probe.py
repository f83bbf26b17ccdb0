"""One small question, to learn whether an endpoint answers and what it can do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rubric_env.judges.chat import ENDPOINT_JUDGES
from rubric_env.judges.credentials import Credentials
from rubric_env.judges.protocol import CallFault, Prompt
from rubric_env.settings import JudgeSettings

_MARKER = "=== VERDICTS probe ==="
_ROW = {"id": "P1", "description": "The evidence names a colour.", "hit_means": "A colour is named."}
_FORM = '{"verdicts": [{"id": "P1", "reason": <text>, "hit": <true or false>}]}'


@dataclass(frozen=True, slots=True)
class Probe:
    """`detail` is one line for people; `mode` the structured output that the endpoint took, empty when it failed."""

    ok: bool
    detail: str
    mode: str = ""


async def probe(settings: JudgeSettings, credentials: Credentials) -> Probe:
    """Judge one trivial row through the configured endpoint: a real call, a few hundred tokens."""
    judge = ENDPOINT_JUDGES[settings.backend](settings, credentials)
    try:
        answer = await judge.ask(_prompt(), timeout=settings.per_timeout)
    finally:
        await judge.aclose()
    if isinstance(answer, CallFault):
        return Probe(False, f"{settings.model} at {credentials.base_url}: {answer.fault}")
    spent = f"{answer.usage.input_tokens} + {answer.usage.output_tokens} tokens"
    return Probe(True, f"{settings.model} answers in {answer.seconds:.1f} s, {answer.mode}, {spent}", answer.mode)


def _prompt() -> Prompt:
    fields: dict[str, Any] = {"id": {"type": "string"}, "reason": {"type": "string"}, "hit": {"type": "boolean"}}

    def schema(ids: dict[str, Any]) -> dict[str, Any]:
        verdict = _closed({**fields, "id": ids})
        return _closed({"verdicts": {"type": "array", "items": verdict}})

    return Prompt(
        ids=("P1",),
        system="You judge whether a row of a rubric is met by the evidence.",
        shared="# Evidence\n<<<DATA probe model_response_text.txt\nThe sky is blue.\nDATA probe>>>",
        rows=f"# Rows\n```json\n{json.dumps([_ROW])}\n```",
        contract_json=f"# Answer\nAnswer with one JSON object: {_FORM}",
        contract_plain=f"# Answer\nWrite the line\n{_MARKER}\nand after it one JSON object: {_FORM}",
        marker=_MARKER,
        schema=schema({"type": "string", "enum": ["P1"]}),
        loose_schema=schema({"type": "string"}),
    )


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
