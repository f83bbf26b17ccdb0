"""How the agreement with labelled answers is counted, and that it holds on the answers that ship."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric_env.local import agreement
from rubric_env.local._agreement import Group, Labelled, main
from tests.environments.shipped import ENVIRONMENTS

INSTANCES = ENVIRONMENTS["harbor_gdp"]


def pairs(*counts: tuple[bool, bool, int]) -> list[Labelled]:
    return [Labelled("positive", label, hit) for label, hit, n in counts for _ in range(n)]


def test_accuracy_and_kappa() -> None:
    group = Group.of("x", pairs((True, True, 20), (True, False, 5), (False, True, 10), (False, False, 15)))
    assert (group.rows, group.accuracy) == (50, 0.7)
    assert group.kappa == pytest.approx(0.4)


def test_kappa_is_undefined_where_one_side_never_varies() -> None:
    assert Group.of("x", pairs((True, True, 3), (False, True, 1))).kappa is None


def test_levels_are_compared_on_graded_rows() -> None:
    rows = [Labelled("graded", True, True, 0.5, 0.5), Labelled("graded", True, True, 1.0, 0.5), *pairs((True, True, 2))]
    assert Group.of("x", rows).levels == 0.5


def instance(folder: Path, turns: list[dict[str, Any]], labels: dict[str, Any], name: str = "one") -> None:
    (folder / "tests").mkdir(parents=True, exist_ok=True)
    (folder / "recordings").mkdir(exist_ok=True)
    rubric = [
        {"id": "R1", "description": "output/a.md gives the total 4,321.", "weight": 1},
        {"id": "R2", "description": "No file was delivered.", "hurdle": True},
    ]
    (folder / "tests" / "rubric.json").write_text(json.dumps(rubric), "utf-8")
    recording = {"turns": turns, "labels": labels}
    (folder / "recordings" / f"{name}.json").write_text(json.dumps(recording), "utf-8")


def writes(path: str, text: str) -> dict[str, Any]:
    return {"content": "", "tool_calls": [{"name": "write_file", "arguments": {"path": path, "content": text}}]}


def test_recorded_answers_are_delivered_and_judged(tmp_path: Path) -> None:
    labels = {"R1": {"hit": True}, "R2": {"hit": False}}
    instance(tmp_path / "report", [writes("output/a.md", "The total is 4,321."), {"content": "Done."}], labels)
    instance(tmp_path / "report", [{"content": ""}], labels, name="nothing")
    found = agreement(tmp_path)
    assert (found.answers, found.total.rows, found.total.accuracy) == (1, 2, 1.0)
    assert [group.name for group in found.kinds] == ["positive", "hurdle"]
    assert str(found).startswith("right on 100% of 2 rows in 1 answers, Cohen's kappa 1.00 (")


def test_a_recording_writes_into_its_own_workspace_only(tmp_path: Path) -> None:
    instances = tmp_path / "instances"
    instance(instances / "report", [writes("../../escaped.md", "x"), {"content": "Done."}], {"R1": {"hit": False}})
    assert agreement(instances).total.accuracy == 1.0
    assert not list(tmp_path.rglob("escaped.md"))


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--json"], ["-x"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "usage" in capsys.readouterr().err


def test_no_recordings_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "no labelled recordings" in capsys.readouterr().err


def test_a_broken_recording_names_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instance(tmp_path / "report", [], {})
    (tmp_path / "report" / "recordings" / "one.json").write_text("{}", "utf-8")
    assert main([str(tmp_path)]) == 1
    assert "one.json" in capsys.readouterr().err


def test_it_agrees_with_the_labels_of_the_shipped_answers_far_above_chance(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(INSTANCES), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["total"]["rows"] > 300
    assert figures["total"]["kappa"] > 0.7
    assert {group["name"] for group in figures["kinds"]} == {"positive", "negative", "hurdle", "graded"}
