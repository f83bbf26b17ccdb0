"""SPEC 7: the fault matrix that `benchmarks/faults.py` puts peers through; ours is exact or unscored, never wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rubric_env.engine import Breaker
from tests.engine.conftest import Judging, case, faults, rows
from tests.servers.endpoint import Call
from tests.servers.fault_matrix import ROWS, TROUBLES, Trouble

TRUTH = {"R02": False, "R07": False, "R12": False}
EXACT = 0.75


def strikes(trouble: Trouble) -> Callable[[Call], bool]:
    asked: set[tuple[str, ...]] = set()

    def fits(call: Call) -> bool:
        repeated = call.ids in asked
        asked.add(call.ids)
        return trouble.strikes([int(name.removeprefix("R")) for name in call.ids], repeated)

    return fits


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
async def test_section_7_every_trouble_ends_in_the_exact_score_or_in_none(judging: Judging, trouble: Trouble) -> None:
    judging.endpoint.truth = TRUTH
    judging.endpoint.rule(strikes(trouble), trouble.scenario)
    breaker = Breaker(3, probes=(0.01, 0.02, 0.04))
    short = {"timeout": {"per_timeout": 1.0}, "rate_limit": {"deadline": 3.0}}
    outcome = await judging.engine(breaker=breaker, **short.get(str(trouble.fault), {})).judge(case(rows(ROWS)))
    fewest, most = trouble.calls
    assert fewest <= len(judging.endpoint.calls) <= most
    if trouble.fault is None:
        assert (outcome.reward, outcome.fields["judge_coverage"], outcome.exit_reason) == (EXACT, 1.0, "")
    else:
        assert (outcome.reward, outcome.scored) == (None, False)
        assert set(faults(outcome).values()) <= {trouble.fault, "breaker_open", "deadline"}
        assert trouble.fault in outcome.exit_reason
