from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rubric_env.citations import Corpus

DOCUMENTS = {
    "KS-01": (
        "Kettle survey 2024",
        "https://www.kettles.example.org/survey/2024?year=2024",
        "# Kettle survey 2024\n\nOf 1,200 households 38.5 % own a kettle that is older than ten years. “Old kettles”\n"
        "— the agency writes — *use a third more electricity* than new ones, mostly because of limescale.\n",
    ),
    "KS-02": (
        "Kettle makers' press release",
        "https://makers.example.com/news/kettles",
        "New kettles save every family one hundred pounds a year, says the association of kettle makers today.\n",
    ),
    "KS-03": (
        "水壶能耗调查报告",
        "https://shuihu.example.cn/报告/2024",
        "二零二四年的调查显示，老旧水壶比新水壶多用三分之一的电，主要原因是水垢，而不是功率。\n",
    ),
}


def make_corpus(folder: Path, documents: dict[str, tuple[str, str, str]]) -> Path:
    """A folder with an index, one file a document."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, (title, url, text) in documents.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
        lines.append(json.dumps({"id": name, "title": title, "url": url, "date": "2024-05-01", "file": f"{name}.md"}))
    (folder / "index.jsonl").write_text("\n".join(lines), "utf-8")
    return folder


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.read(make_corpus(tmp_path / "corpus", DOCUMENTS))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Makes a corpus of files without an index, given as name=text."""

    def make(files: dict[str, str]) -> Path:
        root = tmp_path / "files"
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, "utf-8")
        return root

    return make
