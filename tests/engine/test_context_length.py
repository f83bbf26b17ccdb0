"""SPEC 7, 8: a question that is too long for the endpoint is asked again with less evidence, and the cut is said."""

from __future__ import annotations

import asyncio

import pytest

from rubric_env.engine import Journal
from rubric_env.judges import CallFault
from rubric_env.scoring.faults import Fault, FaultKind
from tests.engine.conftest import Judging, case, faults, rows
from tests.servers.endpoint import Call
from tests.servers.scenarios import error

LONG = "\n\n".join(f"Paragraph {n} says that the plant in Lyon made {n} units of the part." for n in range(2000))
LIMIT = 8000
"""Tokens, of four characters each."""


def too_long(call: Call) -> bool:
    return len(call.text) > 4 * LIMIT


def refusal(words: str) -> object:
    return error("too long", 400, words, code="context_length_exceeded")


NAMED = f"This model's maximum context length is {LIMIT} tokens. Please reduce the length of the messages."


@pytest.mark.parametrize("words", [NAMED, "The input is too long."])
async def test_section_7_evidence_is_shrunk_and_the_call_repeated(judging: Judging, words: str) -> None:
    judging.endpoint.rule(too_long, refusal(words))
    outcome = await judging(rows(12), LONG, concurrency=3)
    assert (outcome.reward, outcome.fields["judge_coverage"]) == (1.0, 1.0)
    assert outcome.fields["judge_evidence_cut"] == 1
    answered = [call for call in judging.endpoint.calls if call.scenario == "ok"]
    assert sorted(call.ids for call in answered) == [tuple(f"R{n:02}" for n in range(k, k + 4)) for k in (1, 5, 9)]
    assert all("Not shown of" in call.text and len(call.text) > 2 * LIMIT for call in answered)


async def test_blocks_that_were_refused_together_shrink_the_evidence_once(judging: Judging) -> None:
    judging.endpoint.rule(too_long, refusal(NAMED).after(0.5))
    await judging(rows(12), LONG, concurrency=3)
    shared = {call.text.partition("# Rows")[0] for call in judging.endpoint.calls}
    assert len(shared) == 2


async def test_a_block_whose_turn_comes_while_the_evidence_is_shrunk_waits_for_it(judging: Judging) -> None:
    judging.endpoint.rule(too_long, refusal(NAMED))
    outcome = await judging(rows(24), LONG, concurrency=1)
    assert (outcome.reward, len(judging.endpoint.calls)) == (1.0, 7)


async def test_a_refusal_that_no_smaller_evidence_mends_is_context_length_and_the_policys_to_answer_for(
    judging: Judging,
) -> None:
    judging.endpoint.default = refusal(NAMED)
    outcome = await judging(rows(2), LONG, max_tries=2, resplit=False)
    assert set(faults(outcome).values()) == {"context_length"}
    assert (outcome.scored, outcome.fields["judge_fault_submission"]) == (False, 2)
    assert len(judging.endpoint.calls) < 12


async def test_a_shrunk_rollout_is_resumed_under_what_its_verdicts_were_given_on(judging: Judging) -> None:
    judging.endpoint.rule(too_long, refusal(NAMED))
    journal = Journal()
    for calls in (2, 3):
        outcome = await judging.engine(reuse="run", journal_in=journal).judge(case(rows(4), LONG))
        assert outcome.reward == 1.0
        assert len(judging.endpoint.calls) == calls


async def test_equal_rollouts_share_what_was_judged_on_shrunk_evidence(judging: Judging) -> None:
    judging.endpoint.rule(too_long, refusal(NAMED))
    engine = judging.engine(reuse="group", concurrency=1)
    outcomes = await asyncio.gather(*(engine.judge(case(rows(12), LONG, group="g")) for _ in range(3)))
    assert [outcome.reward for outcome in outcomes] == [1.0] * 3
    assert sum(call.scenario == "ok" for call in judging.endpoint.calls) == 3


class Refusing:
    """A judge that takes nothing, however short."""

    model = identity = "refusing"

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, _: object, *, timeout: float) -> CallFault:
        self.asked += 1
        return CallFault(Fault(FaultKind.CONTEXT_LENGTH, "too long"), context_limit=1)

    async def aclose(self) -> None:
        pass


async def test_shrinking_ends(judging: Judging) -> None:
    judge = Refusing()
    outcome = await judging.engine(judge=judge, max_tries=1, resplit=False).judge(case(rows(1), LONG))
    assert set(faults(outcome).values()) == {"context_length"}
    assert judge.asked < 20
