"""What the engine and a judge say to each other. A new judge implements `ask` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Usage


@dataclass(frozen=True, slots=True)
class Prompt:
    """One block's question.

    `system` and `shared` are byte-identical for all blocks of a rollout (the endpoint's prefix cache relies on it);
    `rows` and the contract differ. `contract_json` states the answer format where the endpoint enforces JSON,
    `contract_plain` the one for plain text, where the answer follows the line `marker`.
    `schema` is the strict JSON schema with the block's ids as an enum, `loose_schema` the one with free-string ids.
    """

    ids: tuple[str, ...]
    system: str
    shared: str
    rows: str
    contract_json: str
    contract_plain: str
    marker: str
    schema: Mapping[str, Any]
    loose_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's text. `marker` is set where the contract asked for one; `mode` names the structured-output step."""

    text: str
    usage: Usage
    seconds: float
    marker: str | None = None
    mode: str = ""
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class CallFault:
    """A call that gave no text. `retry_after` in seconds, where the endpoint named one."""

    fault: Fault
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    retry_after: float | None = None


class Judge(Protocol):
    """Answers one block. `ask` never raises but for cancellation; `timeout` bounds its whole wall time in seconds."""

    model: str
    identity: str
    """Endpoint, model and sampling as text: part of the journal's key. Holds no secret."""

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault: ...

    async def aclose(self) -> None: ...
