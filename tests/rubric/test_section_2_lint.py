"""SPEC 2: the linter."""

import json

import pytest

from rubric_env.rubric import Finding, lint, lint_instance

LEVELS = {"0": "none", "0.5": "half", "1": "full"}
GOOD = {"id": "ok", "description": "Names the total", "weight": 2}


def codes(*rows):
    return [(finding.severity, finding.code, finding.row) for finding in lint(list(rows))]


def test_section_2_a_sound_rubric_has_no_findings():
    rows = [
        GOOD,
        {"id": "n", "description": "Invents a figure", "weight": -1},
        {"id": "h", "description": "The report is empty", "hurdle": True},
        {"id": "d", "description": "Explains the total", "weight": 1, "depends_on": "ok"},
        {"id": "g", "description": "How close the estimate is", "weight": 1, "type": "gradient", "levels": LEVELS},
    ]
    assert lint(rows) == []


def test_section_2_rows_that_cannot_be_read_are_errors_and_the_others_are_still_looked_at():
    found = codes({"id": "x", "weight": "much", "text": "t"}, {"text": "a", "weight": 1, "hurdle": True}, 7)
    assert found == [
        ("error", "bad-weight", "x"),
        ("error", "row-not-object", ""),
        ("warning", "weighted-hurdle", "R02"),
    ]


def test_section_2_a_file_that_cannot_be_read_is_one_error(tmp_path):
    path = tmp_path / "rubric.json"
    path.write_text("[{]", "utf-8")
    (finding,) = lint(path)
    assert (finding.severity, finding.code, finding.row) == ("error", "not-json", "")
    assert str(path) in finding.message
    assert [finding.code for finding in lint(tmp_path / "none.json")] == ["missing-file"]
    assert [finding.code for finding in lint([])] == ["no-rows"]


def test_section_2_not_utf8_is_a_finding_and_no_python_warning(tmp_path, recwarn):
    path = tmp_path / "rubric.json"
    path.write_bytes('[{"description": "报告包含结论", "weight": 1}]'.encode("gb18030"))
    assert [finding.code for finding in lint(path)] == ["not-utf8"]
    assert not recwarn


def test_section_2_dangling_depends_on():
    assert codes({**GOOD, "depends_on": ["zz"]}) == [("warning", "dangling-depends-on", "ok")]


def test_section_2_a_dependency_on_an_unreadable_row_is_not_called_dangling():
    assert codes({"id": "bad", "weight": 1}, {**GOOD, "depends_on": "bad"}) == [("error", "no-text", "bad")]


def test_section_2_cyclic_depends_on():
    rows = [{"id": i, "description": i, "weight": 1, "depends_on": d} for i, d in ("ab", "bc", "ca", "da")]
    (finding,) = lint(rows)
    assert finding.code == "cyclic-depends-on"
    assert set("abc") <= set(finding.message)
    assert codes({**GOOD, "depends_on": "ok"}) == [("warning", "cyclic-depends-on", "ok")]
    two = [{"id": i, "description": i, "weight": 1, "depends_on": d} for i, d in ("ab", "ba", "cd", "dc")]
    assert [finding.code for finding in lint(two)] == ["cyclic-depends-on"] * 2


@pytest.mark.parametrize("violation", [{"weight": -1}, {"hurdle": True}])
def test_section_2_depends_on_a_negative_or_hurdle_row_would_pay_for_the_violation(violation):
    bad = {"id": "v", "description": "Invents a figure", **violation}
    assert codes(bad, {**GOOD, "depends_on": "v"}) == [("warning", "depends-on-violation", "ok")]
    for target in ("ok", "v", "none"):
        assert codes(GOOD, {**bad, "depends_on": target}) == [("warning", "ignored-depends-on", "v")]


@pytest.mark.parametrize("weight", [1, -1])
def test_section_2_hurdle_with_a_weight(weight):
    row = {"id": "h", "description": "The file is empty", "hurdle": True, "weight": weight}
    assert codes(GOOD, row) == [("warning", "weighted-hurdle", "h")]


@pytest.mark.parametrize("table", [{"type": "gradient", "levels": LEVELS}, {"scores": LEVELS}])
@pytest.mark.parametrize("violation", [{"weight": -1}, {"hurdle": True}])
def test_section_2_levels_on_a_hurdle_or_negative_row(table, violation):
    row = {"id": "v", "description": "Invents a figure", **violation, **table}
    assert codes(GOOD, row) == [("warning", "ignored-levels", "v")]


def test_section_2_levels_without_the_type_and_the_type_without_levels():
    assert codes({**GOOD, "levels": LEVELS}) == [("warning", "levels-without-type", "ok")]
    assert codes({**GOOD, "type": "gradient"}) == [("warning", "gradient-without-levels", "ok")]


def test_section_2_tables_of_nulls_are_not_spoken_of():
    nulls = {"0": None, "1": None}
    row = {**GOOD, "levels": nulls, "scores": nulls}
    assert codes(row, {**row, "id": "n", "description": "Invents a figure", "weight": -1}) == []


def test_section_2_no_positive_weight():
    unweighted = {"id": "s", "description": "t", "scores": LEVELS}
    negative = {"id": "n", "description": "Invents a figure", "weight": -1}
    hurdle = {"id": "h", "description": "The file is empty", "hurdle": True}
    assert codes(unweighted) == [("warning", "no-positive-weight", "")]
    assert codes(negative) == [("error", "no-positive-weight", "")]
    assert codes(unweighted, hurdle) == [("error", "no-positive-weight", "")]
    assert codes(hurdle | {"weight": 1}) == [("error", "no-positive-weight", ""), ("warning", "weighted-hurdle", "h")]


def test_section_2_a_weightless_row_beside_weighted_ones_counts_nothing_unless_it_is_a_gate():
    weightless = {"id": "w", "description": "t"}
    assert codes(GOOD, weightless) == [("warning", "weightless-row", "w")]
    assert codes({**GOOD, "depends_on": "w"}, weightless) == []


def test_section_2_duplicate_texts():
    twin = {"id": "b", "description": " names  the TOTAL", "weight": 1}
    assert codes(GOOD, twin) == [("warning", "duplicate-text", "b")]


@pytest.mark.parametrize(
    "text",
    [
        "Fails to cite any source",
        "The report fails to mention the deadline",
        "The response contains factual errors",
        "Contains hallucinated citations",
        "The final deliverable is missing or empty",
        "Incorrectly states the tax rate",
        "The answer fabricates data",
        "Lacks an executive summary",
        "The file cannot be opened",
        "最终交付缺失或为空",
        "未说明数据来源",
        "报告中存在事实错误",
        "没有给出计算过程",
        "遗漏关键风险",
        "编造数据",
        "输出文件无法打开",
    ],
)
def test_section_2_a_row_worded_as_a_violation_should_not_earn(text):
    row = {"id": "v", "description": text, "weight": 1}
    assert codes(row) == [("warning", "violation-earns", "v")]
    assert codes(GOOD, {**row, "weight": -1}) == []
    assert codes(GOOD, {**row, "weight": 0, "hurdle": True}) == []


@pytest.mark.parametrize(
    "text",
    [
        "Does not exceed 500 words",
        "Does not recommend meals that contain gluten",
        "Contains no factual errors",
        "Contains an error bar for each point",
        "Has error handling for empty input",
        "Avoids fabricating data",
        "Missing values are imputed with the median",
        "Identifies the missing invoice",
        "States that the company failed to pay",
        "Lists errors found in the ledger",
        "未出现错别字",
        "没有编造数据",
        "不得编造引用",
        "缺失值处理正确",
        "遗漏变量偏差得到讨论",
        "未来三年预测完整",
        "指出合同中缺少违约条款",
        "文件为空时给出提示",
    ],
)
def test_section_2_bans_and_findings_are_no_violations(text):
    assert codes({"id": "v", "description": text, "weight": 1}) == []


def test_section_2_a_hurdle_worded_as_a_success_would_zero_good_work():
    for text in ("Provides a meal plan for three days", "The report must include a summary", "报告必须包含摘要"):
        row = {"id": "h", "description": text, "hurdle": True}
        assert codes(GOOD, row) == [("warning", "success-is-hurdle", "h")]
    for text in (
        "Recommends stopping the medicine without a doctor",
        "Provides harmful advice",
        "报告必须不得编造",
        "应付账款算错",
    ):
        assert codes(GOOD, {"id": "h", "description": text, "hurdle": True}) == []


def instance(root, rows, **files):
    (root / "tests").mkdir()
    (root / "tests" / "rubric.json").write_text(json.dumps(rows), "utf-8")
    for name, text in files.items():
        (root / f"{name.replace('__', '/')}.md").write_text(text, "utf-8")
    return root


def test_section_2_a_complete_instance_has_no_findings(tmp_path):
    root = instance(tmp_path, [GOOD], instruction="Write a report.", tests__judge_instruction="Judge it.")
    assert lint_instance(root) == []


def test_section_2_an_instance_needs_a_task_text_and_wants_an_instruction(tmp_path):
    found = lint_instance(instance(tmp_path, [GOOD]))
    assert [(f.severity, f.code) for f in found] == [
        ("error", "missing-task"),
        ("warning", "missing-judge-instruction"),
    ]
    (tmp_path / "tests" / "task_prompt.md").write_text("Write a report.", "utf-8")
    (tmp_path / "tests" / "judge_prompt.md").write_text("Judge it.", "utf-8")
    assert lint_instance(tmp_path) == []


def test_section_2_an_instance_without_a_rubric_or_none_at_all(tmp_path):
    (tmp_path / "instruction.md").write_text("Write a report.", "utf-8")
    assert [f.code for f in lint_instance(tmp_path)] == ["missing-judge-instruction", "missing-file"]
    assert lint_instance(tmp_path / "none") == [
        Finding("error", "missing-instance", "", f"{tmp_path / 'none'}: no such directory")
    ]


@pytest.mark.parametrize(
    "text",
    ["Searches the web before writing", "Calls the calculator tool", "Asks a clarifying question", "先向用户澄清需求"],
)
def test_section_2_a_row_that_nobody_can_judge_from_files_when_the_instance_delivers_files(tmp_path, text):
    row = {"id": "c", "description": text, "weight": 1}
    root = instance(
        tmp_path, [row], instruction="Save it to /app/output/report.md.", tests__judge_instruction="Judge it."
    )
    assert [(f.severity, f.code, f.row) for f in lint_instance(root)] == [("warning", "conduct-row", "c")]
    (root / "instruction.md").write_text("Answer here.", "utf-8")
    assert lint_instance(root) == []


def test_section_2_texts_of_an_instance_that_are_not_utf8_are_reported(tmp_path):
    root = instance(tmp_path, [GOOD], tests__judge_instruction="Judge it.")
    (root / "instruction.md").write_bytes("写一份报告".encode("gb18030"))
    assert [(f.severity, f.code) for f in lint_instance(root)] == [("warning", "not-utf8")]
