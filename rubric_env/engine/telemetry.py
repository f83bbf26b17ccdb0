"""OpenTelemetry spans of rollouts and their calls, for a process in which a tracer provider is set.

Only `opentelemetry-api` is used, and only once something else has imported it: who sets a provider has. The names are
those of the GenAI semantic conventions; what these have no name for is under `rubric_env.`. No prompt, no answer and no
verdict is in a span.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rubric_env.engine.events import CallEvent
from rubric_env.scoring import Outcome
from rubric_env.scoring.faults import FaultKind

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

DEFAULT_PORTS = {"http": 80, "https": 443}


@contextmanager
def rollout_span(evaluation: str, name: str, rows: int) -> Iterator[Callable[[Outcome], None]]:
    """The span around one rollout, to which its calls belong; what it yields is told the outcome.

    `evaluation` is what the score is called (`metric_id`); `name` tells the rollout from others.
    """
    tracer = _tracer()
    if tracer is None:
        yield lambda _: None
        return
    from opentelemetry.trace import StatusCode

    with tracer.start_as_current_span(
        f"evaluate {evaluation}",
        attributes={"gen_ai.evaluation.name": evaluation, "rubric_env.rollout": name, "rubric_env.rows": rows},
        # An exception's text may quote what was judged.
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        # Stays so when the rollout is cancelled: nothing else ends it without an outcome.
        found: dict[str, Any] = {"error.type": str(FaultKind.CANCELLED)}

        def end(outcome: Outcome) -> None:
            nonlocal found
            found = _of_outcome(outcome)

        try:
            yield end
        finally:
            span.set_attributes(found)
            if "error.type" in found:
                span.set_status(StatusCode.ERROR)


def trace_call(event: CallEvent) -> None:
    """A span of one call, made when it has ended, with the times that it had; a child of the current span."""
    tracer = _tracer()
    if tracer is None:
        return
    from opentelemetry.trace import SpanKind, StatusCode

    span = tracer.start_span(
        f"chat {event.question.model}",
        kind=SpanKind.CLIENT,
        attributes=_of_call(event),
        start_time=_nanoseconds(event.at),
    )
    if event.fault is not None:
        span.set_status(StatusCode.ERROR)
    span.end(_nanoseconds(event.at + event.end - event.start))


def _tracer() -> Tracer | None:
    """None as long as nobody has set a provider, which takes an import of the API."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider.get_tracer("rubric_env")


def _of_call(event: CallEvent) -> dict[str, Any]:
    question, usage = event.question, event.usage
    url = urlsplit(question.endpoint)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        # It names the dialect that is spoken, whoever runs the endpoint.
        "gen_ai.provider.name": "openai" if url.hostname else "rubric_env",
        "gen_ai.request.model": question.model,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "rubric_env.rows": len(question.ids),
        "rubric_env.attempt": question.attempt,
        "rubric_env.wait": event.start - event.queued,
        "rubric_env.mode": event.mode,
    }
    if url.hostname:
        attributes |= {"server.address": url.hostname, "server.port": url.port or DEFAULT_PORTS.get(url.scheme, 0)}
    if event.fault is not None:
        attributes["error.type"] = str(event.fault.kind)
    return attributes


def _of_outcome(outcome: Outcome) -> dict[str, Any]:
    fields = outcome.fields
    attributes: dict[str, Any] = {
        "rubric_env.scored": outcome.scored,
        "rubric_env.coverage": fields["judge_coverage"],
        "rubric_env.calls": fields["judge_calls"],
    }
    if outcome.scored:
        attributes["gen_ai.evaluation.score.value"] = outcome.reward
        attributes["gen_ai.evaluation.score.label"] = "pass" if fields["passed"] else "fail"
    else:
        attributes["error.type"] = fields["judge_error_kind"]
    return attributes


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
