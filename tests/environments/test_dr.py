"""harbor-dr: its corpora and recordings, and the whole loop through vf-eval with search, report and citation check."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric_env.citations import check_citations, corpus_problems, load_corpus
from rubric_env.harbor import Instance
from rubric_env.local import LocalJudgeServer, ReplayPolicyServer
from tests.environments.shipped import instances_of, recording, recordings_of, written_files

INSTANCES = instances_of("harbor_dr")
RECORDINGS = recordings_of("harbor_dr")
ODD = {"fabricated", "dangling", "misquoted"}
each_instance = pytest.mark.parametrize("path", INSTANCES, ids=lambda path: path.name)
each_recording = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")


def report_of(path: Path) -> str:
    return written_files(path).get("output/report.md", "")


def test_four_english_and_two_chinese_tasks_in_several_forms_of_citation() -> None:
    tasks = [Instance.load(path).task for path in INSTANCES]
    assert sum(bool(re.search("[一-鿿]", task)) for task in tasks) == 2 and len(tasks) == 6
    assert {path.stem for path in RECORDINGS} >= {"good", "medium", "poor", "chat_only", "injection", *ODD}


@each_instance
def test_a_corpus_is_whole_and_stays_out_of_the_workspace(path: Path) -> None:
    instance = Instance.load(path)
    assert instance.corpus == path / "environment/corpus"
    assert corpus_problems(instance.corpus) == []
    corpus = load_corpus(instance.corpus)
    assert 8 <= len(corpus) <= 15
    assert all(document.url and document.date and 150 <= len(document.text) <= 2_500 for document in corpus)
    assert instance.deliverables == ("output/report.md",)


@each_instance
def test_every_citation_and_quote_of_the_good_report_holds(path: Path) -> None:
    good = path / "recordings/good.json"
    report = check_citations(report_of(good), load_corpus(path / "environment/corpus"))
    assert {citation.verdict for citation in report.citations} == {"resolved"}
    assert {quote.verdict for quote in report.quotes} == {"found"}
    assert report.sources == () or all(source.document and source.cited for source in report.sources)
    assert report.score == 1.0 and len(report.documents) >= 7
    text = report_of(good)
    length = len(re.findall("[一-鿿]", text)) if path.name.endswith("-zh") else len(text.split())
    assert (800 if path.name.endswith("-zh") else 600) <= length <= (1_500 if path.name.endswith("-zh") else 1_200)


@each_recording
def test_only_reports_with_invented_citations_or_quotes_fail_the_check(path: Path) -> None:
    report = check_citations(report_of(path), load_corpus(path.parents[1] / "environment/corpus"))
    bad = [c for c in report.citations if c.verdict != "resolved"] or [q for q in report.quotes if q.verdict != "found"]
    assert bool(bad) == (path.stem in ODD)
    if path.stem in ODD:
        assert report.score < 0.3


@pytest.mark.parametrize("quality", ["good", "medium"])
@each_instance
def test_an_honest_recording_cites_only_what_it_opened(path: Path, quality: str) -> None:
    path = path / f"recordings/{quality}.json"
    calls = [call for turn in recording(path)["turns"] for call in turn["tool_calls"]]
    corpus = load_corpus(path.parents[1] / "environment/corpus")
    opened = {corpus.find(c["arguments"]["id"]) for c in calls if c["name"] == "open_document"}
    assert {corpus.find(name) for name in check_citations(report_of(path), corpus).documents} <= opened


def test_the_whole_loop_tells_good_reports_from_fabricated_ones(tmp_path: Path) -> None:
    pytest.importorskip("verifiers", reason="the classic extra is not installed")
    harbor_dr = pytest.importorskip("harbor_dr", reason="environments/harbor_dr is not installed")
    name = "heat-pump-terraces"
    recordings = [recording(path) for path in RECORDINGS if path.parts[-3] == name]
    with LocalJudgeServer() as judge, ReplayPolicyServer(recordings) as policy:
        rows = vf_eval(policy, judge, tmp_path, Path(harbor_dr.__file__).parent / "instances" / name)
    by_quality = {quality_of(row, recordings): row for row in rows}
    assert by_quality.keys() == {"good", "medium", "poor", "fabricated"}
    for quality, row in by_quality.items():
        metrics = row["metrics"]
        assert row["error"] is None and metrics["citation_checked"] == metrics["judge_scored"] == 1.0
        assert row["reward"] == pytest.approx(metrics["rubric_reward"] + 0.5 * metrics["citation_check"])
        assert metrics["citations_total"] == len(row["citation_report"]["citations"])
        assert (metrics["citation_check"] < 0.5) == (quality == "fabricated")
    good, bad = by_quality["good"], by_quality["fabricated"]
    assert good["reward"] == max(row["reward"] for row in rows)
    assert good["metrics"]["quotes_found"] == good["metrics"]["quotes_total"] > 0 == bad["metrics"]["quotes_found"]
    assert good["metrics"]["citations_unopened"] == 0.0 < bad["metrics"]["citations_unopened"]
    assert {item["verdict"] for item in bad["citation_report"]["quotes"]} == {"not_found"}
    searched = [m for m in good["completion"] if m["role"] == "tool" and "1. [HP-01]" in m["content"]]
    assert searched and all(len(m["content"]) < 25_000 for m in good["completion"] if m["role"] == "tool")


def quality_of(row: dict[str, Any], recordings: list[dict[str, Any]]) -> str:
    last = row["completion"][-1]["content"]
    return next(str(r["quality"]) for r in recordings if r["turns"][-1]["content"] == last)


def vf_eval(policy: ReplayPolicyServer, judge: LocalJudgeServer, out: Path, instance: Path) -> list[dict[str, Any]]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("JUDGE_", "OPENAI_"))}
    known = {"JUDGE_API_KEY": "k", "JUDGE_BASE_URL": judge.base_url, "JUDGE_MODEL": judge.model, "POLICY_KEY": "k"}
    command = [
        *(str(Path(sys.executable).parent / "vf-eval"), "harbor-dr", "-m", policy.model, "-b", policy.base_url),
        *("-k", "POLICY_KEY", "-n", "1", "-r", "4", "-s", "-d", "-C", "citation_report", "--disable-env-server"),
        *("-o", str(out), "-a", json.dumps({"instances": str(instance), "citation_weight": 0.5})),
    ]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        command, env={**clean, **known, **offline}, cwd=out, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return [json.loads(line) for file in out.rglob("results.jsonl") for line in file.read_text("utf-8").splitlines()]
