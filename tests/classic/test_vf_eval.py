"""SPEC 9 through the command itself: every kind of environment, failures with `--max-retries`, and a resumed run.

In one process, which is quicker; test_workers_share.py has the env server.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.classic.vf_eval import case_of, plays, says, uses, vf_eval
from tests.servers.endpoint import Endpoint

KINDS = {"single-turn": 1, "multi-turn": 2, "tools": 2, "stateful-tools": 2}
"""Turns that a rollout of each takes."""


def good_then_bad(policy: Endpoint, kind: str, when: str) -> None:
    """Of two rollouts one is judged 1.0 and the other 0.0."""
    for quality, times in (("GOOD", 1), ("BAD", None)):
        turns = {
            "single-turn": [says(f"reply {quality}")],
            "multi-turn": [says("Let me see."), says(f"reply {quality}")],
            "tools": [uses("look_up", {"key": "total"}), says(f"reply {quality}")],
            "stateful-tools": [uses("deliver", {"text": f"reply {quality}"}), says("Done.")],
        }
        plays(policy, *turns[kind], when=when, times=times)


@pytest.mark.parametrize("options", [(), ("-i",)], ids=["scored-by-group", "scored-one-by-one"])
def test_each_kind_of_environment_gets_reward_metrics_advantage_and_steps(
    policy: Endpoint, judge: Endpoint, tmp_path: Path, options: tuple[str, ...]
) -> None:
    for kind in KINDS:
        good_then_bad(policy, kind, f"Case {kind}.")
    cases = {"cases": {kind: {"kind": kind} for kind in KINDS}}
    run = vf_eval(tmp_path, "every-kind", cases, policy, judge, "-r", "2", "--disable-env-server", *options)
    assert Counter((case_of(row), row["reward"]) for row in run.rows) == {(k, r): 1 for k in KINDS for r in (1.0, 0.0)}
    for row in run.rows:
        kind = case_of(row)
        advantage = 0.0 if "-i" in options else row["reward"] - 0.5
        assert row["error"] is None
        assert row["advantage"] == row["metrics"]["judge_advantage"] == advantage
        assert [(s["reward"], s["advantage"]) for s in row["trajectory"]] == [(row["reward"], advantage)] * KINDS[kind]
        assert row["metrics"]["judge_scored"] == row["metrics"]["judge_coverage"] == row["judge_scored"] == 1.0
        assert row["metrics"]["judge_input_tokens"] > 0
        assert row["judge_result"]["task_score"] == row["reward"]
        files = ["output/memo.md"] if kind == "stateful-tools" else []
        assert row["judge_result"]["details"]["delivery"]["files"] == files
        assert row["metrics"]["delivery_from_chat"] == float(not files)
    assert run.metadata["avg_reward"] == 0.5
    assert run.metadata["avg_metrics"]["judge_scored"] == 1.0
    assert run.said.count("mean reward over 2 scored rollouts 0.5000; unscored 0") == len(KINDS), "each rubric, once"
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert b"judge-secret" not in b"".join([run.said.encode(), *written])


CASES: dict[str, Any] = {
    "mixed": {"kind": "single-turn"},
    "lost": {"kind": "single-turn"},
    "flaky": {"kind": "single-turn", "settings": {"on_unscored": "regenerate", "reuse": "off", "concurrency": 1}},
    "dies": {"kind": "dies"},
}


def test_failures_are_marked_or_made_again_and_a_resumed_run_makes_what_is_missing(
    policy: Endpoint, judge: Endpoint, tmp_path: Path
) -> None:
    good_then_bad(policy, "single-turn", "Case mixed.")
    plays(policy, says("reply LOST"), when="Case lost.")
    plays(policy, says("reply FLAKY"), when="Case flaky.")
    judge.rule(lambda call: "reply FLAKY" in call.text, "500", times=1)
    options = ("-r", "2", "--max-retries", "1", "--disable-env-server")
    run = vf_eval(tmp_path, "every-kind", {"cases": CASES}, policy, judge, *options)

    found = {name: [row for row in run.rows if case_of(row) == name] for name in CASES}
    assert {name: sorted(row["reward"] for row in rows) for name, rows in found.items()} == {
        **{"mixed": [0.0, 1.0], "flaky": [1.0, 1.0]},
        **{"lost": [0.0, 0.0], "dies": [0.0, 0.0]},
    }
    asked = Counter(call.texts[-1].split()[1] for call in policy.calls)
    assert asked == {"mixed.": 2, "lost.": 2, "flaky.": 4}, "a group is made again where that was asked for"
    for name, error in (("lost", "HarborJudgeError"), ("dies", "the sandbox died")):
        for row in found[name]:
            assert error in str(row["error"])
            assert (row["judge_scored"], row["advantage"], row["judge_advantage"]) == (0.0, 0.0, 0.0)
    assert {row["judge_result"]["exit_code"] for row in found["lost"]} == {"judge:api_error"}
    assert {row["error"] for name in ("mixed", "flaky") for row in found[name]} == {None}

    average = run.metadata["avg_metrics"]
    assert run.metadata["avg_error"] == 0.5
    assert run.metadata["avg_reward"] / average["judge_scored"] == pytest.approx(0.75), "the mean over scored rollouts"
    for line in ("0.5000; unscored 0", "unscored 2 (2 auth), which vf-eval averages as 0", "2 failed before judging"):
        assert line in run.said

    [cut] = [row for row in found["mixed"] if row["reward"] == 0.0]
    kept = [line for line, row in zip(run.results.read_text("utf-8").splitlines(), run.rows, strict=True) if row != cut]
    run.results.write_text("".join(f"{line}\n" for line in kept), "utf-8")
    before = (len(policy.calls), len(judge.calls))
    again = vf_eval(
        tmp_path, "every-kind", {"cases": CASES}, policy, judge, *options, "--resume", str(run.results.parent)
    )
    assert (len(policy.calls), len(judge.calls)) == (before[0] + 1, before[1] + 1)
    [made] = [row for row in again.rows if case_of(row) == "mixed" and row["reward"] == 0.0]
    assert (made["error"], made["judge_scored"], made["advantage"]) == (None, 1.0, 0.0), "a group of one"
    assert sorted(map(str, (row for row in again.rows if row != made))) == sorted(
        map(str, (row for row in run.rows if row != cut))
    )
