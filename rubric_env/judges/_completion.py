"""What a chat completion says: its text, or why there is none; and the tokens it counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rubric_env.judges._error_text import decode, from_value, tells_error
from rubric_env.judges._redact import redact
from rubric_env.judges.classify import Problem, classify_error, classify_response
from rubric_env.scoring.faults import Fault, FaultKind

_K = FaultKind
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset(
    {"content_filter", "sensitive", "safety", "recitation", "blocklist", "prohibited_content", "spii", "error_toxic"}
)
_BROKEN_OFF = frozenset({"error", "network_error", "insufficient_system_resource"})


@dataclass(frozen=True, slots=True)
class Tokens:
    """As the endpoint counts them; `cached` is a part of `input`."""

    input: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, never empty. `truncated`: it stops at the limit of output tokens; `cut`: why its stream ended early."""

    text: str
    truncated: bool
    cut: Fault | None = None


def read_completion(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    secrets: Iterable[str],
    as_chat: Callable[[dict[str, Any]], dict[str, Any]] = lambda value: value,
) -> tuple[Answer | Problem, Tokens | None]:
    """The outcome of an HTTP reply, and its token counts where it holds any. `as_chat` translates another format."""
    value = _json(body, headers) if 200 <= status < 300 else None
    if not isinstance(value, dict):
        return classify_response(status, headers, body, secrets), None
    return read_value(as_chat(value), status, headers, secrets)


def read_value(
    value: Mapping[str, Any], status: int, headers: Mapping[str, str], secrets: Iterable[str], *, spoken: bool = False
) -> tuple[Answer | Problem, Tokens | None]:
    """The same of a decoded chat completion. `spoken`: its text is known to be a model's, whatever is counted."""
    tokens = read_tokens(value.get("usage"))
    spoken = spoken or bool(tokens and tokens.output)
    return _outcome(value, status, headers, secrets, spoken=spoken), tokens


def read_tokens(usage: Any) -> Tokens | None:
    """OpenAI's names and those of other vendors; None when nothing is counted."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    nested = details.get("cached_tokens") if isinstance(details, dict) else None
    cached = _first(
        nested, usage.get("prompt_cache_hit_tokens"), usage.get("cache_read_input_tokens"), usage.get("cached_tokens")
    )
    given = _first(usage.get("prompt_tokens"))
    if given is None:
        given = _first(usage.get("input_tokens"))
        if given is not None and "cache_read_input_tokens" in usage:
            # These names come from a vendor that counts what it read from and wrote to the cache apart.
            given += (cached or 0) + (_first(usage.get("cache_creation_input_tokens")) or 0)
    output = _first(usage.get("completion_tokens"), usage.get("output_tokens"))
    if given is None and output is None:
        return None
    return Tokens(given or 0, min(cached or 0, given or 0), output or 0)


def _outcome(
    value: Mapping[str, Any], status: int, headers: Mapping[str, str], secrets: Iterable[str], *, spoken: bool
) -> Answer | Problem:
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        if tells_error(value):
            return classify_error(status, headers, from_value(value), secrets)
        if "choices" in value:
            return _fault(_K.EMPTY, "the reply holds no choices")
        return _fault(_K.SERVER, redact(f"HTTP {status}: no chat completion: {json.dumps(value)}", secrets))
    if error := choice.get("error") or value.get("error"):
        return classify_error(status, headers, from_value(error), secrets)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish = str(choice.get("finish_reason") or "").lower()
    text = content_text(message.get("content"))
    refusal = message.get("refusal")
    if finish.partition(":")[0] in _FILTERED:
        return _fault(_K.CONTENT_FILTER, f"the endpoint's filter stopped the answer (finish_reason {finish})")
    if finish in _BROKEN_OFF:
        return _fault(_K.SERVER, f"the endpoint broke the answer off (finish_reason {finish})")
    if not text.strip():
        if isinstance(refusal, str) and refusal.strip():
            return _fault(_K.REFUSAL, redact(refusal, secrets))
        return _empty(finish, message)
    if not spoken and (told := _whole_error(text)) is not None:
        return classify_error(status, headers, from_value(told), secrets)
    return Answer(text, finish in _CUT)


def _empty(finish: str, message: Mapping[str, Any]) -> Problem:
    if finish in _CUT:
        return _fault(
            _K.EMPTY,
            "no text before the limit of output tokens: thinking used it up; "
            "unset or raise JUDGE_MAX_TOKENS, or lower JUDGE_REASONING_EFFORT",
        )
    what = "only thinking" if message.get("reasoning_content") or message.get("reasoning") else "no text"
    if message.get("tool_calls"):
        what = "a tool call and no text"
    return Problem(Fault(_K.EMPTY, f"the reply holds {what} (finish_reason {finish or 'none'})"), remedy="plain")


def _whole_error(text: str) -> Mapping[str, Any] | None:
    """An error object that a gateway put where the answer goes. The words of a model are never read for this."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("error") and tells_error(value) else None


def content_text(content: Any) -> str:
    """The text of a message's content, which may come in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") in ("text", None))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def _json(body: bytes, headers: Mapping[str, str]) -> Any:
    text = decode(body, headers.get("content-type", ""))
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _first(*counts: Any) -> int | None:
    """The first that is a count, and one that a float can hold."""
    return next((n for n in counts if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**53), None)


def _fault(kind: FaultKind, detail: str) -> Problem:
    return Problem(Fault(kind, detail))
