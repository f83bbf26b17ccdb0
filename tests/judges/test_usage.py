"""SPEC 7: tokens as the endpoint counts them, cached ones apart, and what they cost by list prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rubric_env.judges import CallFault, Reply, cost_usd, load_prices
from rubric_env.judges._completion import Tokens, read_tokens
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import SettingsError
from tests.judges.conftest import MakeJudge, in_every_way
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario

PROMPT = make_prompt("R01")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 3}, Tokens(10, 0, 3)),
        (
            {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
            Tokens(10, 8, 3),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": None}, Tokens(10, 0, 3)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "prompt_cache_hit_tokens": 6}, Tokens(10, 6, 3)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "cached_tokens": 4}, Tokens(10, 4, 3)),
        ({"prompt_tokens": 10, "completion_tokens": 3, "cache_read_input_tokens": 4}, Tokens(10, 4, 3)),
        ({"input_tokens": 10, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 4}}, Tokens(10, 4, 3)),
        (
            {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2},
            Tokens(16, 4, 3),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 99}},
            Tokens(10, 10, 0),
        ),
        ({"prompt_tokens": -1, "completion_tokens": True}, None),
        ({"prompt_tokens": "12", "completion_tokens": None}, None),
        ({}, None),
        (None, None),
        ("12", None),
    ],
)
def test_section_7_tokens_in_the_ways_vendors_count_them(usage: Any, tokens: Tokens | None) -> None:
    assert read_tokens(usage) == tokens


def test_cost_by_list_price() -> None:
    usage = Usage(1, input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)
    assert cost_usd("gpt-4.1", usage) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 8)
    assert cost_usd("no-such-model", usage) is None
    assert cost_usd("local-lexical", usage) == 0
    assert cost_usd("gpt-5.5", Usage(1, input_tokens=100_000)) == pytest.approx(0.5)
    assert cost_usd("gpt-5.5", Usage(1, input_tokens=300_000)) is None, "another tariff holds there"


def test_a_users_table_adds_to_the_packages(tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text(
        '[models]\n"mine" = { input = 1, output = 2 }\n"gpt-4.1" = { input = 9, cached = 0, output = 9 }\n'
    )
    prices = load_prices(table)
    usage = Usage(1, input_tokens=2_000_000, cached_tokens=1_000_000, output_tokens=1_000_000)
    assert cost_usd("mine", usage, prices) == pytest.approx(4)
    assert cost_usd("gpt-4.1", usage, prices) == pytest.approx(18)
    assert prices["gpt-4o"] == load_prices()["gpt-4o"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not toml", "cannot be read"),
        ("[other]", "no table"),
        ("[models]\nm = { input = 1 }", "'m' needs"),
        ("[models]\nm = 3", "'m' needs"),
        ("[models]\nm = { input = -1, output = 2 }", "input = -1"),
        ("[models]\nm = { input = nan, output = 2 }", "input = nan"),
        ("[models]\nm = { input = true, output = 2 }", "input = True"),
    ],
)
def test_a_price_table_that_cannot_be_used_is_refused(tmp_path: Path, text: str, words: str) -> None:
    table = tmp_path / "prices.toml"
    table.write_text(text)
    with pytest.raises(SettingsError, match=words) as refused:
        load_prices(table)
    assert str(table) in str(refused.value)


@in_every_way
async def test_section_7_usage_sums_over_every_request_of_a_call(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    counts = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 800}}
    endpoint.rule(lambda call: call.format == "json_schema", Scenario("empty", content="", usage=counts))
    endpoint.default = Scenario("ok", usage=counts)
    reply = await make_chat(model="gpt-4.1").ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    one = (200 * 2.0 + 800 * 0.5 + 100 * 8.0) / 1e6
    assert reply.usage == Usage(2, 2000, 1600, 200, pytest.approx(2 * one))


async def test_section_7_cost_is_unknown_as_soon_as_one_price_is(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    assert (await make_chat(model="who-knows").ask(PROMPT, timeout=60)).usage.cost_usd is None
    assert (await make_chat(model="local-x").ask(PROMPT, timeout=60)).usage.cost_usd == 0
    endpoint.script(Scenario("uncounted", usage={}))
    reply = await make_chat(model="gpt-4.1").ask(PROMPT, timeout=60)
    assert (reply.usage.input_tokens, reply.usage.cost_usd) == (0, None)


@in_every_way
async def test_section_7_what_an_answer_cost_that_never_came_is_not_known(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.script("hang", "empty")
    late = await make_chat(model="gpt-4.1").ask(PROMPT, timeout=1.5)
    assert isinstance(late, CallFault)
    assert (late.usage.calls, late.usage.cost_usd) == (1, None)
    counted = await make_chat(model="gpt-4.1").ask(PROMPT, timeout=60)
    assert counted.usage.cost_usd is not None


@in_every_way
async def test_a_refused_request_costs_nothing(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script("429")
    answer = await make_chat(model="who-knows").ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.usage == Usage(1, 0, 0, 0, 0.0)


async def test_prices_come_from_the_settings(endpoint: Endpoint, make_chat: MakeJudge, tmp_path: Path) -> None:
    table = tmp_path / "prices.toml"
    table.write_text('[models]\n"mine" = { input = 1.0, output = 1.0 }\n')
    reply = await make_chat(model="mine", prices=str(table)).ask(PROMPT, timeout=60)
    assert reply.usage.cost_usd == pytest.approx((reply.usage.input_tokens + reply.usage.output_tokens) / 1e6)
