"""What harbor-gdp's instances have beyond what every environment's have."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from rubric_env.harbor import Instance, find_instances
from tests.environments.shipped import ENVIRONMENTS, instances_of, recording, recordings_of, written_files

INSTANCES = ENVIRONMENTS["harbor_gdp"]
RECORDINGS = recordings_of("harbor_gdp")
each_instance = pytest.mark.parametrize("path", instances_of("harbor_gdp"), ids=lambda path: path.name)


def test_two_languages_a_chat_task_and_an_answer_that_a_program_checks() -> None:
    instances = [Instance.load(path) for path in find_instances(INSTANCES)]
    assert sum(bool(re.search("[一-鿿]", instance.task)) for instance in instances) == 3
    assert [instance.name for instance in instances if instance.kind == "chat"] == ["refund-answer-chat"]
    assert [instance.name for instance in instances if instance.answer] == ["reorder-point-zh"]


@each_instance
def test_files_that_a_task_speaks_of_exist(path: Path) -> None:
    instance = Instance.load(path)
    assert instance.inputs == path / "environment/inputs"
    named = set(re.findall(r"`([^`/\\]+\.(?:csv|md|txt|json|log))`", instance.task))
    assert named == {file.name for file in instance.inputs.iterdir()}


@each_instance
def test_files_that_a_rubric_speaks_of_are_asked_for_and_expected(path: Path) -> None:
    instance = Instance.load(path)
    named = set(re.findall(r"output/[\w.]+\.(?:md|csv)", " ".join(row.description for row in instance.spec)))
    asked = set(re.findall(r"output/[\w.]+\.(?:md|csv)", instance.task))
    expected = {f"output/{file.name}" for file in (path / "tests/expected_output").iterdir()}
    good = set(written_files(path / "recordings/good.json"))
    assert named == asked == good == set(instance.deliverables)
    assert expected - {"output/reply.md"} == asked
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
            assert written_files(path) == {}
    [nothing] = [path for path in RECORDINGS if path.stem == "nothing"]
    last = recording(nothing)["turns"][-1]["content"]
    assert last.startswith("<think>") and "</think>" not in last
