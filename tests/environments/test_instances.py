"""The shipped instances: whole, consistent, and labelled row by row."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from rubric_env.harbor import Instance, dataset_rows, find_instances
from rubric_env.rubric import lint_instance
from rubric_env.scoring import score
from tests.environments.gdp import INSTANCES, NAMES, RECORDINGS, recording, written_files

TOOLS = {"list_files": {"path"}, "read_file": {"path"}, "write_file": {"path", "content"}}
each_instance = pytest.mark.parametrize("name", NAMES)
each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")


def scores(name: str) -> dict[str, float]:
    spec = Instance.load(INSTANCES / name).spec
    cards = {path.stem: score(spec, recording(path)["labels"]) for path in RECORDINGS if path.parts[-3] == name}
    return {quality: card.score if card.score is not None else -1.0 for quality, card in cards.items()}


@each_instance
def test_an_instance_is_whole_and_its_rubric_is_clean(name: str) -> None:
    instance = Instance.load(INSTANCES / name)
    assert instance.warnings == ()
    assert instance.reference
    assert instance.inputs == INSTANCES / name / "environment/inputs"
    assert instance.instruction.startswith(instance.task)
    assert 6 <= len(instance.spec) <= 14
    assert lint_instance(INSTANCES / name) == []


def test_the_rubrics_use_every_kind_of_row_in_two_languages() -> None:
    instances = [Instance.load(path) for path in find_instances(INSTANCES)]
    rows = [row for instance in instances for row in instance.spec]
    kinds = Counter[str]()
    for row in rows:
        kinds["hurdle"] += row.hurdle
        kinds["negative"] += row.weight < 0
        kinds["gated"] += bool(row.depends_on)
        kinds["gradient"] += row.graded and row.raw.get("type") == "gradient"
        kinds["scores"] += row.graded and "scores" in row.raw
        kinds["binary"] += not row.graded and row.weight > 0
    assert set(kinds) == {"hurdle", "negative", "gated", "gradient", "scores", "binary"}
    assert min(kinds.values()) >= 3
    assert all(row.weight == 0 for row in rows if row.hurdle)
    assert all(row.tag for row in rows)
    assert sum(bool(re.search("[一-鿿]", instance.task)) for instance in instances) == 3
    assert [instance.name for instance in instances if instance.kind == "chat"] == ["refund-answer-chat"]
    assert [instance.name for instance in instances if instance.answer] == ["reorder-point-zh"]


@each_instance
def test_files_that_a_task_speaks_of_exist(name: str) -> None:
    instance = Instance.load(INSTANCES / name)
    assert instance.inputs is not None
    named = set(re.findall(r"`([^`/\\]+\.(?:csv|md|txt|json|log))`", instance.task))
    assert named == {path.name for path in instance.inputs.iterdir()}


@each_instance
def test_files_that_a_rubric_speaks_of_are_asked_for_and_expected(name: str) -> None:
    instance = Instance.load(INSTANCES / name)
    named = set(re.findall(r"output/[\w.]+\.(?:md|csv)", " ".join(row.description for row in instance.spec)))
    asked = set(re.findall(r"output/[\w.]+\.(?:md|csv)", instance.task))
    expected = {f"output/{path.name}" for path in (INSTANCES / name / "tests/expected_output").iterdir()}
    good = set(written_files(INSTANCES / name / "recordings/good.json"))
    assert named == asked == good
    assert expected - {"output/reply.md"} == asked
    assert bool(asked) == (instance.kind == "files")


@each_recording
def test_a_recording_answers_the_task_with_the_tools_there_are(path: Path) -> None:
    data = recording(path)
    assert (data["instance"], data["quality"]) == (path.parts[-3], path.stem)
    assert data["note"] == "written by hand for the demo, not by a model"
    assert data["prompt"] == (path.parents[1] / "instruction.md").read_text("utf-8").strip()
    *working, last = data["turns"]
    assert all(turn["tool_calls"] for turn in working)
    # verifiers takes a turn without text and calls for a failure of the endpoint, not for an empty answer.
    assert last["content"].strip() and not last["tool_calls"]
    inputs = {file.name for file in (path.parents[1] / "environment/inputs").iterdir()}
    for call in (call for turn in working for call in turn["tool_calls"]):
        assert call["arguments"].keys() == TOOLS[call["name"]]
        if call["name"] == "read_file":
            assert call["arguments"]["path"] in inputs
        if call["name"] == "write_file":
            assert call["arguments"]["path"].startswith("output/") and call["arguments"]["content"].strip()


@each_recording
def test_labels_name_every_row_and_legal_levels(path: Path) -> None:
    spec = Instance.load(path.parents[1]).spec
    labels = recording(path)["labels"]
    assert tuple(labels) == spec.ids
    for row in spec:
        label = labels[row.id]
        assert label.keys() == ({"hit", "level"} if row.graded else {"hit"})
        if row.graded:
            assert label["level"] in row.level_choices
            assert label["hit"] == (label["level"] > 0)


@each_instance
def test_labels_put_good_before_medium_before_poor(name: str) -> None:
    found = scores(name)
    assert found["good"] == 1.0
    assert 0.2 < found["medium"] < 0.7
    assert found["poor"] < 0.1
    assert 0.0 <= found.get("chat_only", 0.5) < 0.9


def test_there_are_recordings_of_every_quality() -> None:
    qualities = Counter(path.stem for path in RECORDINGS)
    per_instance = Counter(path.parts[-3] for path in RECORDINGS)
    assert qualities.keys() == {"good", "medium", "poor", "fatal", "chat_only", "nothing", "injection"}
    assert min(per_instance.values()) >= 3
    assert sum(count >= 4 for count in per_instance.values()) >= 3


@pytest.mark.parametrize("path", [path for path in RECORDINGS if path.stem == "fatal"], ids=lambda path: path.parts[-3])
def test_section_3_a_fatal_answer_scores_zero_though_it_earned_weight(path: Path) -> None:
    card = score(Instance.load(path.parents[1]).spec, recording(path)["labels"])
    assert card.fatal and card.score == 0.0
    assert card.earned > 0


def test_section_6_chat_only_and_nothing_write_no_file() -> None:
    for path in RECORDINGS:
        if path.stem in ("chat_only", "nothing"):
            assert written_files(path) == {}
    [nothing] = [path for path in RECORDINGS if path.stem == "nothing"]
    last = recording(nothing)["turns"][-1]["content"]
    assert last.startswith("<think>") and "</think>" not in last


def test_the_dataset_sends_the_prompts_that_the_recordings_answer() -> None:
    rows = dataset_rows(find_instances(INSTANCES), strict=True)
    sent = {json.loads(row["info"])["name"]: row["prompt"] for row in rows}
    assert list(sent) == NAMES
    for path in RECORDINGS:
        data = recording(path)
        assert sent[data["instance"]] == [{"role": "user", "content": data["prompt"]}]


def test_prompts_are_distinct_and_none_is_part_of_another() -> None:
    prompts = [Instance.load(INSTANCES / name).instruction.strip() for name in NAMES]
    assert [a for a in prompts for b in prompts if a is not b and a in b] == []
