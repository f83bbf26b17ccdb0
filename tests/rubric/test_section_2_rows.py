"""SPEC 2: what a rubric.json may look like, and how it is refused."""

import json
import math
import pickle
from pathlib import Path

import pytest

from rubric_env.rubric import RubricError, RubricSpec

GRADED = {"id": "g", "description": "x", "weight": 2, "type": "gradient"}
ROW = {"id": "a", "description": "x", "weight": 1}


def parse_one(**fields):
    return RubricSpec.parse([{"description": "x", **fields}]).rows[0]


def problems_of(source):
    with pytest.raises(RubricError) as caught:
        RubricSpec.parse(source)
    return caught.value.problems


def reason_of(**fields):
    (problem,) = problems_of([{"description": "x", **fields}])
    return problem.reason


# --- where rows come from ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["rubrics", "criteria", "items"])
def test_section_2_rows_are_a_list_or_stand_under_a_known_key(key):
    assert RubricSpec.parse([ROW]).ids == ("a",)
    assert RubricSpec.parse({key: [ROW], "name": "r"}).ids == ("a",)
    assert RubricSpec.parse({"rubrics": None, key: [ROW]}).ids == ("a",)


def test_section_2_rows_come_from_json_text_and_files(tmp_path):
    path = tmp_path / "rubric.json"
    path.write_text(json.dumps([ROW]), "utf-8")
    assert RubricSpec.parse(path) == RubricSpec.parse(str(path))
    assert RubricSpec.parse(path).source == str(path)
    assert RubricSpec.parse(f"\ufeff \n{json.dumps({'items': [ROW]})}").rows == RubricSpec.parse([ROW]).rows


def test_section_2_a_spec_is_a_read_only_collection_that_can_be_pickled():
    spec = RubricSpec.parse([ROW, {**GRADED, "levels": {"0": "no", "1": "yes"}}])
    assert len(spec) == 2
    assert [row.id for row in spec] == ["a", "g"]
    assert spec["g"].graded
    assert "b" not in spec
    with pytest.raises(KeyError):
        spec["b"]
    with pytest.raises(AttributeError):
        spec.source = "other"
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert RubricSpec.parse(spec) is spec


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ([], "the list of rows is empty"),
        ({"criteria": []}, "the list of rows is empty"),
        ({"rows": [ROW], "n": 1}, "its keys: rows, n"),
        ({}, "its keys: none"),
        ({"items": {"a": ROW}}, "a list of rows is needed"),
        (7, "this is a int"),
        ('[{"id": "a",\n "description" "x"}]', "line 2, column 16"),
        ("", "empty text"),
        ("no/such/rubric.json", "no such file"),
        ("nul\0byte", "cannot be opened"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_section_2_a_source_without_rows_is_one_clear_error(source, says):
    (problem,) = problems_of(source)
    assert (problem.row, problem.id) == (0, "")
    assert says in problem.reason


def test_section_2_errors_name_the_file(tmp_path):
    path = tmp_path / "rubric.json"
    path.write_text('{"rubrics": [', "utf-8")
    with pytest.raises(RubricError, match=r"rubric\.json: not JSON: .* at line 1, column 14"):
        RubricSpec.parse(path)
    with pytest.raises(RubricError, match=r"a directory: give the path of the rubric\.json in it"):
        RubricSpec.parse(tmp_path)


def test_section_4_a_file_that_is_not_utf8_is_read_with_a_warning(tmp_path):
    path = tmp_path / "rubric.json"
    path.write_bytes('[{"description": "报告包含结论"}]'.encode("gb18030"))
    with pytest.warns(UserWarning, match="not UTF-8: read as GB18030"):
        assert RubricSpec.parse(path).rows[0].description == "报告包含结论"
    path.write_bytes('[{"description": "café"}]'.encode("latin-1"))
    with pytest.warns(UserWarning, match="not UTF-8: read as Latin-1"):
        assert RubricSpec.parse(path).rows[0].description == "café"


def test_section_4_a_byte_order_mark_is_no_part_of_the_text(tmp_path, recwarn):
    path = tmp_path / "rubric.json"
    path.write_bytes(json.dumps([ROW]).encode("utf-8-sig"))
    assert RubricSpec.parse(path).ids == ("a",)
    assert not recwarn


# --- fields -----------------------------------------------------------------------------------------------------


def test_section_2_missing_ids_count_by_position():
    rows = [{"text": "a"}, {"id": "own", "text": "b"}, {"id": None, "text": "c"}, {"id": " ", "text": "d"}]
    assert RubricSpec.parse(rows).ids == ("R01", "own", "R03", "R04")
    assert RubricSpec.parse([{"text": str(n)} for n in range(100)]).ids[-1] == "R100"


@pytest.mark.parametrize(
    ("raw", "identity"),
    [(3, "3"), (3.0, "3"), (1.5, "1.5"), (12345678901234567890, "12345678901234567890"), (" a ", "a")],
)
def test_section_2_numeric_ids_become_text_here_and_in_depends_on(raw, identity):
    spec = RubricSpec.parse([{"id": raw, "text": "x"}, {"id": "z", "text": "y", "depends_on": [raw]}])
    assert spec.ids == (identity, "z")
    assert spec["z"].depends_on == (identity,)


def test_section_2_duplicate_ids_are_an_error_that_lists_them():
    rows = [{"id": "a", "text": "1"}, {"id": 1, "text": "2"}, {"id": "a", "text": "3"}, {"id": "1", "text": "4"}]
    assert [(p.row, p.id) for p in problems_of(rows)] == [(3, "a"), (4, "1")]
    (problem,) = problems_of([{"id": "R02", "text": "1"}, {"text": "2"}])
    assert (problem.row, problem.id) == (2, "R02")


@pytest.mark.parametrize("alias", ["description", "criterion", "criteria", "text", "requirement", "title"])
def test_section_2_aliases_of_the_text(alias):
    assert RubricSpec.parse([{alias: "the text"}]).rows[0].description == "the text"


def test_section_2_the_first_alias_that_holds_text_is_the_text():
    assert parse_one(description="long", title="short").description == "long"
    assert parse_one(description=None, title="short").description == "short"
    assert parse_one(description="  ", text="t").description == "t"


def test_section_2_weight_has_the_alias_points_and_is_0_when_missing():
    assert parse_one(weight=2.5).weight == 2.5
    assert parse_one(points=-3).weight == -3
    assert parse_one(weight=None, points=4).weight == 4
    assert parse_one(weight=1, points=4).weight == 1
    assert parse_one().weight == 0


@pytest.mark.parametrize(("text", "weight"), [("3", 3), (" -2.5 ", -2.5), ("+.5", 0.5), ("1e2", 100)])
def test_section_2_a_decimal_numeral_in_text_is_a_weight(text, weight):
    assert parse_one(weight=text).weight == weight


@pytest.mark.parametrize(
    "weight",
    [
        True,
        False,
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        1e200,
        "3 points",
        "nan",
        "inf",
        "1_000",
        "٣",
        "",
        "50%",
        [1],
        {},
    ],
)
def test_section_2_a_weight_that_is_no_finite_number_is_refused(weight):
    assert reason_of(weight=weight).startswith("weight ")


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_section_2_json_literals_that_are_not_finite_are_refused(literal):
    (problem,) = problems_of(f'[{{"text": "ok"}}, {{"text": "x", "weight": {literal}}}]')
    assert problem.row == 2
    assert "not finite" in problem.reason


def test_section_2_hurdle_is_true_or_false_and_nothing_else():
    assert parse_one(hurdle=True).hurdle
    assert not parse_one(hurdle=False).hurdle
    assert not parse_one(hurdle=None).hurdle
    for value in ("false", 0, 1, "yes"):
        assert "neither true nor false" in reason_of(hurdle=value)


def test_section_2_depends_on_is_an_id_or_a_list_of_ids():
    assert parse_one(depends_on="a").depends_on == ("a",)
    assert parse_one(depends_on=["a", 2, None, "a", ""]).depends_on == ("a", "2")
    assert parse_one(depends_on=None).depends_on == parse_one(depends_on=[]).depends_on == ()
    assert "neither text nor a number" in reason_of(depends_on={"a": 1})
    assert "neither text nor a number" in reason_of(depends_on=[True])


def test_section_2_checkpoints_and_labels_are_kept():
    row = parse_one(
        checkpoints=[{"id": "c1", "description": "d", "content": "print(1)"}],
        tag="facts",
        criterion_type="Objective",
        criterion_necessity="Explicit",
    )
    assert row.checkpoints == ({"id": "c1", "description": "d", "content": "print(1)"},)
    assert (row.tag, row.criterion_type, row.criterion_necessity) == ("facts", "Objective", "Explicit")
    assert row.raw["tag"] == "facts"
    assert "list of objects" in reason_of(checkpoints="run it")
    assert "list of objects" in reason_of(checkpoints=["run it"])


@pytest.mark.parametrize("value", [Path("x"), {1, 2}, "half a pair: \ud800", {"deep": [b"bytes"]}])
def test_section_4_a_value_that_cannot_be_sent_to_a_judge_is_refused(value):
    assert "no form in JSON and UTF-8" in reason_of(note=value)


# --- graded rows ------------------------------------------------------------------------------------------------

TABLE = {"1": "full", "0.5": "half", "0": "none"}


def test_section_2_a_gradient_row_with_levels_is_graded():
    row = parse_one(weight=1, type="gradient", levels=TABLE)
    assert row.graded
    assert row.level_choices == (0.0, 0.5, 1.0)
    assert dict(row.levels) == {0.0: "none", 0.5: "half", 1.0: "full"}


def test_section_2_a_scores_table_makes_a_row_graded_without_the_type():
    assert parse_one(scores=TABLE).level_choices == (0.0, 0.5, 1.0)


def test_section_2_levels_of_a_gradient_row_come_before_scores():
    row = parse_one(type="gradient", levels={"0": "n", "0.4": "p", "1": "y"}, scores=TABLE)
    assert row.level_choices == (0.0, 0.4, 1.0)


def test_section_2_levels_without_the_type_are_ignored():
    assert not parse_one(weight=1, levels=TABLE).graded
    assert parse_one(weight=1, levels={"0": "n", "1": "y"}, scores=TABLE).level_choices == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("table", [TABLE, {"75": "broken"}, {}, "broken"])
def test_section_2_hurdles_and_negative_rows_are_binary_whatever_else_they_carry(table):
    assert not parse_one(hurdle=True, type="gradient", levels=table).graded
    assert not parse_one(weight=-1, scores=table).graded


def test_section_2_nulls_count_as_absent():
    assert not parse_one(type="gradient", levels=None).graded
    assert not parse_one(type="gradient", levels={"0": None, "1": None}).graded
    assert not parse_one(scores={"0": None, "0.5": None}).graded
    assert parse_one(type="gradient", levels={"0": "n", "0.33": None, "1": "y"}).level_choices == (0.0, 1.0)
    assert parse_one(type="gradient", levels={"0": None}, scores=TABLE).level_choices == (0.0, 0.5, 1.0)


def test_section_2_level_keys_are_decimals():
    assert parse_one(scores={0: "n", 0.25: "q", "1.00": "y"}).level_choices == (0.0, 0.25, 1.0)
    assert math.copysign(1, parse_one(scores={"-0": "n", "1": "y"}).level_choices[0]) == 1


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"0": "n", "75": "c", "100": "y"}, "outside 0..1"),
        ({"-0.5": "n", "1": "y"}, "outside 0..1"),
        ({"nan": "n", "1": "y"}, "not a number"),
        ({math.nan: "n", 1: "y"}, "not finite"),
        ({"0": "n", True: "y"}, "not a number"),
        ({"1-2": "n", "3-4": "y"}, "not a number"),
        ({"1": "y", "1.0": "y again", "0": "n"}, "two keys mean the level 1"),
        ({"0": "n", "1": 3}, "not text"),
        ({"1": "y"}, "fewer than two levels"),
        ({}, "fewer than two levels"),
        ([0, 1], "must map fractions to texts"),
        ("0/1", "must map fractions to texts"),
    ],
)
def test_section_2_a_table_that_cannot_be_read_is_refused(table, says):
    assert says in reason_of(scores=table)
    assert says in reason_of(weight=1, type="gradient", levels=table)


def test_section_2_a_key_that_stands_twice_in_json_is_refused():
    assert "'weight' stands twice" in problems_of('[{"text": "x", "weight": 1, "weight": 2}]')[0].reason
    text = '[{"text": "x", "scores": {"0": "a", "0": "b", "1": "c"}}]'
    assert "'0' stands twice" in problems_of(text)[0].reason


# --- all errors at once -----------------------------------------------------------------------------------------


def test_section_2_all_bad_rows_are_named_at_once_with_file_row_id_and_reason(tmp_path):
    rows = [
        ROW,
        {"weight": 1, "note": "n"},
        "a string",
        {"id": "w", "text": "x", "weight": "many", "hurdle": "no"},
        {"id": "t", "text": ["x"]},
        {"id": "l", "text": "x", "scores": {"1": "y"}},
        ROW,
    ]
    path = tmp_path / "rubric.json"
    path.write_text(json.dumps(rows), "utf-8")
    with pytest.raises(RubricError) as caught:
        RubricSpec.parse(path)
    found = [(problem.row, problem.id, problem.code) for problem in caught.value.problems]
    assert found == [
        (2, "R02", "no-text"),
        (3, "", "row-not-object"),
        (4, "w", "bad-weight"),
        (4, "w", "bad-hurdle"),
        (5, "t", "no-text"),
        (6, "l", "too-few-levels"),
        (7, "a", "duplicate-id"),
    ]
    message = str(caught.value)
    assert message.startswith(f"{path}: 6 rows cannot be read")
    for problem in caught.value.problems:
        assert f"row {problem.row}" in message
        assert problem.reason in message
    assert "the row has weight, note" in message


def test_section_2_an_error_survives_pickling():
    with pytest.raises(RubricError) as caught:
        RubricSpec.parse([{}])
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


def test_section_2_no_text_of_any_kind_is_an_error():
    for row in ({}, {"description": None}, {"description": ""}, {"text": " \n"}):
        (problem,) = problems_of([row])
        assert problem.code == "no-text"


def test_section_2_a_path_may_start_with_a_bracket(tmp_path, monkeypatch):
    (tmp_path / "[1].json").write_text(json.dumps([ROW]), "utf-8")
    monkeypatch.chdir(tmp_path)
    assert RubricSpec.parse(Path("[1].json")).ids == ("a",)
