from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from rubric_env.harbor import Instance, InstanceError, dataset_rows
from rubric_env.rubric import RubricError, RubricSpec
from tests.harbor.conftest import ROWS, MakeInstance

WHOLE = {
    "tests/task_prompt.md": "The task.",
    "tests/expected_output/memo.md": "12",
    "environment/inputs/a.csv": "1",
    "task.toml": '[metadata]\nanswer = "12"\noutput_dir = "out"\n',
}


def test_section_9_a_row_holds_all_that_judging_needs(make_instance: MakeInstance) -> None:
    root = make_instance(files=WHOLE)
    [row] = dataset_rows([root])
    assert row["prompt"] == [{"role": "user", "content": "Write output/memo.md."}]
    assert row["answer"] == "12"
    assert json.loads(row["info"]) == {
        "name": "memo",
        "rubric": ROWS,
        "task_prompt": "The task.",
        "judge_instruction": "Be exact.\n",
        "reference": "--- expected_output/memo.md ---\n12",
        "kind": "files",
        "output_dir": "out",
        "deliverables": [],
        "corpus": None,
        "inputs": str((root / "environment/inputs").resolve()),
    }


def test_verifiers_takes_a_column_task_for_a_payload_so_there_is_none(make_instance: MakeInstance) -> None:
    [row] = dataset_rows([make_instance()])
    assert row.keys() == {"prompt", "answer", "info"}


def test_rows_of_the_rubric_survive_the_way_through_json(make_instance: MakeInstance) -> None:
    rows = [
        {"criterion": "Named by position, with points.", "points": 2},
        {
            "id": "g",
            "text": "Graded.",
            "weight": 1,
            "type": "gradient",
            "levels": {"0": "no", "0.5": "half", "1": "yes"},
        },
        {"id": "h", "description": "Nothing delivered.", "hurdle": True, "depends_on": "g", "note": None},
    ]
    root = make_instance(files={"tests/rubric.json": json.dumps({"items": rows})})
    [row] = dataset_rows([root])
    assert RubricSpec.parse(json.loads(row["info"])["rubric"]).rows == Instance.load(root).spec.rows


def test_a_broken_instance_is_named_and_left_out(make_instance: MakeInstance) -> None:
    instances = [
        make_instance("a"),
        make_instance("b", {"tests/rubric.json": None}),
        make_instance("c", {"tests/rubric.json": "[]"}),
        make_instance("d"),
    ]
    with pytest.warns(UserWarning) as caught:
        rows = dataset_rows(instances)
    assert [json.loads(row["info"])["name"] for row in rows] == ["a", "d"]
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 2
    assert str(instances[1]) in messages[0] and str(instances[2]) in messages[1]


@pytest.mark.parametrize(("rubric", "error"), [(None, InstanceError), ("[]", RubricError)])
def test_strict_stops_at_a_broken_instance(
    make_instance: MakeInstance, rubric: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        dataset_rows([make_instance(files={"tests/rubric.json": rubric})], strict=True)


@pytest.mark.filterwarnings("ignore:instance left out")
def test_no_instance_at_all_is_one_clear_error(make_instance: MakeInstance) -> None:
    with pytest.raises(InstanceError, match=r"no instance found: .*tests/rubric\.json"):
        dataset_rows([])
    broken: Path = make_instance(files={"tests/rubric.json": None})
    with pytest.raises(InstanceError, match=f"none of 1 instances can be used; the first: {broken}"):
        dataset_rows([broken])


def test_remarks_on_many_instances_are_one_warning(make_instance: MakeInstance) -> None:
    instances = [make_instance(str(n), {"tests/judge_instruction.md": None}) for n in range(50)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset_rows(instances)
    assert [str(warning.message) for warning in caught] == [
        f"{instances[0]}: no tests/judge_instruction.md: the built-in instruction is used "
        "(49 more such remarks: `rubric-env lint` lists them)"
    ]
