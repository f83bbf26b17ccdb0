"""SPEC 7: what was judged before the end counts, also where the caller has less time than JUDGE_DEADLINE gives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.conftest import Judging, case, rows
from tests.servers.endpoint import Endpoint


@pytest.mark.parametrize(("seconds", "deadline"), [(2.5, 60.0), (60.0, 2.5)])
async def test_the_shorter_time_counts(judging: Judging, endpoint: Endpoint, seconds: float, deadline: float) -> None:
    endpoint.rule(lambda call: "R03" in call.ids, "hang")
    engine = judging.engine(deadline=deadline, batch=2, resplit=False)
    outcome = await engine.judge(replace(case(rows(4)), seconds=seconds))
    assert outcome.judgement is not None
    assert sorted(outcome.judgement.verdicts) == ["R01", "R02"]
    assert "JUDGE_DEADLINE of 2.5 s reached" in outcome.exit_reason
