"""A free question to the judge (what `HarborRubric.judge` asks), in its turn and with the tries of a block."""

from __future__ import annotations

import asyncio

import pytest

from rubric_env.engine import Backoff, JudgeEngine
from rubric_env.judges import JudgeCallError, LocalJudge
from rubric_env.settings import JudgeSettings
from tests.engine.conftest import Judging
from tests.servers.scenarios import SCENARIOS

QUESTION = [{"role": "user", "content": "Is it right?"}]


async def test_the_answer_is_the_judges_text(judging: Judging) -> None:
    judging.endpoint.prose = "yes"
    assert await judging.engine().complete(QUESTION) == "yes"
    assert judging.endpoint.calls[0].text == "Is it right?"
    assert judging.events[0].usage.calls == 1


async def test_failures_are_asked_again(judging: Judging) -> None:
    judging.endpoint.script("503", "429_bare", "empty")
    assert await judging.engine().complete(QUESTION) == "Hello."
    assert len(judging.endpoint.calls) == 4


@pytest.mark.parametrize(("scenario", "kind"), [("401", "auth"), ("503", "server")])
async def test_a_judge_that_does_not_answer_raises_with_its_fault(judging: Judging, scenario: str, kind: str) -> None:
    judging.endpoint.default = SCENARIOS[scenario]
    with pytest.raises(JudgeCallError) as raised:
        await judging.engine(max_tries=2).complete(QUESTION)
    assert raised.value.fault.kind == kind


async def test_half_an_answer_is_never_taken_for_the_whole(judging: Judging) -> None:
    judging.endpoint.prose = "No criterion is met. On second thoughts, all of them are met."
    judging.endpoint.script("stall", "half")
    answer = await judging.engine(stream="on", per_timeout=3.0).complete(QUESTION)
    assert answer == judging.endpoint.prose
    assert [event.fault and str(event.fault.kind) for event in judging.events] == ["timeout", "connection", None]


async def test_the_deadline_holds(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["hang"]
    with pytest.raises(JudgeCallError, match=r"JUDGE_DEADLINE of 0\.2 s"):
        await judging.engine(deadline=0.2).complete(QUESTION)


async def test_questions_share_the_limiter(judging: Judging) -> None:
    judging.endpoint.default = SCENARIOS["ok"].after(0.3)
    engine = judging.engine(max_in_flight=2)
    await asyncio.gather(*(engine.complete(QUESTION) for _ in range(6)))
    assert judging.endpoint.max_in_flight == 2


async def test_a_judge_without_free_answers_says_so() -> None:
    engine = JudgeEngine(JudgeSettings(backend="local"), LocalJudge(), backoff=Backoff(unit=0.01))
    with pytest.raises(JudgeCallError, match="local-lexical answers rubric rows only"):
        await engine.complete(QUESTION)


async def test_reward_funcs_get_the_judges_own_client(judging: Judging) -> None:
    client = judging.engine().judge_client()
    reply = await client.chat.completions.create(model="scripted", messages=QUESTION)
    assert reply.choices[0].message.content == "Hello."
    judge = LocalJudge()
    assert JudgeEngine(JudgeSettings(backend="local"), judge).judge_client() is judge
