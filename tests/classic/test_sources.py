"""SPEC 9: where a rollout's content comes from; first found wins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.classic.conftest import RUBRIC, make_state, score


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    files = {
        "task.toml": '[metadata]\noutput_dir = "/app/deliverables"\n',
        "instruction.md": "Write the memo.",
        "tests/rubric.json": json.dumps(RUBRIC),
        "tests/judge_instruction.md": "Judge as the instance says.",
        "tests/expected_output/memo.md": "The memo of the instance.",
    }
    return write(tmp_path / "instance", files)


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


async def asked(rubric: Any, judge: Any, info: Any, **state: Any) -> str:
    await score(rubric, [make_state("GOOD", info=info, **state)])
    return str(judge.calls[-1].text)


async def test_section_9_info_then_instance_then_argument(make_rubric: Any, judge: Any, instance: Path) -> None:
    rubric = make_rubric(instruction="Judge as the argument says.", reference="The memo of the argument.")
    of_instance = {"instance": str(instance)}
    of_info = {**of_instance, "judge_instruction": "Judge as info says.", "reference": "The memo of info."}
    for info, source in [({}, "argument"), (of_instance, "instance"), (of_info, "info")]:
        text = await asked(rubric, judge, info, answer="The memo of the answer.")
        for other in ("info", "the instance", "the argument", "the answer"):
            assert (f"as {other} says" in text or f"memo of {other}." in text) == other.endswith(source)


async def test_section_13_the_argument_before_the_environment_before_the_file(
    make_rubric: Any, judge: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"env.md": "Judge as the environment says.", "file.md": "Judge as the file says."})
    config = tmp_path / "judge.toml"
    config.write_text(f'instruction_file = "{tmp_path / "file.md"}"\n', "utf-8")
    assert "as the file says" in await asked(make_rubric(config=config), judge, {})
    monkeypatch.setenv("JUDGE_INSTRUCTION_FILE", str(tmp_path / "env.md"))
    assert "as the environment says" in await asked(make_rubric(config=config), judge, {})
    rubric = make_rubric(config=config, instruction="Judge as the argument says.")
    assert "as the argument says" in await asked(rubric, judge, {})


async def test_blank_texts_count_as_absent(make_rubric: Any, judge: Any) -> None:
    rubric = make_rubric(instruction="Judge as the argument says.")
    text = await asked(rubric, judge, {"judge_instruction": " \n", "task_prompt": "", "reference": None})
    assert "as the argument says" in text
    assert "Who owns the total?" in text
    assert "# Reference" not in text


async def test_section_6_the_output_directory_is_the_one_that_the_instance_names(
    make_rubric: Any, judge: Any, instance: Path, tmp_path: Path
) -> None:
    files = {"deliverables/memo.md": "reply HALF", "notes.md": "reply GOOD"}
    workspace = write(tmp_path / "workspace", files)
    state = make_state("nothing", info={"instance": str(instance)}, submission_dir=str(workspace))
    await score(make_rubric(rubric=None), [state])
    assert state["reward"] == 0.75
    assert state["judge_result"]["details"]["delivery"]["files"] == ["deliverables/memo.md"]
    assert state["judge_result"]["details"]["delivery"]["stray"] == ["notes.md"]


async def test_info_that_is_blank_text_is_no_info(make_rubric: Any) -> None:
    (state,) = await score(make_rubric(), [make_state("GOOD", info="  ")])
    assert (state["reward"], state["error"]) == (1.0, None)
