"""What the engine and a judge say to each other. A new judge implements `ask` and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rubric_env.scoring.faults import Fault
from rubric_env.scoring.judgement import Usage


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG file for a judge that sees, and the address under which a verdict cites it."""

    address: str
    path: Path


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
    tokens: int = 0
    """Estimate of the whole question, for a limit of tokens a minute."""
    pictures: tuple[Picture, ...] = ()
    """Shown after `shared`, the same for all blocks of a rollout."""


@dataclass(frozen=True, slots=True)
class RateHints:
    """What an endpoint says of its limits in its headers; None where it says nothing. Resets are seconds from now."""

    requests_per_minute: float | None = None
    requests_left: float | None = None
    requests_reset: float | None = None
    tokens_per_minute: float | None = None
    tokens_left: float | None = None
    tokens_reset: float | None = None
    crowded: bool = False
    """The call was refused because too many are in flight, not because too many came in a minute."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's text. `marker` is set where the contract asked for one; `mode` names the structured-output step.

    `truncated`: it stops at the limit of output tokens. `cut`: why a stream stopped before its end (`timeout`,
    `connection`); the text is what had come by then.
    """

    text: str
    usage: Usage
    seconds: float
    marker: str | None = None
    mode: str = ""
    truncated: bool = False
    cut: Fault | None = None
    hints: RateHints | None = None


@dataclass(frozen=True, slots=True)
class CallFault:
    """A call that gave no text. `retry_after` in seconds, where the endpoint named one.

    `elsewhere`: another endpoint may answer at once; the fault is not the last word, whatever its kind.
    """

    fault: Fault
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    retry_after: float | None = None
    hints: RateHints | None = None
    elsewhere: bool = False
    context_limit: int | None = None
    """Tokens that the endpoint takes at all, where a refusal for too many named them."""


class Judge(Protocol):
    """Answers one block. `ask` never raises but for cancellation; `timeout` bounds its whole wall time in seconds.

    A judge may also have `endpoint` (for people) and `quota` (a text that judges with the same limits share, without
    secrets), for which `identity` stands in; and `sees`, True while it takes pictures.
    """

    model: str
    identity: str
    """Endpoint, model and sampling as text: part of the journal's key. Holds no secret."""

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault: ...

    async def aclose(self) -> None: ...
