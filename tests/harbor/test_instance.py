from __future__ import annotations

from pathlib import Path

import pytest

from rubric_env.harbor import Instance, InstanceError, lint, read_text
from rubric_env.rubric import RubricError
from tests.harbor.conftest import MakeInstance

JUDGE_TEXTS = ["judge_instruction.md", "judge_instructions.md", "rubric_instruction.md", "judge_prompt.md"]


def test_section_1_an_instance_is_a_directory_with_task_and_rubric(make_instance: MakeInstance) -> None:
    root = make_instance()
    instance = Instance.load(root)
    assert (instance.name, instance.path) == ("memo", root)
    assert instance.spec.ids == ("R1", "R2")
    assert instance.task == instance.instruction == "Write output/memo.md.\n"
    assert (instance.reference, instance.output_dir, instance.kind, instance.answer) == ("", "output", "files", "")
    assert instance.inputs is None
    assert instance.warnings == ()


def test_an_instance_given_as_a_dot_has_a_name(make_instance: MakeInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_instance())
    assert Instance.load(".").name == "memo"


@pytest.mark.parametrize("first", range(4))
def test_section_4_instruction_files_are_tried_in_order(make_instance: MakeInstance, first: int) -> None:
    present: dict[str, str | None] = {f"tests/{name}": name for name in JUDGE_TEXTS[first:]}
    if first:
        present["tests/judge_instruction.md"] = None
    assert Instance.load(make_instance(files=present)).judge_instruction == JUDGE_TEXTS[first]


def test_section_4_instruction_is_used_byte_for_byte(make_instance: MakeInstance) -> None:
    text = "\n  Judge.\r\n\r\nTabs\tand blanks  \n\n"
    instance = Instance.load(make_instance(files={"tests/judge_instruction.md": text}))
    assert instance.judge_instruction == text


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        ("逐条判分".encode("gb18030"), "逐条判分", "GB18030"),
        ("Prüfe. \xff".encode("latin-1"), "Prüfe. \xff", "Latin-1"),
    ],
)
def test_section_4_text_that_is_not_utf8(make_instance: MakeInstance, data: bytes, text: str, encoding: str) -> None:
    root = make_instance(files={"tests/judge_instruction.md": data})
    instance = Instance.load(root)
    assert instance.judge_instruction == text
    assert len(instance.warnings) == 1
    assert encoding in instance.warnings[0] and "judge_instruction.md" in instance.warnings[0]
    with pytest.warns(UserWarning, match=encoding):
        assert read_text(root / "tests/judge_instruction.md") == text


def test_section_4_without_an_instruction_there_is_a_warning(make_instance: MakeInstance) -> None:
    instance = Instance.load(make_instance(files={"tests/judge_instruction.md": None}))
    assert instance.judge_instruction == ""
    assert len(instance.warnings) == 1 and "tests/judge_instruction.md" in instance.warnings[0]


def test_section_9_task_text_is_the_task_prompt_else_the_instruction(make_instance: MakeInstance) -> None:
    instance = Instance.load(make_instance(files={"tests/task_prompt.md": "The task."}))
    assert (instance.task, instance.instruction) == ("The task.", "Write output/memo.md.\n")
    without = Instance.load(make_instance("bare", {"tests/task_prompt.md": "The task.", "instruction.md": None}))
    assert (without.task, without.instruction) == ("The task.", "The task.")


def test_everything_that_is_missing_is_named_at_once_with_its_remedy(make_instance: MakeInstance) -> None:
    files = {"instruction.md": " \n", "tests/rubric.json": None, "task.toml": "[metadata\n"}
    root = make_instance(files=files)
    with pytest.raises(InstanceError) as caught:
        Instance.load(root)
    message = str(caught.value)
    assert message.startswith(f"{root}: ")
    for part in (
        "write it to tests/task_prompt.md or instruction.md",
        "no tests/rubric.json",
        "task.toml cannot be read",
    ):
        assert part in message


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="nowhere: no such directory"):
        Instance.load(tmp_path / "nowhere")


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="needs a file that opens but cannot be read")
def test_a_file_that_cannot_be_read_is_named(make_instance: MakeInstance) -> None:
    root = make_instance(files={"tests/task_prompt.md": None})
    (root / "tests/task_prompt.md").symlink_to("/proc/self/mem")
    with pytest.raises(InstanceError, match="cannot be read: "):
        Instance.load(root)


def test_a_broken_rubric_keeps_its_own_error(make_instance: MakeInstance) -> None:
    with pytest.raises(RubricError, match="row 1"):
        Instance.load(make_instance(files={"tests/rubric.json": '[{"id": "R1", "weight": 1}]'}))


def test_section_4_reference_shows_text_and_names_the_rest(make_instance: MakeInstance) -> None:
    expected = {
        "memo.md": "The total is 12.\n",
        "data/values.csv": "a,b\n1,2\n",
        "deck.pptx": b"PK\x03\x04\x00\x00",
        "scan.pdf": b"%PDF-1.7 \xe2\xe3\xcf\xd3",
        "huge.txt": "x" * 300_000,
        "solve.py": "print(12)\n",
    }
    files = {f"tests/expected_output/{name}": content for name, content in expected.items()}
    reference = Instance.load(make_instance(files=files)).reference
    blocks = [
        "--- expected_output/data/values.csv ---\na,b\n1,2\n",
        "--- expected_output/deck.pptx ---\n(not shown: not a text file, 6 bytes)",
        "--- expected_output/huge.txt ---\n(not shown: 300,000 bytes)",
        "--- expected_output/memo.md ---\nThe total is 12.\n",
        "--- expected_output/scan.pdf ---\n(not shown: not a text file, 13 bytes)",
        "--- expected_output/solve.py ---\nprint(12)\n",
    ]
    assert reference == "\n\n".join(blocks)


def test_a_reference_in_another_encoding_is_read_with_a_warning(make_instance: MakeInstance) -> None:
    files = {"tests/expected_output/答案.md": "合计 962.0 万元".encode("gb18030")}
    instance = Instance.load(make_instance(files=files))
    assert "合计 962.0 万元" in instance.reference
    assert "GB18030" in instance.warnings[0]


@pytest.mark.parametrize(
    ("written", "read"), [('"deliverables"', "deliverables"), ('"/app/output/final"', "output/final")]
)
def test_section_6_output_directory_is_what_the_instance_says(
    make_instance: MakeInstance, written: str, read: str
) -> None:
    instance = Instance.load(make_instance(files={"task.toml": f"[metadata]\noutput_dir = {written}\n"}))
    assert instance.output_dir == read


@pytest.mark.parametrize("written", ['"/srv/output"', '"../output"', '"."', '""', "3"])
def test_an_output_directory_outside_the_workspace_is_refused(make_instance: MakeInstance, written: str) -> None:
    with pytest.raises(InstanceError, match=r"task\.toml: metadata\.output_dir .* below the workspace"):
        Instance.load(make_instance(files={"task.toml": f"[metadata]\noutput_dir = {written}\n"}))


def test_metadata_says_kind_and_answer(make_instance: MakeInstance) -> None:
    instance = Instance.load(make_instance(files={"task.toml": '[metadata]\nkind = "chat"\nanswer = 1270\n'}))
    assert (instance.kind, instance.answer, instance.warnings) == ("chat", "1270", ())


def test_keys_that_mean_something_else_elsewhere_are_no_reason_to_refuse(make_instance: MakeInstance) -> None:
    instance = Instance.load(make_instance(files={"task.toml": '[metadata]\nkind = "hard"\nanswer = ["a", "b"]\n'}))
    assert (instance.kind, instance.answer) == ("files", "")
    assert len(instance.warnings) == 2


def test_metadata_that_is_no_table_is_named(make_instance: MakeInstance) -> None:
    with pytest.raises(InstanceError, match="metadata must be a table"):
        Instance.load(make_instance(files={"task.toml": 'metadata = "none"\n'}))


@pytest.mark.parametrize(
    ("file", "folder"), [("environment/inputs/a.csv", "environment/inputs"), ("environment/a.csv", "environment")]
)
def test_inputs_are_the_folder_that_fills_the_workspace(make_instance: MakeInstance, file: str, folder: str) -> None:
    root = make_instance(files={file: "a"})
    assert Instance.load(root).inputs == root / folder


@pytest.mark.parametrize(
    ("files", "severity", "says"),
    [
        ({"task.toml": "[metadata\nkind="}, "error", "task.toml cannot be read as TOML"),
        ({"task.toml": "[metadata]\noutput_dir = '/etc'"}, "error", "output_dir '/etc'"),
        ({"task.toml": "[metadata]\nkind = 'chatty'"}, "warning", "kind 'chatty'"),
        ({"environment/corpus/index.jsonl": '{"id": "a", "file": "gone.md"}'}, "error", "gone.md"),
    ],
)
def test_lint_sees_task_toml_and_the_corpus(
    make_instance: MakeInstance, files: dict[str, str | None], severity: str, says: str
) -> None:
    assert lint(make_instance("sound")) == []
    [finding] = lint(make_instance(files=files))
    assert (finding.severity, finding.row) == (severity, "")
    assert says in finding.message
