"""Group comparison: several attempts an episode, each with its advantage; and no trace counts that was not scored."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import pytest

from tests.servers.endpoint import Endpoint
from tests.v1.conftest import Run

GROUP = {"id": "rubric_group"}


@pytest.fixture
def various(endpoint: Endpoint, policy: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt replies otherwise; the judge scores them 1, 0.75, 0.25, 0 and then again."""
    numbers = itertools.count()
    monkeypatch.setattr(
        Endpoint, "prose", property(lambda self: f"Reply {next(numbers)}.", lambda *_: None), raising=False
    )
    scores = [{}, {"R2": False}, {"R1": False}, {"R1": False, "R2": False}]
    endpoint.truth = lambda call: scores[next(n for n in range(40) if f"Reply {n}." in call.text) % 4]


@pytest.mark.parametrize(
    ("kind", "expected"), [("mean", [0.5, 0.25, -0.25, -0.5]), ("rloo", [2 / 3, 1 / 3, -1 / 3, -2 / 3])]
)
def test_section_9_advantages_of_a_group(various: None, run: Run, kind: str, expected: list[float]) -> None:
    [episode] = run(env={**GROUP, "attempts": 4, "advantage": kind})
    assert episode.ok
    assert [t.reward for t in episode.traces] == [1, 0.75, 0.25, 0]
    assert [t.metrics["judge_advantage"] for t in episode.traces] == pytest.approx(expected)
    assert {t.metrics["judge_flat_group"] for t in episode.traces} == {0}


def test_an_unscored_attempt_stays_out_of_the_baseline(various: None, run: Run, endpoint: Endpoint) -> None:
    endpoint.rule(lambda call: "Reply 1." in call.text, "401")
    [episode] = run(env={**GROUP, "attempts": 4})
    assert not episode.ok
    assert [t.ok for t in episode.traces] == [True, False, True, True]
    rewards = [1, 0.25, 0]
    mean = sum(rewards) / 3
    assert [t.metrics["judge_advantage"] for t in episode.traces] == pytest.approx([1 - mean, 0, 0.25 - mean, -mean])


def test_equal_attempts_are_a_flat_group(run: Run) -> None:
    [episode] = run(env={**GROUP, "attempts": 2})
    assert [t.metrics["judge_flat_group"] for t in episode.traces] == [1, 1]
    assert [t.metrics["judge_advantage"] for t in episode.traces] == [0, 0]


def test_a_reward_that_is_missing_fails_the_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ended the scoring: here a user's own reward that outlasts the scoring time-out, beside our judge."""
    plugged = {"slow": {"fn": "slow_reward:never"}}
    [episode] = run(task={"rewards": plugged}, agent={"timeout": {"scoring": 1}})
    assert not episode.ok and not episode.traces[0].ok


def test_without_verifiers_the_rest_works_and_the_judge_says_what_it_needs() -> None:
    code = (
        "import sys; sys.modules['verifiers'] = None\n"
        "import rubric_env; rubric_env.JudgeSettings\n"
        "try: rubric_env.HarborJudge\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("HarborJudge needs verifiers>=0.3.1,<0.5: pip install 'rubric-env[verifiers-v1]'")
    assert done.stdout.count("\n") == 1, done.stderr


def test_an_earlier_v1_is_named_in_one_line() -> None:
    code = (
        "import sys, types\n"
        "sys.modules['verifiers'] = old = types.ModuleType('verifiers')\n"
        "sys.modules['verifiers.v1'] = old.v1 = types.ModuleType('verifiers.v1')\n"
        "import rubric_env\n"
        "try: rubric_env.HarborJudge\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("HarborJudge needs verifiers>=0.3.1,<0.5")
    assert "has no attribute 'Judge'" in done.stdout and done.stdout.count("\n") == 1, done.stderr


def test_the_package_imports_verifiers_lazily() -> None:
    code = "import sys, rubric_env, rubric_env.harbor; print([m for m in sys.modules if m.startswith('verifiers')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_each_plugin_module_exports_one_of_its_kind() -> None:
    import rubric_group
    import rubric_judge
    import rubric_tasks
    from verifiers.v1.utils import loaders

    kinds: dict[Any, Any] = {
        rubric_judge: loaders.judge_class("rubric-judge"),
        rubric_tasks: loaders.taskset_class("rubric-tasks"),
        rubric_group: loaders.environment_class("", "rubric-group"),
    }
    for module, found in kinds.items():
        assert found.__name__ in module.__all__
