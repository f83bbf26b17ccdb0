"""SPEC 7: limits are learned from headers where these are sent."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from rubric_env.judges import CallFault, RateHints, Reply
from rubric_env.judges._hints import rate_hints
from tests.judges.conftest import MakeJudge, in_every_way
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario, error

PROMPT = make_prompt("R01")

OPENAI = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-reset-requests": "120ms",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-remaining-tokens": "0",
    "x-ratelimit-reset-tokens": "1m0s",
}


@pytest.mark.parametrize(
    ("headers", "hints"),
    [
        (OPENAI, RateHints(500, 499, 0.12, 30000, 0, 60)),
        ({"x-ratelimit-remaining-requests": "7"}, RateHints(None, 7)),
        ({"x-ratelimit-limit-requests": "200", "x-ratelimit-reset-requests": "7m12s"}, RateHints(None, None, 432)),
        ({"x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, RateHints(20, 0, 12)),
        ({"ratelimit-limit": "100", "ratelimit-remaining": "9", "ratelimit-reset": "5"}, RateHints(100, 9, 5)),
        (
            {"ratelimit-limit": "10, 10;w=1", "ratelimit-policy": "10;w=1", "ratelimit-remaining": "0"},
            RateHints(600, 0),
        ),
        (
            {"ratelimit": '"default";r=50;t=30', "ratelimit-policy": '"default";q=100;w=60'},
            RateHints(100, 50, 30),
        ),
        (
            {"ratelimit": '"day";r=50;t=30', "ratelimit-policy": '"day";q=10000;w=86400'},
            RateHints(None, 50, 30),
        ),
        ({"x-ratelimit-limit-requests": "unlimited", "x-ratelimit-remaining-requests": "-1"}, RateHints()),
        ({"retry-after": "3", "content-type": "application/json"}, None),
        ({}, None),
    ],
)
def test_section_7_limits_as_vendors_name_them(headers: dict[str, str], hints: RateHints | None) -> None:
    assert rate_hints(headers) == hints


@pytest.mark.parametrize("form", ["rfc3339", "seconds", "milliseconds"])
def test_a_reset_may_be_a_moment(form: str) -> None:
    moment = time.time() + 20
    reset = {
        "rfc3339": datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z"),
        "seconds": str(moment),
        "milliseconds": str(int(moment * 1000)),
    }[form]
    found = rate_hints(
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": reset,
            "anthropic-ratelimit-input-tokens-limit": "40000",
            "anthropic-ratelimit-input-tokens-remaining": "39000",
            "anthropic-ratelimit-tokens-limit": "48000",
        }
    )
    assert found is not None
    assert found.requests_reset == pytest.approx(20, abs=10)
    assert (found.requests_per_minute, found.requests_left) == (50, 0)
    assert (found.tokens_per_minute, found.tokens_left, found.tokens_reset) == (40000, 39000, None)


@pytest.mark.parametrize("reset", ["never", "T", "2026-13-45T99:00:00Z", "", "-5", "nan"])
def test_a_reset_that_cannot_be_read_is_none(reset: str) -> None:
    assert rate_hints({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": reset}) == RateHints(
        None, 0
    )


@in_every_way
async def test_section_7_limits_travel_with_every_answer(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(Scenario("told", headers=OPENAI), error("429", 429, "Too many requests", headers=OPENAI), "ok")
    judge = make_chat()
    answers = [await judge.ask(PROMPT, timeout=60) for _ in range(3)]
    assert [type(answer) for answer in answers] == [Reply, CallFault, Reply]
    assert [answer.hints for answer in answers] == [RateHints(500, 499, 0.12, 30000, 0, 60)] * 2 + [None]


@pytest.mark.parametrize(
    ("message", "crowded"),
    [
        ("Too many concurrent requests for this model", True),
        ("You have reached your max in-flight requests", True),
        ("当前并发请求数过多", True),
        ("Rate limit reached for requests per min", False),
    ],
)
async def test_section_7_too_many_calls_at_a_time_is_told_from_too_many_a_minute(
    endpoint: Endpoint, make_chat: MakeJudge, message: str, crowded: bool
) -> None:
    endpoint.script(error("429", 429, message))
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert (answer.hints is not None and answer.hints.crowded) is crowded


async def test_section_7_the_wait_of_a_503_is_passed_on_as_seconds_or_as_a_date(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    date = format_datetime(datetime.fromtimestamp(time.time() + 30, UTC), usegmt=True)
    for value, seconds, late in (("7", 7.0, 0.0), (date, 30.0, 15.0)):
        endpoint.script(error("503", 503, "overloaded", headers={"retry-after": value}))
        answer = await make_chat().ask(PROMPT, timeout=60)
        assert isinstance(answer, CallFault)
        assert answer.retry_after == pytest.approx(seconds, abs=late)


async def test_judges_share_a_quota_when_endpoint_model_and_key_are_the_same(make_chat: MakeJudge) -> None:
    from rubric_env.judges import resolve_credentials

    def quota(key: str = "secret-key-1", url: str = "http://127.0.0.1:9/v1", model: str = "m") -> str:
        return make_chat(resolve_credentials(key, url, environ={}), model=model).quota

    assert quota() == quota()
    assert len({quota(), quota("secret-key-2"), quota(url="http://127.0.0.1:8/v1"), quota(model="n")}) == 4
    assert "secret" not in quota()
