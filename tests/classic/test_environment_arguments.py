"""What an environment's arguments choose: tools, single-turn use, the checks beside the judge, a lazy data set."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import Family, HarborRubric, build_environment
from rubric_env.classic._checks import FormatRubric
from rubric_env.harbor import InstanceError
from tests.classic.conftest import make_state

vf = pytest.importorskip("verifiers", reason="the classic extra is not installed")

LOCAL = {"settings": {"backend": "local"}}
MEMO = {"kind": "files", "deliverables": ["output/memo.md"]}
CHAT = {"kind": "chat"}


def instance(
    folder: Path, name: str, *, chat: bool = False, answer: str = "", inputs: dict[str, bytes] | None = None
) -> Path:
    root = folder / name
    (root / "tests").mkdir(parents=True)
    (root / "instruction.md").write_text(f"Task {name}.")
    (root / "tests/judge_instruction.md").write_text("Judge.")
    (root / "tests/rubric.json").write_text('[{"description": "States the total 42", "weight": 1}]')
    kind = "chat" if chat else "files"
    (root / "task.toml").write_text(f'[metadata]\nkind = "{kind}"\nanswer = "{answer}"\n')
    for file, data in (inputs or {}).items():
        (root / "environment/inputs" / file).parent.mkdir(parents=True, exist_ok=True)
        (root / "environment/inputs" / file).write_bytes(data)
    return root


@pytest.fixture
def family(tmp_path: Path) -> Family:
    instance(tmp_path / "mine", "a-files")
    instance(tmp_path / "mine", "b-chat", chat=True, answer="42", inputs={"order.json": b'{"total": 42}'})
    return Family("tiny-env", tmp_path / "mine", tools=("list_files",), settings={"per_timeout": 240, "concurrency": 8})


def judge_of(env: Any) -> HarborRubric:
    [judge] = [rubric for rubric in env.rubric.rubrics if isinstance(rubric, HarborRubric)]
    return judge


def names(env: Any) -> list[str]:
    return [json.loads(row["info"])["name"] for row in env.get_dataset()]


def test_instances_are_read_when_the_data_set_is_asked_for(family: Family) -> None:
    env = build_environment(family, judge=LOCAL)
    assert env.dataset is None
    instance(family.instances, "c-late")
    assert names(env) == ["a-files", "b-chat", "c-late"]


def test_a_broken_instance_is_named_and_left_out_and_fatal_only_when_asked(family: Family) -> None:
    (instance(family.instances, "c-broken") / "tests/rubric.json").write_text("[{]")
    env = build_environment(family, judge=LOCAL)
    with pytest.warns(UserWarning, match="instance left out: .*c-broken"):
        assert names(env) == ["a-files", "b-chat"]
    with pytest.raises(ValueError, match="c-broken"):
        build_environment(family, judge=LOCAL, strict=True).get_dataset()


@pytest.mark.parametrize("broken", [False, True])
def test_a_folder_without_a_usable_instance_is_refused_at_once(tmp_path: Path, broken: bool) -> None:
    (tmp_path / "none").mkdir()
    if broken:
        (instance(tmp_path / "none", "a") / "tests/rubric.json").write_text("[{]")
    with pytest.raises(InstanceError, match="none of 1 instances can be used" if broken else "no instance found"):
        build_environment(Family("tiny-env", tmp_path), str(tmp_path / "none"), judge=LOCAL)


def test_section_13_a_familys_judge_settings_give_way_to_every_other_source(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judge_of(build_environment(family, judge=LOCAL)).settings.per_timeout == 240
    monkeypatch.setenv("JUDGE_PER_TIMEOUT", "60")
    both = {"settings": {"backend": "local", "concurrency": 3}}
    settings = judge_of(build_environment(family, judge=both)).settings
    assert (settings.per_timeout, settings.concurrency) == (60, 3)


def test_tools_are_chosen_by_name(family: Family) -> None:
    assert [tool.name for tool in build_environment(family, judge=LOCAL).tool_defs] == ["list_files"]
    chosen = build_environment(family, judge=LOCAL, tools=["write_file", "read_file", "write_file"])
    assert [tool.name for tool in chosen.tool_defs] == ["write_file", "read_file"]
    with pytest.raises(ValueError, match="tools: unknown rm; known are list_files"):
        build_environment(family, judge=LOCAL, tools=["rm"])


def test_no_policy_is_told_of_the_workspace_that_is_filled_in(family: Family) -> None:
    from rubric_env.classic.tools import TOOLS

    for tool in build_environment(family, judge=LOCAL, tools=list(TOOLS)).tool_defs:
        assert "workspace" not in tool.parameters["properties"]
        assert tool.description


def test_single_turn_takes_the_tasks_that_are_answered_in_chat_with_their_files_in_the_prompt(family: Family) -> None:
    env = build_environment(family, judge=LOCAL, single_turn=True)
    assert isinstance(env, vf.SingleTurnEnv)
    [row] = env.get_dataset()
    assert row["prompt"][-1]["content"] == 'Task b-chat.\n\nFile `order.json`:\n\n{"total": 42}'
    assert row["prompt"][0]["role"] == "system"


def test_single_turn_leaves_out_what_a_prompt_cannot_hold_and_says_so(family: Family, tmp_path: Path) -> None:
    instance(family.instances, "c-picture", chat=True, inputs={"a.png": b"\x89PNG\xff"})
    env = build_environment(family, judge=LOCAL, single_turn=True)
    with pytest.warns(UserWarning, match=r"a\.png: is no text"):
        assert names(env) == ["b-chat"]
    instance(tmp_path / "files", "a")
    with pytest.raises(InstanceError, match="none of 1 instances wants its answer in chat"):
        build_environment(family, str(tmp_path / "files"), judge=LOCAL, single_turn=True)


async def test_the_reward_is_the_weighted_sum_and_an_answer_counts_only_where_there_is_one(family: Family) -> None:
    weights = {"rubric_weight": 2.0, "math_weight": 0.5, "format_weight": 0.25}
    env = build_environment(family, judge=LOCAL, single_turn=True, **weights)
    [row] = env.get_dataset()
    say = "The total is 42, so the answer is \\boxed{42}."
    right = make_state(say, info=row["info"], answer=row["answer"])
    unasked = make_state(say, info=row["info"], answer="")
    await env.rubric.score_group([right, unasked])
    assert right["reward"] == pytest.approx(2.0 + 0.5 + 0.25)
    assert unasked["reward"] == pytest.approx(2.0 + 0.25)


async def test_a_familys_own_check_has_its_weight_as_an_argument(family: Family) -> None:
    class Polite(vf.Rubric):
        def __init__(self, weight: float):
            super().__init__()
            self.add_reward_func(self.polite, weight)

        async def polite(self) -> float:
            return 1.0

    own = replace(family, checks={"polite_weight": Polite})
    env = build_environment(own, judge=LOCAL, single_turn=True, rubric_weight=0.0, polite_weight=0.5)
    state = make_state(info=env.get_dataset()[0]["info"])
    await env.rubric.score_group([state])
    assert state["reward"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="polite_weight = 'much'"):
        build_environment(own, judge=LOCAL, polite_weight="much")
    with pytest.raises(ValueError, match=r"polite_weigth is no argument; known are instances, .*, polite_weight$"):
        build_environment(own, judge=LOCAL, polite_weigth=0.5)


@pytest.mark.parametrize(
    ("info", "files", "reply", "reward"),
    [
        (MEMO, {"output/memo.md": b"The total."}, "Done.", 1.0),
        (MEMO, {"output/memo.md": b"The total."}, "", 0.5),
        (MEMO, {"output/other.md": b"The total."}, "Done.", 0.5),
        (MEMO, {"memo.md": b"The total."}, "Done.", 0.5),
        (MEMO, {"output/memo.md": b""}, "Done.", 0.5),
        ({**MEMO, "deliverables": ["output/memo.docx"]}, {"output/memo.docx": b"no zip"}, "Done.", 0.5),
        ({**MEMO, "deliverables": ["output/a.md", "output/b.md"]}, {"output/a.md": b"a"}, "Done.", 2 / 3),
        ({"kind": "files"}, {"output/any.md": b"a"}, "Done.", 1.0),
        ({"kind": "files"}, {}, "Done.", 0.5),
        (CHAT, {}, "42.", 1.0),
        (CHAT, {"output/memo.md": b"42."}, "42.", 0.5),
        (CHAT, {}, "<think>42.", 0.5),
    ],
)
async def test_the_form_of_a_delivery(
    tmp_path: Path, info: dict[str, Any], files: dict[str, bytes], reply: str, reward: float
) -> None:
    (tmp_path / "output").mkdir()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    state = make_state(info=json.dumps(info), submission_dir=str(tmp_path), output_dir="output")
    state["completion"] = [{"role": "assistant", "content": reply}]
    await FormatRubric(weight=1.0).score_group([state])
    assert state["reward"] == pytest.approx(reward)


async def test_a_rollout_that_erred_has_no_form() -> None:
    state = make_state("42.", info=json.dumps(CHAT), error=vf.InfraError("lost"))
    await FormatRubric(weight=1.0).score_group([state])
    assert state["reward"] == 0.0
