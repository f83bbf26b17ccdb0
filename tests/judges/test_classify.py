"""SPEC 7: what an error reply is read for beside its kind, which test_fault_table checks shape by shape."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.judges._completion import read_completion
from rubric_env.judges._redact import redact
from rubric_env.judges._retry_after import retry_after
from rubric_env.judges.classify import Problem, classify_response
from rubric_env.scoring.faults import FaultKind

K = FaultKind


def outcome_of(status: int, body: Any) -> Problem:
    raw = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    outcome, _ = read_completion(status, {"content-type": "application/json"}, raw.encode(), ["test-key"])
    assert isinstance(outcome, Problem)
    return outcome


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "2"}, "", 2.0),
        ({"retry-after": "0.25"}, "", 0.25),
        ({"retry-after-ms": "1500", "retry-after": "2"}, "", 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, "", 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-1"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, "", 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, "", 0.02),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "20s"}, "", None),
        ({"retry-after": "3"}, "Please try again in 9s.", 3.0),
        ({}, "Please try again in 1.2s.", 1.2),
        ({}, "Please try again in 20ms. Visit …", 0.02),
        ({}, "try again in 1m30s", 90.0),
        ({}, "Please retry after 2 seconds.", 2.0),
        ({}, "please try again after 1 seconds", 1.0),
        ({}, 'Please retry in 33.1s. {"retryDelay": "33s"}', 33.1),
        ({}, '"retryDelay": "33s"', 33.0),
        ({}, "wait 5 minutes before", 300.0),
        ({}, "请在5秒后重试", 5.0),
        ({}, "请 2 分钟后再试", 120.0),
        ({}, "Please try again later.", None),
        ({}, "Limit 30000, Used 29000 in 60 s", None),
    ],
)
def test_section_7_the_wait_that_is_named(headers: dict[str, str], text: str, seconds: float | None) -> None:
    assert retry_after(headers, text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcDEF123456",
        "Bearer abcdefgh.ijk",
        "api_key=abcdef123456",
        '"api-key": "abcdef123456"',
        "eyJhbGciOi.eyJzdWIi.c2ln",
        "https://user:abcdef@host/",
        "AIzaSyAbcdefghijk",
        "test-key",
    ],
)
def test_section_7_details_hold_no_secret(secret: str) -> None:
    line = redact(f"before {secret} after\nnext", ["test-key"])
    assert "[redacted]" in line
    assert not any(word in line for word in ("abcdef", "abcDEF", "c2ln", "AbcdefghijK", "test-key"))
    assert line.startswith("before ")
    assert line.endswith("after next") or "host/" in line


def test_a_word_used_as_a_key_is_no_secret_inside_other_words() -> None:
    assert redact("the model local-lexical refused local.", ["local"]) == "the model local-lexical refused [redacted]."


def test_a_long_detail_is_cut_after_its_secrets_are_out() -> None:
    line = redact("x" * 295 + " test-key " + "y" * 10_000_000, ["test-key"])
    assert len(line) <= 300
    assert "test" not in line


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "code", "choices", "usage", "content", "finish_reason", "prompt_tokens", "x"]
            )
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(status=st.sampled_from([200, 201, 302, 400, 401, 404, 429, 500]), value=_json)
def test_no_json_body_breaks_the_reader(status: int, value: Any) -> None:
    read_completion(status, {}, json.dumps(value).encode(), ["k"])


@given(status=st.sampled_from([200, 400, 503]), body=st.binary(max_size=300))
def test_no_bytes_break_the_reader(status: int, body: bytes) -> None:
    outcome, tokens = read_completion(status, {"content-type": "text/html; charset=x-none"}, body, ["k"])
    assert tokens is None or tokens.cached <= tokens.input
    assert outcome is not None


def test_deep_nesting_is_a_fault_like_any_other() -> None:
    assert outcome_of(200, "[" * 100_000).fault.kind is K.SERVER


def test_an_error_is_never_read_from_what_a_validator_echoes() -> None:
    echo = {"detail": [{"loc": ["body"], "msg": "bad", "input": "insufficient_quota model not found"}]}
    assert classify_response(422, {}, json.dumps(echo).encode()).fault.kind is K.BAD_REQUEST


@pytest.mark.parametrize("piece", ["<script>", "<", "<title>", "<style ", "permission to access ", "&lt;", "访问"])
def test_no_page_takes_long_to_read(piece: str) -> None:
    start = time.process_time()
    classify_response(403, {"content-type": "text/html"}, ("<html>" + piece * 200_000).encode())
    assert time.process_time() - start < 5


@pytest.mark.parametrize("word", ["model ", "exceed ", "1 + ", "9 > ", "tokens ", "token请求", "schema "])
def test_no_message_takes_long_to_read(word: str) -> None:
    start = time.process_time()
    classify_response(400, {}, json.dumps({"error": {"message": word * 100_000}}).encode())
    assert time.process_time() - start < 5
