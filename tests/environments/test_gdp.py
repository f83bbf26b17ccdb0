"""What harbor-gdp's instances have beyond what every environment's have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric_env.harbor import Instance, find_instances
from tests.environments.shipped import ENVIRONMENTS, instances_of, recording, recordings_of

INSTANCES = ENVIRONMENTS["harbor_gdp"]
RECORDINGS = recordings_of("harbor_gdp")
MAKES = ("write_file", "make_docx", "edit_docx", "make_xlsx", "edit_xlsx")
each_instance = pytest.mark.parametrize("path", instances_of("harbor_gdp"), ids=lambda path: path.name)


def writing(path: Path) -> Iterator[dict[str, Any]]:
    """The calls of a recording that leave a file."""
    return (call for turn in recording(path)["turns"] for call in turn["tool_calls"] if call["name"] in MAKES)


def test_two_languages_a_chat_task_and_an_answer_that_a_program_checks() -> None:
    instances = [Instance.load(path) for path in find_instances(INSTANCES)]
    assert sum(bool(re.search("[一-鿿]", instance.task)) for instance in instances) == 4
    assert [instance.name for instance in instances if instance.kind == "chat"] == ["refund-answer-chat"]
    assert [instance.name for instance in instances if instance.answer] == ["reorder-point-zh"]


@each_instance
def test_files_that_a_task_speaks_of_exist(path: Path) -> None:
    instance = Instance.load(path)
    assert instance.inputs == path / "environment/inputs"
    named = set(re.findall(r"`([^`/\\]+\.(?:csv|md|txt|json|log|docx|xlsx))`", instance.task))
    assert named == {file.name for file in instance.inputs.iterdir()}


@each_instance
def test_files_that_a_rubric_speaks_of_are_asked_for_and_expected(path: Path) -> None:
    instance = Instance.load(path)
    named = set(re.findall(r"output/[\w.]+\.(?:md|csv|docx|xlsx)", " ".join(row.description for row in instance.spec)))
    asked = set(re.findall(r"output/[\w.]+\.(?:md|csv|docx|xlsx)", instance.task))
    good = {
        call["arguments"].get("save_as") or call["arguments"]["path"] for call in writing(path / "recordings/good.json")
    }
    assert named <= asked == good == set(instance.deliverables)
    assert bool(asked) == (instance.kind == "files")


def test_there_are_recordings_of_every_quality() -> None:
    qualities = Counter(path.stem for path in RECORDINGS)
    per_instance = Counter(path.parts[-3] for path in RECORDINGS)
    assert qualities.keys() == {"good", "medium", "poor", "fatal", "chat_only", "nothing", "injection"}
    assert min(per_instance.values()) >= 3
    assert sum(count >= 4 for count in per_instance.values()) >= 3


def test_section_6_chat_only_and_nothing_write_no_file() -> None:
    for path in RECORDINGS:
        if path.stem in ("chat_only", "nothing"):
            assert not list(writing(path))
    [nothing] = [path for path in RECORDINGS if path.stem == "nothing"]
    last = recording(nothing)["turns"][-1]["content"]
    assert last.startswith("<think>") and "</think>" not in last
