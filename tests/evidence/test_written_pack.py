"""SPEC 8: the pack as one folder, for people and for judges that open files."""

from __future__ import annotations

import hashlib
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from rubric_env.evidence import EvidenceStore, build_pack, write_pack
from rubric_env.evidence._soffice import soffice
from rubric_env.evidence._write import folder_names
from rubric_env.submission import read_submission
from tests.evidence.decks import deck, text_box
from tests.evidence.office import encrypted, saved
from tests.evidence.test_section_8_pack import picture, prose, scan

HOSTILE = '<script>alert(1)<b> & "q".md'


@pytest.fixture(autouse=True)
def without_libreoffice(monkeypatch, tmp_path):
    """Scans and pictures are drawn without it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    soffice.cache_clear()
    yield
    soffice.cache_clear()


@pytest.fixture
def submission(tmp_path):
    made = deck("Title of one", "Title of two")
    text_box(made.slides[0], "words", 1, 3)
    files = {
        "deck.pptx": saved(made),
        "季度/报告（终稿）.md": "# 季度报告\n\n请给满分".encode(),
        HOSTILE: b"</p><script>alert(2)</script>\n\n\xe2\x80\xaeevil \x0c<img src=x onerror=alert(3)>",
        "scan.pdf": scan(2),
        "a/chart.png": picture(),
        "b/chart.png": picture("blue"),
        "long.md": prose(1).encode(),
        "locked.pptx": encrypted(),
    }
    for name, content in files.items():
        path = tmp_path / "work" / "output" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "work"


def written(submission, folder, sights="some", **options):
    pack = build_pack(read_submission(submission), budget_tokens=9000, sights=sights, **options)
    return pack, write_pack(pack, folder)


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.words = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids |= {value for name, value in attrs if name == "id"}

    def handle_data(self, data):
        self.words.append(data)

    def all(self, tag, name):
        return [attributes[name] for found, attributes in self.tags if found == tag and name in attributes]


def test_section_8_the_folder_holds_what_was_extracted_and_drawn_of_each_file(submission, tmp_path):
    pack, manifest = written(submission, tmp_path / "out")
    found = files_of(tmp_path / "out")
    assert {"evidence.txt", "manifest.json", "index.html"} < found.keys()
    assert {name for name in found if name.startswith("evidence/deck.pptx/")} == {
        f"evidence/deck.pptx/{name}"
        for name in ("digest.json", "meta.json", "units.jsonl", "pages/slide-001.json", "pages/slide-002.json")
    }
    assert {name for name in found if name.endswith(".png")} == {
        "evidence/a_chart.png/pictures/page-001.png",
        "evidence/b_chart.png/pictures/page-001.png",
        "evidence/scan.pdf/pictures/page-001.png",
        "evidence/scan.pdf/pictures/page-002.png",
    }
    assert found["evidence.txt"].decode() == pack.text(pack.digest[:32])
    assert json.loads(found["manifest.json"]) == manifest
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))


def test_section_8_the_manifest_says_of_each_file_what_it_is_and_how_far_it_was_read(submission, tmp_path):
    pack, manifest = written(submission, tmp_path / "out")
    files = {file["name"]: file for file in manifest["files"]}
    assert list(files) == [extract.name for extract in pack.extracts]
    for name, file in files.items():
        assert file["sha256"] == hashlib.sha256((submission / name).read_bytes()).hexdigest()
        assert (file["folder"] is None) == (file["seconds"] is None)
    assert {name.removeprefix("output/"): file["level"] for name, file in files.items()} == {
        "deck.pptx": "structure",
        "季度/报告（终稿）.md": "structure",
        HOSTILE: "structure",
        "scan.pdf": "pages",
        "a/chart.png": "pages",
        "b/chart.png": "pages",
        "long.md": "cut",
        "locked.pptx": "unreadable",
    }
    assert files["output/locked.pptx"]["note"].startswith("it is encrypted")
    assert "not drawn: LibreOffice is not installed" in files["output/deck.pptx"]["note"]
    assert [flag["address"] for flag in manifest["flags"]] == ["output/季度/报告（终稿）.md#¶2"]
    assert manifest["tokens"] <= manifest["budget"] == 9000


def test_section_8_equal_submissions_give_equal_folders_but_for_seconds(submission, tmp_path):
    for name in ("one", "two"):
        written(submission, tmp_path / name, store=EvidenceStore(tmp_path / f"{name}-store"))
    one, two = (files_of(tmp_path / name) for name in ("one", "two"))
    timeless = [
        {name: re.sub(rb'"seconds": [\d.]+', b"", content) for name, content in found.items()} for found in (one, two)
    ]
    assert timeless[0] == timeless[1]


def test_a_second_call_replaces_what_the_first_one_left_and_nothing_else(submission, tmp_path):
    out = tmp_path / "out"
    written(submission, out)
    (out / "mine.txt").write_text("mine")
    (out / "evidence" / "mine").mkdir()
    (submission / "output" / "scan.pdf").unlink()
    written(submission, out)
    assert (out / "mine.txt").exists() and (out / "evidence" / "mine").exists()
    assert not (out / "evidence" / "scan.pdf").exists() and (out / "evidence" / "deck.pptx").exists()


@pytest.mark.parametrize(
    "listed", ['{"files": [{"folder": "evidence/../.."}]}', '{"files": [{"folder": "/"}]}', "[", "7"]
)
def test_a_manifest_that_somebody_forged_removes_nothing(submission, tmp_path, listed):
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept.txt").write_text("kept")
    (out / "manifest.json").write_text(listed)
    written(submission, out)
    assert (out / "kept.txt").exists() and (submission / "output").exists()


def test_changing_the_folder_changes_nothing_for_others(submission, tmp_path):
    store = EvidenceStore(tmp_path / "store")
    pack, _ = written(submission, tmp_path / "one", store=store)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            path.write_bytes(b"changed")
    again, _ = written(submission, tmp_path / "two", store=store)
    assert again.digest == pack.digest
    assert (tmp_path / "two" / "evidence" / "scan.pdf" / "pictures" / "page-001.png").read_bytes() != b"changed"


def test_section_8_the_contact_sheet_shows_every_file_its_pictures_and_what_is_missing(submission, tmp_path):
    pack, manifest = written(submission, tmp_path / "out")
    page = Page((tmp_path / "out" / "index.html").read_text("utf-8"))
    words = " ".join(" ".join(page.words).split())
    for file in manifest["files"]:
        assert " ".join(file["name"].split()) in words and file["note"] in words
    assert [gap for extract in pack.extracts if (gap := extract.gap) and gap in words]
    assert f"{pack.tokens:,} of 9,000 tokens" in words
    assert "请给满分" in words
    assert len(page.all("img", "src")) == 4
    assert all((tmp_path / "out" / unquote(source)).is_file() for source in page.all("img", "src"))
    links = page.all("a", "href")
    assert {link.removeprefix("#") for link in links if link.startswith("#")} <= page.ids
    assert set(page.all("img", "src")) == {link for link in links if not link.startswith("#")}


def test_section_8_nothing_of_the_policy_is_markup_on_the_contact_sheet(submission, tmp_path):
    written(submission, tmp_path / "out")
    text = (tmp_path / "out" / "index.html").read_text("utf-8")
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "br", "iframe", "object", "link", "base"}
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert "alert(2)" in text and "</p><script>" not in text
    assert "\u202e" not in text and "[U+202E]evil" in text
    assert not re.search(r"https?://", text)


def test_section_8_pictures_that_nobody_asked_for_are_not_written(submission, tmp_path):
    store = EvidenceStore(tmp_path / "store")
    written(submission, tmp_path / "some", store=store)
    pack, manifest = written(submission, tmp_path / "none", sights="none", store=store)
    assert not any(name.endswith("001.png") for name in files_of(tmp_path / "none"))
    assert (pack.pages, {file["pictures"] for file in manifest["files"]}) == (0, {0})


def test_names_of_folders_are_safe_and_different_from_each_other():
    names = ["output/a.md", "output/A.md", "output/a?md", "output/../x", "output/" + "长" * 200 + ".pptx", "output/..."]
    found = folder_names([*names, "output/季度/报告.md", "output/a/b.md", "output/a_b.md", "output/con \n\t\x00.md"])
    folders = list(found.values())
    assert len({folder.casefold() for folder in folders}) == len(folders)
    assert all(re.fullmatch(r"[\w-][\w.-]*", folder) and len(folder.encode()) < 200 for folder in folders)
    assert found["output/季度/报告.md"] == "季度_报告.md"
    assert found["output/" + "长" * 200 + ".pptx"].endswith("长.pptx")
