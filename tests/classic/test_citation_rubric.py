"""The citation check as a rubric: its figures, and whose failure a failed check is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

vf = pytest.importorskip("verifiers", reason="the classic extra is not installed")

from rubric_env.classic import CitationRubric, HarborJudgeError  # noqa: E402
from rubric_env.classic._citations import FIGURES  # noqa: E402
from tests.citations.conftest import DOCUMENTS, make_corpus  # noqa: E402

GOOD = "A [KS-01]. B [KS-02]. C “老旧水壶比新水壶多用三分之一的电，主要原因是水垢” [KS-03].\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return make_corpus(tmp_path / "corpus", DOCUMENTS)


def state(tmp_path: Path, corpus: Path | None, files: dict[str, str], completion: Any = (), **extra: Any) -> Any:
    for name, text in {"output/.keep": "", **files}.items():
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text, "utf-8")
    made = vf.State()
    made.update(
        prompt=[{"role": "user", "content": "Research."}],
        completion=list(completion),
        answer="",
        info=json.dumps({"corpus": str(corpus)} if corpus else {}),
        task={},
        trajectory=[],
        timing=None,
        metrics=None,
        error=None,
        submission_dir=str(tmp_path / "work"),
        output_dir="output",
        **extra,
    )
    return made


async def scored(one: Any, weight: float = 1.0, rubric: Any = None) -> Any:
    rubric = rubric or CitationRubric(weight)
    await rubric.score_group([one])
    await rubric.cleanup(one)
    return one


def call(name: str, identity: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }


async def test_a_report_is_scored_and_every_citation_is_kept_for_people(tmp_path: Path, corpus: Path) -> None:
    done = await scored(state(tmp_path, corpus, {"output/report.md": GOOD}))
    assert done["reward"] == 1.0
    assert {name: done["metrics"][name] for name in FIGURES} == {
        "citation_checked": 1.0,
        "citations_total": 3.0,
        "citations_resolved": 3.0,
        "citations_unopened": 3.0,
        "quotes_total": 1.0,
        "quotes_found": 1.0,
        "sources_cited": 3.0,
    }
    report = json.loads(json.dumps(done["citation_report"]))
    assert [item["document"] for item in report["citations"]] == ["KS-01", "KS-02", "KS-03"]
    assert report["quotes"][0]["verdict"] == "found"
    assert not [key for key in done if key.startswith("_citation")]


async def test_weight_zero_makes_it_a_metric_and_one_rollout_scores_alone(tmp_path: Path, corpus: Path) -> None:
    one = state(tmp_path, corpus, {"output/report.md": GOOD})
    rubric = CitationRubric()
    await rubric.score_rollout(one)
    assert (one["reward"], one["metrics"]["citation_check"]) == (0.0, 1.0)


async def test_documents_that_were_opened_or_among_results_count_as_seen(tmp_path: Path, corpus: Path) -> None:
    talk = [
        call("search_corpus", "a", query="kettle"),
        {"role": "tool", "tool_call_id": "a", "content": "1. [KS-01] Kettle survey 2024\n   …"},
        call("open_document", "b", id="https://makers.example.com/news/kettles/"),
        {"role": "tool", "tool_call_id": "b", "content": "1. [KS-03] is named in the text of a document"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "function": {"name": "open_document", "arguments": "{"}}],
        },
    ]
    done = await scored(state(tmp_path, corpus, {"output/report.md": GOOD}, talk))
    assert done["metrics"]["citations_unopened"] == 1.0
    assert done["citation_report"]["unopened"] == ["KS-03"]


async def test_a_reply_stands_in_for_a_report_and_nothing_delivered_scores_zero(tmp_path: Path, corpus: Path) -> None:
    reply = [{"role": "assistant", "content": GOOD}]
    assert (await scored(state(tmp_path, corpus, {}, reply)))["reward"] == 1.0
    nothing = await scored(state(tmp_path, corpus, {}))
    assert (nothing["reward"], nothing["metrics"]["citation_checked"], nothing["error"]) == (0.0, 1.0, None)
    other = await scored(state(tmp_path, corpus, {"output/report.md": "Nothing cited.", "notes.md": GOOD}, reply))
    assert other["reward"] == 0.0


async def test_files_that_are_no_report_or_cannot_be_read_cite_nothing(tmp_path: Path, corpus: Path) -> None:
    files = {
        "output/data.csv": "a [KS-01]",
        "output/report.docx": "no document",
        "output/report.html": f"<p>{GOOD}</p>",
    }
    done = await scored(state(tmp_path, corpus, files))
    assert (done["reward"], done["metrics"]["citations_total"], done["error"]) == (1.0, 3.0, None)


async def test_without_a_corpus_or_after_an_error_there_is_nothing_to_check(tmp_path: Path, corpus: Path) -> None:
    for one in (
        state(tmp_path, None, {"output/report.md": GOOD}),
        state(tmp_path, corpus, {"output/report.md": GOOD}) | {"error": vf.InfraError("before")},
    ):
        before = one["error"]
        done = await scored(one)
        assert done["reward"] == 0.0 and done["error"] is before
        assert all(done["metrics"][name] == 0.0 for name in FIGURES)


async def test_a_check_that_fails_marks_the_rollout_only_where_it_has_a_weight(tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    marked = await scored(state(tmp_path, tmp_path / "broken", {"output/report.md": GOOD}))
    assert isinstance(marked["error"], HarborJudgeError) and "no document in it" in str(marked["error"])
    metric = await scored(state(tmp_path, tmp_path / "broken", {"output/report.md": GOOD}), weight=0.0)
    assert metric["error"] is None and metric["metrics"]["citation_checked"] == 0.0


async def test_in_a_group_with_others_rewards_add_and_metrics_keep_their_names(tmp_path: Path, corpus: Path) -> None:
    async def half(completion: Any) -> float:
        return 0.5

    group = vf.RubricGroup([vf.Rubric(funcs=[half]), CitationRubric(0.25)])
    done = await scored(state(tmp_path, corpus, {"output/report.md": GOOD}), rubric=group)
    assert done["reward"] == pytest.approx(0.75)
    assert {"half", "citation_check", *FIGURES} <= done["metrics"].keys()
    assert all(math.isfinite(value) for value in done["metrics"].values())


@pytest.mark.parametrize("weight", ["much", float("nan"), None, True])
def test_a_weight_that_is_no_number_is_refused_in_one_line(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"citation_weight = .*: a finite number is expected"):
        CitationRubric(weight)
