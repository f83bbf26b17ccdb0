"""The shipped instances of every environment: whole, consistent, and labelled row by row."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from pathlib import Path

import pytest

from rubric_env.harbor import Instance, dataset_rows, find_instances
from rubric_env.rubric import lint_instance
from rubric_env.scoring import score
from tests.environments.shipped import ENVIRONMENTS, instances_of, recording, recordings_of

INSTANCES = [path for environment in ENVIRONMENTS for path in instances_of(environment)]
RECORDINGS = [path for environment in ENVIRONMENTS for path in recordings_of(environment)]
each_environment = pytest.mark.parametrize("environment", ENVIRONMENTS)
each_instance = pytest.mark.parametrize("path", INSTANCES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")


@each_instance
def test_an_instance_is_whole_and_its_rubric_is_clean(path: Path) -> None:
    instance = Instance.load(path)
    assert instance.warnings == ()
    assert instance.reference
    assert instance.instruction.startswith(instance.task)
    assert 6 <= len(instance.spec) <= 14
    assert all(row.weight == 0 for row in instance.spec if row.hurdle)
    assert all(row.tag for row in instance.spec)
    assert lint_instance(path) == []


@each_environment
def test_an_environment_has_instances_with_every_kind_of_row(environment: str) -> None:
    instances = [Instance.load(path) for path in instances_of(environment)]
    assert len(instances) >= 6
    kinds = Counter[str]()
    for row in (row for instance in instances for row in instance.spec):
        kinds["hurdle"] += row.hurdle
        kinds["negative"] += row.weight < 0
        kinds["gated"] += bool(row.depends_on)
        kinds["gradient"] += row.graded and row.raw.get("type") == "gradient"
        kinds["scores"] += row.graded and "scores" in row.raw
        kinds["binary"] += not row.graded and row.weight > 0
    assert set(kinds) == {"hurdle", "negative", "gated", "gradient", "scores", "binary"}
    assert min(kinds.values()) >= 2


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


@each_recording
def test_a_recording_calls_tools_as_they_are_declared(path: Path) -> None:
    pytest.importorskip("verifiers", reason="the classic extra is not installed")
    from rubric_env.classic.tools import TOOLS, find_tools

    tools = {tool.__name__: inspect.signature(tool).parameters for tool in find_tools(TOOLS)}
    for call in (call for turn in recording(path)["turns"] for call in turn["tool_calls"]):
        assert call["name"] in TOOLS
        if parameters := tools.get(call["name"]):
            needed = {name for name, p in parameters.items() if p.default is p.empty} - {"workspace"}
            assert needed <= call["arguments"].keys() <= parameters.keys() - {"workspace"}


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
def test_labels_put_good_before_medium_before_poor(path: Path) -> None:
    spec = Instance.load(path).spec
    cards = {file.stem: score(spec, recording(file)["labels"]) for file in path.glob("recordings/*.json")}
    found = {quality: card.score if card.score is not None else -1.0 for quality, card in cards.items()}
    assert found["good"] == 1.0
    assert 0.2 < found["medium"] < 0.7
    assert found["poor"] < 0.1
    assert 0.0 <= found.get("chat_only", 0.5) < 0.9


@pytest.mark.parametrize("path", [path for path in RECORDINGS if path.stem == "fatal"], ids=lambda path: path.parts[-3])
def test_section_3_a_fatal_answer_scores_zero_though_it_earned_weight(path: Path) -> None:
    card = score(Instance.load(path.parents[1]).spec, recording(path)["labels"])
    assert card.fatal and card.score == 0.0
    assert card.earned > 0


@each_environment
def test_the_dataset_sends_the_prompts_that_the_recordings_answer(environment: str) -> None:
    rows = dataset_rows(find_instances(ENVIRONMENTS[environment]), strict=True)
    sent = {json.loads(row["info"])["name"]: row["prompt"] for row in rows}
    assert list(sent) == [path.name for path in instances_of(environment)]
    for path in recordings_of(environment):
        data = recording(path)
        assert sent[data["instance"]] == [{"role": "user", "content": data["prompt"]}]


@each_environment
def test_prompts_are_distinct_and_none_is_part_of_another(environment: str) -> None:
    prompts = [Instance.load(path).instruction.strip() for path in instances_of(environment)]
    assert [a for a in prompts for b in prompts if a is not b and a in b] == []
