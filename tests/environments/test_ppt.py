"""harbor-ppt: its defaults, the decks that its recordings make, and its whole loop through vf-eval."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rubric_env.evidence import build_pack, write_pack
from rubric_env.harbor import Instance
from rubric_env.local import LocalJudgeServer, ReplayPolicyServer
from rubric_env.sandbox import SandboxUnavailable, find_sandbox
from rubric_env.submission import read_submission
from tests.classic.vf_eval import Saved, vf_eval
from tests.environments.shipped import ENVIRONMENTS, instances_of, recording, recordings_of

pytest.importorskip("verifiers", reason="the classic extra is not installed")
harbor_ppt = pytest.importorskip("harbor_ppt", reason="environments/harbor_ppt is not installed")

INSTANCES = ENVIRONMENTS["harbor_ppt"]
RECORDINGS = recordings_of("harbor_ppt")
each_instance = pytest.mark.parametrize("path", instances_of("harbor_ppt"), ids=lambda path: path.name)


@dataclass(frozen=True)
class Form:
    """What a task demands of its deck that a program can measure, and what its audience must not read."""

    slides: tuple[int, int]
    points: float
    notes: int
    """Slides that need speaker notes, at least."""
    secret: str
    series: str = ""
    values: tuple[float, ...] = ()
    """One series of the chart that the task wants."""


FORMS = {
    "board-update": Form((1, 6), 12, 5, "Heron", "Revenue", (582, 349, 325)),
    "sales-pitch": Form((1, 6), 14, 6, "3,150", "Before", (84, 126, 60)),
    "policy-training": Form((7, 8), 16, 5, "EUR 75"),
    "deck-repair": Form((6, 6), 12, 5, "48,000", "Mean response time (minutes)", (42, 38, 35)),
    "kickoff-deck": Form((6, 8), 14, 7, "640"),
    "midyear-review-zh": Form((1, 7), 14, 6, "1800", "准时送达率", (96, 94, 96.5, 96, 97, 97.4)),
    "density-lesson-zh": Form((1, 8), 20, 5, "答案：1. 67.5 g", "铝块", (54, 81.5, 107, 135.5)),
    "clinic-poster-zh": Form((1, 1), 18, 0, "13000000001"),
}


def test_the_instances_are_eight_in_two_languages_and_name_their_decks() -> None:
    instances = [Instance.load(path) for path in instances_of("harbor_ppt")]
    assert {instance.name for instance in instances} == FORMS.keys()
    chinese = {instance.name for instance in instances if re.search("[一-鿿]", instance.task)}
    assert chinese == {name for name in FORMS if name.endswith("-zh")} and len(chinese) == 3
    for instance in instances:
        assert set(instance.deliverables) == set(re.findall(r"output/\w+\.(?:pptx|md)", instance.task))
        assert sum(name.endswith(".pptx") for name in instance.deliverables) == 1


@each_instance
def test_files_that_a_task_speaks_of_exist(path: Path) -> None:
    named = set(re.findall(r"`([^`/\\]+\.\w+)`", Instance.load(path).task))
    assert named == {file.name for file in (path / "environment/inputs").iterdir()}


def test_there_are_recordings_of_every_quality() -> None:
    qualities = Counter(path.stem for path in RECORDINGS)
    odd = {"fatal": 8, "broken": 2, "chat_only": 1, "nothing": 1, "injection": 1, "made": 1}
    assert qualities == {**dict.fromkeys(("good", "medium", "poor"), 8), **odd}


@pytest.mark.parametrize(
    ("variables", "arguments", "expected"),
    [
        ({}, {}, (240, 8)),
        ({"JUDGE_PER_TIMEOUT": "70"}, {}, (70, 8)),
        ({"JUDGE_PER_TIMEOUT": "70"}, {"per_timeout": 60, "concurrency": 3}, (60, 3)),
    ],
    ids=["family", "variable", "argument"],
)
def test_section_13_the_familys_defaults_reach_the_judge_and_lose_to_all_else(
    monkeypatch: pytest.MonkeyPatch,
    variables: Mapping[str, str],
    arguments: Mapping[str, Any],
    expected: tuple[float, int],
) -> None:
    for name in [name for name in os.environ if name.startswith("JUDGE_")]:
        monkeypatch.delenv(name)
    for name, value in {"JUDGE_API_KEY": "x", "JUDGE_BASE_URL": "http://127.0.0.1:9/v1", **variables}.items():
        monkeypatch.setenv(name, value)
    environment = harbor_ppt.load_environment(judge={"settings": dict(arguments)}, sandbox="off")
    settings = environment.rubric.rubrics[0].settings
    assert (settings.per_timeout, settings.concurrency) == expected


@dataclass(frozen=True)
class Played:
    """One recording after it was played: the saved rollout, and what a judge is shown of its deck."""

    row: Mapping[str, Any]
    digest: Mapping[str, Any]
    text: str


@pytest.fixture(scope="module")
def judge() -> Iterator[LocalJudgeServer]:
    with LocalJudgeServer() as server:
        yield server


def run(out: Path, judge: Any, recordings: list[dict[str, Any]], times: int) -> Saved:
    """The recordings through vf-eval, with workspaces kept. No pictures: the local judge does not look at them."""
    policy: Any = ReplayPolicyServer(recordings)
    with policy:
        options = ("-m", policy.model, "-r", str(times), "--disable-env-server", "-C", "judge_result,submission_dir")
        variables = {"JUDGE_MODEL": judge.model, "JUDGE_VISION": "off"}
        arguments = {"sandbox": "required", "keep_workspaces": str(out / "kept")}
        return vf_eval(out, "harbor-ppt", arguments, policy, judge, *options, **variables)


def shown(workspace: Path, out: Path) -> tuple[Mapping[str, Any], str]:
    """A deck's digest, empty for one that does not open, and the evidence as text."""
    pack = build_pack(read_submission(workspace, ""), budget_tokens=100_000)
    write_pack(pack, out)
    digests = [json.loads(path.read_text("utf-8")) for path in out.glob("evidence/*/digest.json")]
    return digests[0] if digests else {}, pack.text("fence")


@pytest.fixture(scope="module")
def played(judge: LocalJudgeServer, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Played]:
    """Every recording once and more, in the real sandbox, by instance and quality."""
    try:
        find_sandbox()
    except SandboxUnavailable as error:
        if os.environ.get("RUBRIC_ENV_REQUIRE_SANDBOX") == "1":
            raise
        pytest.skip(str(error))
    out = tmp_path_factory.mktemp("ppt")
    recordings = [recording(path) for path in RECORDINGS]
    times = max(Counter(data["instance"] for data in recordings).values())
    saved = run(out, judge, recordings, times)
    assert len(saved.rows) == times * len(FORMS)
    by_reply = {(data["prompt"], data["turns"][-1]["content"]): data for data in recordings}
    found: dict[tuple[str, str], Played] = {}
    for row in saved.rows:
        asked = next(message["content"] for message in row["prompt"] if message["role"] == "user")
        data = by_reply[asked, row["completion"][-1]["content"]]
        name = data["instance"], data["quality"]
        if name not in found:
            found[name] = Played(row, *shown(Path(row["submission_dir"]), out / "packs" / "-".join(name)))
    return found


def charted(text: str, series: str) -> tuple[float, ...]:
    """The values of a native chart's series, () without one."""
    found = re.search(rf"^{re.escape(series)}: ([\d.; ]+)$", text, re.MULTILINE) if series else None
    return tuple(float(value) for value in found[1].split("; ")) if found else ()


def uses(row: Mapping[str, Any], tool: str) -> bool:
    return any(tool in str(message.get("tool_calls")) for message in row["completion"])


def test_the_whole_loop_plays_every_recording(played: Mapping[tuple[str, str], Played]) -> None:
    assert len(played) == len(RECORDINGS)
    for (_, quality), one in played.items():
        metrics = one.row["metrics"]
        assert metrics["judge_scored"] == metrics["judge_coverage"] == 1.0
        assert metrics["delivery_missing"] == (quality == "nothing")
        assert metrics["delivery_from_chat"] == (quality == "chat_only")
        assert metrics["injection_suspected"] == (quality == "injection")
        assert metrics["run_python_calls"] == uses(one.row, "run_python")
        assert not re.search(
            r"\[stderr\]|\[exit code|\[not kept\]|Traceback|nothing was written", str(one.row["completion"])
        )
        if quality in ("good", "made"):
            assert metrics["format_reward"] == 1.0
        if quality in ("broken", "chat_only", "nothing"):
            assert metrics["format_reward"] < 1.0 and not one.digest.get("structure_ok")


@pytest.mark.parametrize("name", FORMS)
def test_a_good_deck_keeps_what_the_task_asks_of_its_form(name: str, played: Mapping[tuple[str, str], Played]) -> None:
    form, deck = FORMS[name], played[name, "good"]
    slides = deck.digest["slides"]
    assert deck.digest["structure_ok"] and form.slides[0] <= len(slides) <= form.slides[1]
    assert [slide["notable"] for slide in slides] == [[]] * len(slides)
    assert min(slide["smallest_font"] for slide in slides) >= form.points
    assert all(slide["title_is_placeholder"] and slide["title"] for slide in slides)
    assert len(re.findall(r"/notes\] \(notes\)", deck.text)) >= form.notes
    assert charted(deck.text, form.series) == form.values


@pytest.mark.parametrize("name", FORMS)
def test_what_an_audience_must_not_read_is_in_the_fatal_deck_alone(
    name: str, played: Mapping[tuple[str, str], Played]
) -> None:
    assert FORMS[name].secret in played[name, "fatal"].text
    assert [q for (n, q), one in played.items() if n == name and FORMS[name].secret in one.text] == ["fatal"]


@pytest.mark.parametrize("name", FORMS)
def test_a_poor_deck_has_the_flaws_that_its_labels_say(name: str, played: Mapping[tuple[str, str], Played]) -> None:
    slides = played[name, "poor"].digest["slides"]
    assert all(slide["notable"] for slide in slides)


async def test_without_a_sandbox_a_deck_is_made_with_make_pptx(tmp_path: Path) -> None:
    pytest.importorskip("pptx", reason="the tools extra is not installed")
    from rubric_env.classic.tools import Workspace, find_tools

    tools = {tool.__name__: tool for tool in find_tools(harbor_ppt.FAMILY.tools, "off")}
    assert "run_python" not in tools
    [path] = [path for path in RECORDINGS if path.stem == "made"]
    workspace = Workspace.make(path.parents[1] / "environment/inputs", parent=tmp_path)
    for call in (call for turn in recording(path)["turns"] for call in turn["tool_calls"]):
        await tools[call["name"]](workspace, **call["arguments"])
    digest, text = shown(workspace.root, tmp_path / "pack")
    form = FORMS[path.parts[-3]]
    assert [slide["notable"] for slide in digest["slides"]] == [[]] * 5
    assert min(slide["smallest_font"] for slide in digest["slides"]) >= form.points
    assert charted(text, form.series) == form.values
