"""SPEC 7, fleet: an env server's workers share limits through JUDGE_LIMITER, and verdicts through JUDGE_JOURNAL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.classic.vf_eval import Saved, plays, says, vf_eval
from tests.servers.endpoint import Endpoint
from tests.servers.redis import RedisServer

pytest.importorskip("redis", reason="the redis extra is not installed")

REPLIES = [f"reply {'BAD' if number % 3 else 'GOOD'}, number {number}." for number in range(12)]
CASES = {"cases": {"many": {"kind": "single-turn", "questions": 18}}}
PER_SECOND = 2


def test_two_workers_pay_once_within_one_limit_and_a_later_run_pays_nothing(
    policy: Endpoint, judge: Endpoint, tmp_path: Path
) -> None:
    for reply in REPLIES * 2:
        plays(policy, says(reply), when="Case many.", times=3)  # 36 rollouts a run

    def run(name: str, *options: str) -> Saved:
        with RedisServer() as redis:
            shared = {"JUDGE_LIMITER": redis.url, "JUDGE_JOURNAL": str(tmp_path / "journal"), "JUDGE_REUSE": "always"}
            limit = {"JUDGE_REQUESTS_PER_MINUTE": str(60 * PER_SECOND)}
            return vf_eval(tmp_path / name, "every-kind", CASES, policy, judge, "-r", "2", *options, **shared, **limit)

    first = run("first", "-w", "2")
    paid = len(judge.calls)
    arrived = [call.at for call in judge.calls]
    later = run("later", "--disable-env-server")
    for saved in (first, later):
        assert len(saved.rows) == 36
        for row in saved.rows:
            assert (row["error"], row["judge_scored"], row["judge_limiter_fallback"]) == (None, 1.0, 0.0)
            assert row["reward"] == float("GOOD" in str(row["completion"]))
            assert row["advantage"] == row["judge_advantage"], "by whichever way it left its worker"
            assert [(s["reward"], s["advantage"]) for s in row["trajectory"]] == [(row["reward"], row["advantage"])]
        for example in {row["example_id"] for row in saved.rows}:
            group = [row for row in saved.rows if row["example_id"] == example]
            mean = sum(row["reward"] for row in group) / 2
            assert [row["advantage"] for row in group] == pytest.approx([row["reward"] - mean for row in group])
    assert paid == len(REPLIES), "equal submissions are asked once, whichever worker has them"
    assert sum(row["judge_calls"] for row in first.rows) == paid
    parts = [sum(map(int, re.findall(r"reward over (\d+) scored rollouts", log))) for log in first.logs]
    assert sum(parts) == 36 and len(parts) == 2 and all(parts), "each worker judged its part"
    busiest = max(sum(at <= other < at + 2 for other in arrived) for at in arrived)
    assert busiest <= 2 * PER_SECOND + 2, "two workers with a limit each would send twice as many"

    assert len(judge.calls) == paid, "the later run asks nothing"
    assert {(row["judge_calls"], row["judge_reused"]) for row in later.rows} == {(0.0, 2.0)}
