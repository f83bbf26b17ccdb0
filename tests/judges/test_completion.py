"""What the body of a chat completion means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric_env.judges._completion import Answer, read_completion
from rubric_env.judges.classify import Problem
from rubric_env.scoring.faults import FaultKind

K = FaultKind


def read(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Answer | Problem:
    body = {"choices": [{"message": message, "finish_reason": finish}], **more}
    return read_completion(200, {}, json.dumps(body).encode(), [])[0]


@pytest.mark.parametrize(
    ("message", "finish", "text", "truncated"),
    [
        ({"content": "yes"}, "stop", "yes", False),
        ({"content": "yes"}, None, "yes", False),
        ({"content": "ye"}, "length", "ye", True),
        ({"content": "ye"}, "MAX_TOKENS", "ye", True),
        ({"content": [{"type": "text", "text": "y"}, {"type": "image"}, {"text": "es"}]}, "stop", "yes", False),
        ({"content": "yes", "refusal": "I would rather not"}, "stop", "yes", False),
        (
            {"content": "I cannot help with row R01: hit false."},
            "stop",
            "I cannot help with row R01: hit false.",
            False,
        ),
        ({"content": " \n yes"}, "stop", " \n yes", False),
    ],
)
def test_a_text_is_an_answer(message: dict[str, Any], finish: str | None, text: str, truncated: bool) -> None:
    assert read(message, finish) == Answer(text, truncated)


@pytest.mark.parametrize(
    ("message", "finish", "kind", "words"),
    [
        ({"content": ""}, "stop", K.EMPTY, "no text"),
        ({"content": " \n"}, "stop", K.EMPTY, "no text"),
        ({}, "stop", K.EMPTY, "no text"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls", K.EMPTY, "a tool call"),
        ({"content": "", "reasoning_content": "hm"}, "stop", K.EMPTY, "only thinking"),
        ({"content": "", "reasoning_content": "hm"}, "length", K.EMPTY, "used it up"),
        ({"content": None, "refusal": "No."}, "stop", K.REFUSAL, "No."),
        ({"content": "half a"}, "content_filter", K.CONTENT_FILTER, "filter"),
        ({"content": ""}, "sensitive", K.CONTENT_FILTER, "filter"),
        ({"content": "half a"}, "network_error", K.SERVER, "broke"),
    ],
)
def test_no_text_is_a_fault_that_says_why(message: dict[str, Any], finish: str, kind: FaultKind, words: str) -> None:
    outcome = read(message, finish)
    assert isinstance(outcome, Problem)
    assert outcome.fault.kind is kind
    assert words in outcome.fault.detail


LIMITED = '{"error": {"message": "Too many requests"}}'


def test_section_7_an_error_object_as_content_is_the_endpoints_only_when_no_token_was_made() -> None:
    for usage in ({}, {"usage": {"prompt_tokens": 9, "completion_tokens": 0}}):
        outcome = read({"content": LIMITED}, **usage)
        assert isinstance(outcome, Problem)
        assert outcome.fault.kind is K.RATE_LIMIT
    paid = {"usage": {"prompt_tokens": 9, "completion_tokens": 12}}
    assert read({"content": LIMITED}, **paid) == Answer(LIMITED, False), "a policy may have a judge say this"
    assert isinstance(read({"content": f"The log says {LIMITED}"}), Answer)
    assert isinstance(read({"content": "Too many requests"}), Answer)
