"""SPEC 4: what a judge is told of a row."""

import json

import pytest

from rubric_env.rubric import RubricSpec, judge_row


def told(**fields):
    return judge_row(RubricSpec.parse([{"id": "a", "description": "The report cites a source", **fields}]).rows[0])


def test_section_4_own_fields_and_derived_ones():
    assert told(weight=3, tag="facts", note={"page": 3}) == {
        "id": "a",
        "description": "The report cites a source",
        "tag": "facts",
        "note": {"page": 3},
        "polarity": "positive",
        "hit_means": told()["hit_means"],
    }


def test_section_4_the_judge_never_sees_weights_gates_or_labels():
    row = told(
        weight=7.25,
        points=8.5,
        hurdle=False,
        depends_on="b",
        scores={"0": "n", "1": "y"},
        hit=True,
        level=1,
        empty=None,
    )
    assert row.keys() == {"id", "description", "polarity", "hit_means", "levels", "level_choices"}
    assert "7.25" not in json.dumps(row)


def test_section_4_an_alias_of_the_text_is_not_told_twice_and_another_text_is_told():
    row = judge_row(RubricSpec.parse([{"criterion": "c", "title": "t"}]).rows[0])
    assert row["description"] == "c"
    assert "criterion" not in row
    assert row["title"] == "t"


def test_section_4_derived_fields_replace_own_ones_of_that_name():
    row = told(polarity="positive", hit_means="the opposite", level_choices=[3], weight=-1)
    assert row["polarity"] == "negative"
    assert row["hit_means"] != "the opposite"
    assert "level_choices" not in row


def test_section_4_a_graded_row_carries_its_table():
    row = told(weight=1, type="gradient", levels={"1.0": "full", "0.25": "some", "0": "none"})
    assert row["levels"] == {"0": "none", "0.25": "some", "1": "full"}
    assert row["level_choices"] == [0, 0.25, 1]
    assert "type" not in row


def test_section_4_a_table_that_does_not_count_is_not_told():
    row = told(weight=-1, type="gradient", levels={"0": "n", "1": "y"}, scores={"0": "n", "1": "y"})
    assert row.keys() == {"id", "description", "polarity", "hit_means"}
    assert told(type="objective")["type"] == "objective"


@pytest.mark.parametrize(
    ("fields", "polarity"),
    [
        ({"weight": 1}, "positive"),
        ({"weight": 0}, "positive"),
        ({"weight": -1}, "negative"),
        ({"weight": 0, "hurdle": True}, "negative"),
        ({"weight": 5, "hurdle": True}, "negative"),
    ],
)
def test_section_4_polarity(fields, polarity):
    assert told(**fields)["polarity"] == polarity


KINDS = {
    "positive": {"weight": 1},
    "negative": {"weight": -1},
    "hurdle": {"hurdle": True},
    "graded": {"weight": 1, "scores": {"0": "n", "1": "y"}},
}


@pytest.mark.parametrize("kind", ["negative", "hurdle"])
def test_section_4_hit_means_of_a_violation_says_what_good_work_gets(kind):
    english = told(**KINDS[kind])["hit_means"]
    assert "requirement satisfied, or no such violation found, means hit=false" in english
    chinese = told(description="最终交付缺失或为空", **KINDS[kind])["hit_means"]
    assert "要求已满足，或没有发现此类违规，一律 hit=false" in chinese


def test_section_4_hit_means_has_a_form_for_each_kind_and_language():
    sentences = [told(**fields)["hit_means"] for fields in KINDS.values()]
    sentences += [told(description="报告注明来源", **fields)["hit_means"] for fields in KINDS.values()]
    assert len(set(sentences)) == 8
    for sentence in sentences:
        assert "hit=true" in sentence
        assert "weight" not in sentence and "point" not in sentence and "分值" not in sentence
        assert sentence.rstrip(".。").count(". ") == 0, "one sentence, but for the colon that opens it"


def test_section_4_hit_means_of_a_graded_row_ties_hit_to_the_level():
    assert "hit=true exactly when that level is above 0" in told(**KINDS["graded"])["hit_means"]
    assert "该档大于 0 时 hit=true" in told(description="报告注明来源", **KINDS["graded"])["hit_means"]


@pytest.mark.parametrize(
    ("description", "chinese"),
    [
        ("报告中 DCF 使用的 WACC 落在 [10%,12%] 区间", True),
        ("使用 TensorFlow Lite Converter 转换模型并导出", True),
        ("The report mentions 北京大学", False),
        ("The report cites 3 sources", False),
        ("レポートには結論が含まれている", False),
        ("42", False),
    ],
)
def test_section_4_hit_means_is_chinese_where_the_description_mainly_is(description, chinese):
    assert ("表示" in told(description=description)["hit_means"]) is chinese
