"""SPEC 4: structured output where the endpoint has it, found out once per endpoint and model, and remembered."""

from __future__ import annotations

import asyncio
import json

import pytest

from rubric_env.judges import CallFault, Reply, _ability
from rubric_env.scoring.faults import FaultKind
from tests.judges.conftest import MakeJudge, in_every_way
from tests.judges.prompts import MARKER, make_prompt
from tests.servers.endpoint import Call, Endpoint
from tests.servers.scenarios import SCENARIOS, Scenario, error

PROMPT = make_prompt("R01", "R02")

pytestmark = in_every_way


def formats(endpoint: Endpoint) -> list[str]:
    return [call.format for call in endpoint.calls]


async def test_section_4_the_schema_is_strict_and_names_the_ids(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    await make_chat().ask(PROMPT, timeout=60)
    asked = endpoint.calls[0].asked_format
    asked = asked.get("json_schema", asked)
    assert asked["strict"] is True
    assert asked["schema"] == PROMPT.schema


async def test_section_4_steps_down_to_plain_text_and_remembers_it(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.reject("json_schema", "json_object")
    first = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(first, Reply)
    assert formats(endpoint) == ["json_schema", "json_object", "text"]
    assert (first.mode, first.marker, first.usage.calls) == ("plain", MARKER, 3)
    assert MARKER in first.text
    assert endpoint.calls[-1].text.endswith(PROMPT.contract_plain)
    second = await make_chat().ask(PROMPT, timeout=60)
    assert second.usage.calls == 1


async def test_section_4_json_object_is_enough_where_schemas_are_refused(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.reject("json_schema", message="This response_format type is unavailable now")
    reply = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert (reply.mode, reply.marker) == ("json_object", None)
    assert endpoint.calls[-1].text.endswith(PROMPT.contract_json)


@pytest.mark.parametrize("status", [400, 422, 500, 501])
async def test_section_4_any_status_that_names_the_format_steps_down(
    endpoint: Endpoint, make_chat: MakeJudge, status: int
) -> None:
    endpoint.reject("json_schema", message="json_schema is not implemented", status=status)
    assert isinstance(await make_chat().ask(PROMPT, timeout=60), Reply)


async def test_section_4_a_spent_grammar_budget_leaves_json_object(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.grammar_budget = 2
    judge = make_chat()
    replies = [await judge.ask(make_prompt(name), timeout=60) for name in ("A", "B", "C", "D")]
    assert all(isinstance(reply, Reply) for reply in replies)
    assert [(reply.mode, reply.usage.calls) for reply in replies if isinstance(reply, Reply)] == [
        ("json_schema", 1),
        ("json_schema", 1),
        ("json_object", 3),
        ("json_object", 1),
    ]


async def test_section_4_one_schema_fits_all_blocks_once_ids_are_free(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    budget = error("budget", 400, "Too many distinct schemas: at most 20 grammars per minute are compiled")

    def names_ids(call: Call) -> bool:
        return "enum" in json.dumps(call.asked_format)

    endpoint.rule(names_ids, budget)
    judge = make_chat()
    replies = [await judge.ask(make_prompt(*ids), timeout=60) for ids in (("A1", "A2"), ("B1", "B2"), ("C1", "C2"))]
    assert all(isinstance(reply, Reply) and reply.mode == "json_schema_loose" for reply in replies)
    assert [reply.usage.calls for reply in replies] == [2, 1, 1]
    sent = {json.dumps(call.asked_format) for call in endpoint.calls[1:]}
    assert len(sent) == 1


async def test_section_4_concurrent_first_calls_pay_one_discovery(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ability, "GRACE", 30.0)
    endpoint.reject("json_schema", "json_object")
    endpoint.default = SCENARIOS["ok"].after(0.2)
    judges = [make_chat() for _ in range(4)]
    replies = await asyncio.gather(*(judge.ask(PROMPT, timeout=60) for judge in judges for _ in range(8)))
    assert all(isinstance(reply, Reply) for reply in replies)
    assert sum(reply.usage.calls for reply in replies) == len(endpoint.calls) == 32 + 2


async def test_section_4_first_calls_do_not_wait_for_a_slow_answer(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.default = SCENARIOS["hang"]
    judge = make_chat()
    asking = [asyncio.create_task(judge.ask(PROMPT, timeout=60)) for _ in range(8)]
    await asyncio.to_thread(endpoint.wait_in_flight, 8)
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)


async def test_section_4_a_first_call_that_fails_does_not_hold_up_the_others(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ability, "GRACE", 60.0)
    endpoint.script("hang")
    judge = make_chat()
    scout = asyncio.create_task(judge.ask(PROMPT, timeout=60))
    await asyncio.to_thread(endpoint.wait_in_flight, 1)
    other = asyncio.create_task(judge.ask(PROMPT, timeout=240))
    await asyncio.sleep(0.05)
    scout.cancel()
    assert isinstance(await other, Reply)
    assert endpoint.calls[1].at - endpoint.calls[0].at < 30


async def test_first_calls_do_not_spend_their_time_on_waiting_for_the_first_of_all(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.default = SCENARIOS["hang"]
    judge = make_chat()
    await asyncio.gather(*(judge.ask(PROMPT, timeout=2.0) for _ in range(4)))
    assert len(endpoint.calls) == 4


async def test_section_7_steps_down_within_the_one_timeout(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    refusal = error("no schemas", 400, "json_schema is not supported", type="invalid_request_error").after(1.0)
    endpoint.rule(lambda call: call.format == "json_schema", refusal)
    endpoint.default = SCENARIOS["hang"]
    answer = await make_chat().ask(PROMPT, timeout=2.5)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.TIMEOUT
    assert (answer.usage.calls, answer.seconds < 3.3) == (2, True), "two timeouts are 3.5 s"


async def test_a_complaint_that_plain_text_does_not_cure_is_not_remembered(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.rule(lambda call: "poison" in call.text, error("echo", 400, "bad input: response_format poison"))
    judge = make_chat()
    answer = await judge.ask(make_prompt("R01", evidence="poison"), timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.BAD_REQUEST
    reply = await judge.ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert reply.mode == "json_schema"


async def test_section_4_empty_structured_output_is_asked_again_in_plain_text(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    endpoint.rule(lambda call: call.format != "text", "empty")
    judge = make_chat()
    replies = [await judge.ask(PROMPT, timeout=60) for _ in range(4)]
    assert all(isinstance(reply, Reply) and reply.mode == "plain" for reply in replies)
    assert [reply.usage.calls for reply in replies] == [2, 2, 1, 1], "remembered once it repeats"


async def test_section_7_an_answer_that_stays_empty_is_a_fault(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.default = SCENARIOS["empty"]
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.EMPTY
    assert answer.usage.calls == 2
    assert answer.usage.input_tokens > 0, "an empty answer is paid for"
    endpoint.default = SCENARIOS["ok"]
    reply = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert reply.mode == "json_schema"


async def test_thinking_that_used_up_the_budget_is_not_asked_again(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.default = SCENARIOS["thought_only"]
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert (answer.fault.kind, answer.usage.calls) == (FaultKind.EMPTY, 1)
    assert "JUDGE_MAX_TOKENS" in answer.fault.detail


async def test_other_endpoints_and_models_find_out_for_themselves(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.reject("json_schema")
    await make_chat().ask(PROMPT, timeout=60)
    before = len(endpoint.calls)
    await make_chat(model="another").ask(PROMPT, timeout=60)
    assert formats(endpoint)[before:] == ["json_schema", "json_object"]


async def test_a_judge_that_ignores_the_format_is_left_to_the_parser(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(Scenario("prose", content='{"error": "the report has an error in line 3"}'))
    reply = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert reply.text.startswith('{"error"'), "words that a model was paid for are never read as the endpoint's"
