"""The environment that the packages under environments/ share: its arguments, and the folders it makes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import Family, build_environment
from rubric_env.classic.tools import Workspace
from rubric_env.classic.tools._files import list_files

LOCAL = {"settings": {"backend": "local"}}
TINY = Family("tiny-env", Path("none-ships"), tools=("list_files", "read_file", "write_file"))


@pytest.fixture
def instances(tmp_path: Path) -> Path:
    tests = tmp_path / "instances" / "a" / "tests"
    tests.mkdir(parents=True)
    (tests.parent / "instruction.md").write_text("Write output/memo.md.")
    (tests / "rubric.json").write_text('[{"description": "States the total", "weight": 1}]')
    (tests / "judge_instruction.md").write_text("Judge.")
    return tests.parents[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rubric_wieght": 2}, "rubric_wieght is no argument; known are instances, judge, rubric_weight"),
        ({"rubric_weight": "much"}, "rubric_weight = 'much'"),
        ({"math_weight": float("nan")}, "math_weight = nan"),
        ({"advantage": "ppo"}, "advantage = 'ppo'"),
        ({"max_turns": "few", "strict": "maybe"}, "max_turns = 'few'.*; strict = 'maybe'"),
        ({"judge": "gpt"}, "judge = 'gpt'"),
        ({"judge": {"settings": 3}}, "judge.settings = 3"),
        ({"judge": {"key": "k"}}, "judge: unknown key"),
        ({"judge": {"api_key": "k"}}, "JUDGE_API_KEY"),
    ],
)
def test_wrong_arguments_are_one_line_before_any_rollout(instances: Path, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        build_environment(TINY, str(instances), **{"judge": LOCAL, **arguments})
    assert "\n" not in str(caught.value)


def test_instances_of_a_wrong_type_are_named() -> None:
    with pytest.raises(ValueError, match="instances = 3"):
        build_environment(TINY, 3)


def test_the_value_of_an_unknown_argument_is_not_repeated(instances: Path) -> None:
    with pytest.raises(ValueError, match="api_key is no argument") as caught:
        build_environment(TINY, str(instances), api_key="sk-real")
    assert "sk-real" not in str(caught.value)


def begin(env: Any) -> tuple[Any, Path]:
    state = asyncio.run(env.setup_state({"info": "{}", "trajectory": []}))
    return state, Path(state["submission_dir"])


def test_a_rollout_that_is_stopped_leaves_no_workspace(instances: Path) -> None:
    env = build_environment(TINY, str(instances), judge=LOCAL)
    (scored, done), (_, stopped) = begin(env), begin(env)
    asyncio.run(env.rubric.cleanup(scored))
    assert not done.exists()
    assert stopped.is_dir()
    asyncio.run(env._teardown())
    assert not stopped.exists()


def test_workspaces_that_are_to_be_kept_stay(instances: Path, tmp_path: Path) -> None:
    env = build_environment(TINY, str(instances), judge=LOCAL, keep_workspaces=str(tmp_path / "kept"))
    state, kept = begin(env)
    asyncio.run(env.rubric.cleanup(state))
    asyncio.run(env._teardown())
    assert kept.parent == tmp_path / "kept"
    assert kept.is_dir()


def test_a_folder_for_workspaces_that_cannot_be_made_names_the_argument(instances: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^keep_workspaces = .*/file: cannot be made: File exists$"):
        build_environment(TINY, str(instances), judge=LOCAL, keep_workspaces=str(tmp_path / "file"))


async def test_a_file_name_that_is_not_utf_8_reaches_the_policy_as_text(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xd6\xd0.md", "w") as file:  # noqa: ASYNC230, PTH123 - pathlib takes no bytes
        file.write("x")
    listed = await list_files(Workspace(tmp_path))
    assert listed == "\\xd6\\xd0.md (1 bytes)"
