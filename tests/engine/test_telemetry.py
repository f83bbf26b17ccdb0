"""Spans, as the OpenTelemetry SDK itself records them; none, and no import, without a provider."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from rubric_env.engine import JudgeEngine
from rubric_env.judges import LocalJudge
from rubric_env.settings import JudgeSettings
from tests.engine.conftest import REPLY, Judging, case, rows
from tests.servers.scenarios import SCENARIOS, Scenario, error

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode


class Spans(InMemorySpanExporter):
    """The spans that ended, rollouts apart from calls."""

    @property
    def calls(self) -> list[ReadableSpan]:
        return [span for span in self.get_finished_spans() if span.kind is SpanKind.CLIENT]

    @property
    def rollouts(self) -> list[ReadableSpan]:
        return [span for span in self.get_finished_spans() if span.name.startswith("evaluate ")]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracerProvider]:
    """Set as a program sets it; the API allows that once a process, hence the patch."""
    provider = TracerProvider()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield provider
    provider.shutdown()


@pytest.fixture
def spans(provider: TracerProvider) -> Spans:
    exporter = Spans()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def everything(spans: Sequence[ReadableSpan]) -> str:
    return "\n".join(span.to_json() for span in spans)


async def test_a_span_a_call_under_a_span_a_rollout(judging: Judging, spans: Spans) -> None:
    before = time.time_ns()
    await judging(rows(8))
    (rollout,) = spans.rollouts
    first, second = spans.calls
    assert {span.parent.span_id for span in (first, second) if span.parent} == {rollout.context.span_id}
    assert {span.context.trace_id for span in (first, second)} == {rollout.context.trace_id}
    assert first.name == "chat scripted"
    port = urlsplit(judging.endpoint.base_url).port
    usage = judging.events[0].usage
    found = attributes(first)
    assert found.pop("rubric_env.wait") >= 0
    assert found == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "scripted",
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "server.address": "127.0.0.1",
        "server.port": port,
        "rubric_env.rows": 4,
        "rubric_env.attempt": 1,
        "rubric_env.mode": "json_schema",
    }
    assert first.start_time is not None and first.end_time is not None and rollout.end_time is not None
    event = judging.events[0]
    assert (first.end_time - first.start_time) / 1e9 == pytest.approx(event.end - event.start, abs=1e-3)
    assert before - 1e6 <= first.start_time < first.end_time <= rollout.end_time + 1e6
    assert first.status.status_code is StatusCode.UNSET


async def test_the_rollouts_span_has_its_score_and_belongs_to_the_callers_span(
    judging: Judging, spans: Spans, provider: TracerProvider
) -> None:
    with provider.get_tracer("trainer").start_as_current_span("step") as step:
        await judging.engine(metric_id="my_judge").judge(case(rows(2), name="rollout 7"))
    (rollout,) = spans.rollouts
    assert rollout.name == "evaluate my_judge"
    assert rollout.parent is not None and rollout.parent.span_id == step.get_span_context().span_id
    assert attributes(rollout) == {
        "gen_ai.evaluation.name": "my_judge",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.evaluation.score.label": "pass",
        "rubric_env.rollout": "rollout 7",
        "rubric_env.rows": 2,
        "rubric_env.scored": True,
        "rubric_env.coverage": 1.0,
        "rubric_env.calls": 1,
    }
    assert rollout.status.status_code is StatusCode.UNSET


async def test_a_fault_is_the_error_type_of_its_call_and_an_unscored_rollout_has_no_score(
    judging: Judging, spans: Spans
) -> None:
    judging.endpoint.default = SCENARIOS["503"]
    await judging(rows(1), max_tries=1)
    (call,), (rollout,) = spans.calls, spans.rollouts
    for span in (call, rollout):
        assert attributes(span)["error.type"] == "server"
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
    assert attributes(rollout)["rubric_env.scored"] is False
    assert "gen_ai.evaluation.score.value" not in attributes(rollout)


async def test_a_cancelled_rollout_ends_its_spans(judging: Judging, spans: Spans) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(30)
    task = asyncio.create_task(judging(rows(4)))
    await asyncio.to_thread(judging.endpoint.wait_in_flight, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [attributes(span)["error.type"] for span in (*spans.calls, *spans.rollouts)] == ["cancelled"] * 2


async def test_no_span_holds_a_word_of_policy_or_judge(judging: Judging, spans: Spans) -> None:
    judging.endpoint.script(error("echo", 400, f"cannot read: {REPLY}"), Scenario("prose", content="Judges chat a lot"))
    await judging(rows(4))
    text = everything(spans.get_finished_spans())
    assert "bad_request" in text
    for private in ("profit", "chat a lot", "Judge strictly", "states fact", "section"):
        assert private not in text


async def test_rollouts_at_the_same_time_keep_their_calls_apart(judging: Judging, spans: Spans) -> None:
    engine = judging.engine()
    await asyncio.gather(*(engine.judge(case(rows(8), name=str(number))) for number in range(4)))
    calls = [span.parent.span_id for span in spans.calls if span.parent]
    assert sorted(calls) == sorted(2 * [span.context.span_id for span in spans.rollouts])


async def test_a_judge_in_this_process_has_no_server(spans: Spans) -> None:
    engine = JudgeEngine(JudgeSettings(backend="local"), LocalJudge())
    await engine.judge(case(rows(1)))
    (call,) = spans.calls
    assert attributes(call)["gen_ai.provider.name"] == "rubric_env"
    assert "server.address" not in attributes(call)


async def test_a_provider_that_is_set_later_counts_from_then_on(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    engine = judging.engine()
    await engine.judge(case(rows(1)))
    provider, exporter = TracerProvider(), Spans()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    await engine.judge(case(rows(1)))
    assert (len(exporter.calls), len(exporter.rollouts)) == (1, 1)


def test_without_a_provider_the_api_is_not_even_imported() -> None:
    code = """
import asyncio, sys
from rubric_env.engine import Case, JudgeEngine
from rubric_env.judges import LocalJudge
from rubric_env.rubric import RubricSpec
from rubric_env.settings import JudgeSettings
from rubric_env.submission import Submission
engine = JudgeEngine(JudgeSettings(backend="local"), LocalJudge())
spec = RubricSpec.parse([{"id": "a", "description": "says yes", "weight": 1}])
outcome = asyncio.run(engine.judge(Case(spec, Submission(reply="yes"))))
print(outcome.fields["judge_calls"], "opentelemetry" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
