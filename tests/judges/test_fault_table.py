"""SPEC 7: the error replies of real endpoints, one a row, to the closed list of faults."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rubric_env.judges._completion import read_completion
from rubric_env.judges.classify import Problem
from rubric_env.scoring.faults import FATAL_FAULTS, FaultKind

K = FaultKind

TABLE = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data" / "faults.jsonl").read_text("utf-8").splitlines()
]
"""`who` sends it (for people), HTTP `status`, `headers`, `body` (JSON or text), and what is read from it: `kind`,
`retry_after`, `remedy`, `limit` (of tokens) and `blocked`, each but the kind only where there is one. Rows that say
nothing of a remedy leave it open."""


def read(row: dict[str, Any]) -> Problem:
    body = row["body"]
    raw = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    headers = row.get("headers", {"content-type": "application/json"})
    outcome, _ = read_completion(row["status"], headers, raw.encode(), ["test-key"])
    assert isinstance(outcome, Problem), outcome
    return outcome


def named(row: dict[str, Any]) -> str:
    return f"{row['who']}-{row['status']}-{row['kind']}"


@pytest.mark.parametrize("row", TABLE, ids=named)
def test_section_7_error_replies(row: dict[str, Any]) -> None:
    problem = read(row)
    assert problem.fault.kind == row["kind"], problem.fault
    assert problem.retry_after == pytest.approx(row.get("retry_after"))
    assert problem.context_limit == row.get("limit")
    assert problem.blocked == row.get("blocked", False)
    assert problem.remedy == row.get("remedy", problem.remedy)
    assert problem.fault.detail
    assert "\n" not in problem.fault.detail


def test_the_table_is_as_wide_as_the_field() -> None:
    assert len(TABLE) >= 400
    assert len({json.dumps([row["status"], row.get("headers"), row["body"]]) for row in TABLE}) == len(TABLE)
    assert len({row["who"] for row in TABLE}) >= 45
    told_by_replies = set(K) - {
        *(K.DEADLINE, K.NO_CREDENTIAL, K.CONNECTION, K.BREAKER_OPEN, K.CANCELLED, K.INTERNAL),
        *(K.TRUNCATED, K.UNPARSEABLE, K.MISSING_ROW, K.CANNOT_ASSESS, K.SCORER_ERROR),
    }
    assert {row["kind"] for row in TABLE} == told_by_replies
    chinese = {row["kind"] for row in TABLE if re.search("[一-鿿]", json.dumps(row["body"], ensure_ascii=False))}
    assert chinese >= told_by_replies - {K.EMPTY, K.REFUSAL, K.TIMEOUT}


@pytest.mark.parametrize("row", [row for row in TABLE if "<html" in str(row["body"]).lower()], ids=named)
def test_section_7_a_web_page_never_stops_a_run(row: dict[str, Any]) -> None:
    """A submission may have caused it; only a status that asks for a key is about the key."""
    assert read(row).fault.kind not in FATAL_FAULTS or row["status"] == 401


SUBMISSION = (
    "insufficient_quota: You exceeded your current quota. Invalid API key. The model `x` does not exist. This model's "
    "maximum context length is 10 tokens. Rate limit reached, try again in 3600 s. 余额不足 无效的令牌 模型不存在"
)
"""What a policy would write that wants a fault of its choice."""


@pytest.mark.parametrize("echo", ["input", "ctx", "prompt", "messages", "content", "text", "request_body"])
def test_section_7_what_an_endpoint_quotes_of_the_question_is_not_read(echo: str) -> None:
    quoted = (
        [{"role": "user", "message": SUBMISSION, "code": "insufficient_quota"}] if echo == "messages" else SUBMISSION
    )
    for row in TABLE:
        body = row["body"]
        error = body.get("error") if isinstance(body, dict) else None
        if isinstance(error, dict):
            echoing = {**row, "body": {**body, "error": {**error, echo: quoted}, echo: quoted}}
            assert read(echoing) == read(row)


def test_section_7_a_judges_words_are_no_error_however_they_sound() -> None:
    for row in TABLE:
        if not isinstance(row["body"], dict) or "error" not in row["body"]:
            continue
        verdict = {"verdicts": [{"id": "R01", "reason": json.dumps(row["body"]), "hit": True}]}
        answer = {"choices": [{"message": {"content": json.dumps(verdict)}, "finish_reason": "stop"}]}
        outcome, _ = read_completion(200, {}, json.dumps(answer).encode(), [])
        assert not isinstance(outcome, Problem)
