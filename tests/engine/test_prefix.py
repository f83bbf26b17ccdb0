"""SPEC 4: blocks share their prefix; where the endpoint caches it, one block leads and the others find it warm."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.conftest import Judging, case, rows
from tests.servers.scenarios import SCENARIOS

LONG = "\n\n".join(f"Paragraph {n} says that the plant in Lyon made {n} units of the part." for n in range(200))
CACHED = replace(
    SCENARIOS["ok"].after(0.5),
    usage={"prompt_tokens": 5000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 4096}},
)


async def in_flight(judging: Judging, reply: str) -> list[int]:
    engine = judging.engine(concurrency=3)
    await engine.judge(case(rows(4), LONG))
    before = len(judging.endpoint.calls)
    await engine.judge(case(rows(12), reply))
    return [call.in_flight for call in judging.endpoint.calls[before:]]


async def test_section_4_the_first_block_leads_where_the_endpoint_caches(judging: Judging) -> None:
    judging.endpoint.default = CACHED
    assert await in_flight(judging, LONG) == [1, 1, 2]


async def test_no_block_waits_for_a_cache_that_nobody_saw(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.5)
    assert await in_flight(judging, LONG) == [1, 2, 3]


async def test_no_block_waits_for_a_prefix_too_short_to_be_cached(judging: Judging) -> None:
    judging.endpoint.default = CACHED
    assert await in_flight(judging, "Short.") == [1, 2, 3]


async def test_a_lead_that_fails_holds_nobody_up(judging: Judging) -> None:
    judging.endpoint.default = CACHED
    engine = judging.engine(concurrency=3, max_tries=1, resplit=False)
    await engine.judge(case(rows(5), LONG))
    judging.endpoint.rule(lambda call: call.ids == ("R01", "R02", "R03", "R04"), "500")
    outcome = await engine.judge(case(rows(12), LONG))
    assert outcome.fields["judge_unjudged"] == 4
    assert [call.in_flight for call in judging.endpoint.calls[2:]] == [1, 1, 2]
