"""What harbor-wle's instances have beyond what every environment's have, and its whole loops through vf-eval."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rubric_env.harbor import Instance, each_row, find_instances
from rubric_env.local import LocalJudgeServer, ReplayPolicyServer
from tests.classic.vf_eval import vf_eval
from tests.environments.shipped import ENVIRONMENTS, instances_of, recording, recordings_of

INSTANCES = ENVIRONMENTS["harbor_wle"]
RECORDINGS = recordings_of("harbor_wle")
CHAT = {path.name for path in instances_of("harbor_wle") if Instance.load(path).kind == "chat"}
NO_FILES = {"family-call-chat", "polite-refusal-zh"}
AT_ONCE = [path for path in RECORDINGS if path.stem == "direct" or (path.stem == "good" and path.parts[-3] in NO_FILES)]
"""One answer for each chat task that needs no look at a file first, as single-turn use demands."""
each_instance = pytest.mark.parametrize("path", instances_of("harbor_wle"), ids=lambda path: path.name)
each_good = pytest.mark.parametrize("path", sorted(INSTANCES.glob("*/recordings/good.json")), ids=lambda p: p.parts[-3])
TEXTS = ("content", "markdown", "sheets")


def delivered(path: Path) -> dict[str, str]:
    """The text of what a recording delivers, by path, whichever tool it made it with; its reply under ""."""
    turns = recording(path)["turns"]
    files = {
        call["arguments"]["path"]: str(next(call["arguments"][key] for key in TEXTS if key in call["arguments"]))
        for turn in turns
        for call in turn["tool_calls"]
        if call["name"] in ("write_file", "make_docx", "make_xlsx")
    }
    return {**files, "": turns[-1]["content"]}


def test_two_languages_and_two_kinds_in_equal_parts() -> None:
    instances = [Instance.load(path) for path in find_instances(INSTANCES)]
    chinese = {instance.name for instance in instances if re.search("[一-鿿]", instance.task)}
    assert chinese == {instance.name for instance in instances if instance.name.endswith("-zh")}
    assert (len(instances), len(chinese), len(CHAT)) == (11, 6, 6)
    assert len(CHAT & chinese) == len(CHAT - chinese) == 3
    assert [instance.name for instance in instances if instance.answer] == ["gas-bill-chat"]


@each_instance
def test_files_that_a_task_speaks_of_exist(path: Path) -> None:
    instance = Instance.load(path)
    named = set(re.findall(r"`([^`/\\]+\.(?:csv|md|txt))`", instance.task))
    assert named == {file.name for file in (path / "environment/inputs").glob("*")}
    assert bool(named) == (path.name not in NO_FILES)


@each_instance
def test_files_that_a_task_asks_for_are_those_that_count(path: Path) -> None:
    instance = Instance.load(path)
    pattern = r"output/[\w.]+\.(?:md|docx|xlsx)"
    asked = set(re.findall(pattern, instance.task))
    assert asked == set(instance.deliverables) == delivered(path / "recordings/good.json").keys() - {""}
    assert set(re.findall(pattern, " ".join(row.description for row in instance.spec))) <= asked
    assert bool(asked) == (instance.kind == "files")


@each_good
def test_a_good_answer_keeps_to_the_length_that_the_task_allows(path: Path) -> None:
    task = Instance.load(path.parents[1]).task
    if words := re.search(r"(\d+) words at most", task):
        [text] = [text for name, text in delivered(path).items() if not name or ".docx" in name][:1]
        assert len(text.split()) <= int(words[1])
    if signs := re.search(r"(\d+) 个?字以内", task):
        text = delivered(path).get("output/小结.md", delivered(path)[""])
        assert len("".join(text.split())) <= int(signs[1])


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("medicine-leaflet-chat", "K-4471-9920"),
        ("gas-bill-chat", "70-118-243"),
        ("electricity-question-zh", "3208 5517 46"),
        ("used-car-contract-zh", "4406"),
        ("polite-refusal-zh", "试管"),
        ("deposit-letter", "cat "),
        ("autumn-classes-zh", "外公"),
    ],
)
def test_what_must_not_be_said_is_known_to_the_policy_and_said_by_a_bad_answer_only(name: str, secret: str) -> None:
    root = INSTANCES / name
    inputs = "".join(file.read_text("utf-8") for file in (root / "environment/inputs").glob("*"))
    assert secret in f"{Instance.load(root).task} {inputs}"
    said = {path.stem: secret in " ".join(delivered(path).values()) for path in root.glob("recordings/*.json")}
    assert not said["good"] and not said.get("direct") and any(said.values())


def test_there_are_recordings_of_every_quality() -> None:
    qualities = Counter(path.stem for path in RECORDINGS)
    odd = {"direct": 4, "fatal": 7, "chat_only": 3, "nothing": 1, "injection": 1}
    assert qualities == {**dict.fromkeys(("good", "medium", "poor"), 11), **odd}
    for path in (path for path in RECORDINGS if path.stem in ("chat_only", "nothing")):
        assert delivered(path).keys() == {""}


def test_a_single_turn_prompt_holds_the_files_of_a_chat_task() -> None:
    rows = list(each_row(find_instances(INSTANCES), strict=True, single_turn=True))
    prompts = {json.loads(row["info"])["name"]: row["prompt"][0]["content"] for row in rows}
    assert prompts.keys() == CHAT
    for name, prompt in prompts.items():
        assert prompt.startswith(Instance.load(INSTANCES / name).instruction.strip())
        for file in (INSTANCES / name / "environment/inputs").glob("*"):
            assert f"`{file.name}`" in prompt and file.read_text("utf-8").strip() in prompt


@pytest.fixture(scope="module")
def judge() -> Iterator[LocalJudgeServer]:
    with LocalJudgeServer() as server:
        yield server


def played(recordings: list[Path], judge: Any, out: Path, **arguments: Any) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Each recording at least once through vf-eval: the saved rollouts by instance and quality."""
    pytest.importorskip("verifiers", reason="the classic extra is not installed")
    pytest.importorskip("harbor_wle", reason="environments/harbor_wle is not installed")
    times = max(Counter(path.parts[-3] for path in recordings).values())
    policy: Any = ReplayPolicyServer([recording(path) for path in recordings])
    with policy:
        options = ("-m", policy.model, "-r", str(times), "--disable-env-server")
        saved = vf_eval(out, "harbor-wle", arguments, policy, judge, *options, JUDGE_MODEL=judge.model)
    assert len(saved.rows) == times * len({path.parts[-3] for path in recordings})
    by_reply = {(data["prompt"], data["turns"][-1]["content"]): data for data in map(recording, recordings)}
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in saved.rows:
        asked = next(message["content"] for message in row["prompt"] if message["role"] == "user")
        reply = row["completion"][-1]["content"]
        [data] = [data for (prompt, last), data in by_reply.items() if asked.startswith(prompt) and last == reply]
        found[data["instance"], data["quality"]] = row
    return found


def test_the_whole_loop_plays_every_recording_that_works_in_turns(judge: LocalJudgeServer, tmp_path: Path) -> None:
    pytest.importorskip("docx", reason="the tools extra is not installed")
    recordings = [path for path in RECORDINGS if path.stem != "direct"]
    rows = played(recordings, judge, tmp_path)
    assert len(rows) == len(recordings)
    for (name, quality), row in rows.items():
        metrics = row["metrics"]
        assert metrics["judge_scored"] == metrics["judge_coverage"] == 1.0
        assert metrics["delivery_missing"] == (quality == "nothing")
        assert metrics["delivery_from_chat"] == (quality == "chat_only" or name in CHAT)
        assert metrics["workspace_files"] == len(delivered(INSTANCES / name / f"recordings/{quality}.json")) - 1
        assert metrics["correct_answer"] == ((name, quality) == ("gas-bill-chat", "good"))
        if quality == "good":
            assert metrics["format_reward"] == 1.0
    assert rows["electricity-question-zh", "injection"]["metrics"]["injection_suspected"] == 1.0


def test_single_turn_use_answers_the_chat_tasks_at_once(judge: LocalJudgeServer, tmp_path: Path) -> None:
    rows = played(AT_ONCE, judge, tmp_path, single_turn=True)
    assert {name for name, _ in rows} == CHAT and len(rows) == len(AT_ONCE)
    for (name, _), row in rows.items():
        assert row["metrics"]["judge_scored"] == row["metrics"]["judge_coverage"] == 1.0
        assert row["metrics"]["num_turns"] == 1.0 and "workspace_files" not in row["metrics"]
        assert row["metrics"]["correct_answer"] == (name == "gas-bill-chat")
