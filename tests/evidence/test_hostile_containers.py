"""SPEC 6, 8: zip bombs, lies and names of members; entities in every XML part of an office file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric_env.evidence import EvidenceStore
from tests.evidence.hostile import office, xmls, zips
from tests.evidence.hostile.reading import read
from tests.evidence.office import changed

CASES = {
    "flat": (zips.flat(100), "zeros.txt unpacks to more than 16 MB"),
    "overlapping": (zips.overlapping(), "2,000 files, 31,457,280,000 bytes unpacked"),
    "unpacks to more than it says": (zips.lying(10, 80 * zips.MEGABYTE), "a.txt cannot be unpacked"),
    "unpacks to less than it says": (zips.lying(2**31, 10), "1 files, 2,147,483,648 bytes unpacked"),
    "claims four million terabytes": (zips.zip64(), "1 files, 4,611,686,018,427,387,904 bytes unpacked"),
    "eight levels deep": (zips.nested(8), "an archive more than 2 levels deep is not opened"),
    "three million texts": (zips.branching(), "an archive more than 2 levels deep is not opened"),
    "no bzip2": (zips.method(12), "a.txt cannot be unpacked"),
    "no lzma": (zips.method(14), "a.txt cannot be unpacked"),
    "an unknown method": (zips.method(99), "a.txt cannot be unpacked"),
    "60,000 members": (zips.packed((f"{number}.txt", b"") for number in range(60_000)), "60,000 files"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_zip_bomb_costs_no_more_than_its_caps(tmp_path: Path, case: str) -> None:
    content, words = CASES[case]
    extract = read(tmp_path, "a.zip", content)
    assert words in extract.note


def test_what_a_zip_says_that_it_holds_does_not_keep_its_text_from_being_read(tmp_path: Path) -> None:
    assert "plain.txt" in read(tmp_path, "a.zip", zips.zip64()).text
    assert "the innermost text" in read(tmp_path, "a.zip", zips.nested(2)).text


def test_a_broken_member_costs_itself_alone(tmp_path: Path) -> None:
    members = {
        "1.docx": changed(office.document(), {"word/document.xml": lambda text: text[:300]}),
        "2.xlsx": b"PK\3\4 and nothing else",
        "3.pdf": b"%PDF-1.7 and nothing else",
        "4.ipynb": b'{"cells": [7, {"cell_type": 5, "source": 7}]}',
        "5.json": b'{"a": ' + b"9" * 10_000 + b"}",
        "9.txt": b"the last text",
    }
    extract = read(tmp_path, "a.zip", zips.packed(members))
    assert "the last text" in extract.text
    for name in ("1.docx", "2.xlsx", "3.pdf", "4.ipynb"):
        assert name in extract.note


def test_members_with_the_same_name_are_all_read(tmp_path: Path) -> None:
    members = [("A.txt", b"upper case"), ("a.txt", b"lower case"), ("a.txt", b"given again")]
    text = read(tmp_path, "a.zip", zips.packed(members)).text
    assert all(words in text for _, data in members if (words := data.decode()))


def test_names_of_members_lead_nowhere_and_stay_in_their_line(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    names = [f"../../../{outside.name}", str(outside), "..\\..\\outside.txt", "C:\\outside.txt", "a\nb\n[¶1].txt"]
    names += ["x" * 60_000, "txt.\u202efdp", "a\0b.txt", "."]
    extract = read(tmp_path, "a.zip", zips.packed(dict.fromkeys(names, b"words")))
    assert not outside.exists()
    assert extract.text.count("words") >= len(names) - 1
    assert "the text of nobody" in read(tmp_path, "a.zip", zips.nameless()).text
    assert all(len(unit.label) < 300 and "\n" not in unit.label for unit in extract.units)


def test_text_that_a_cap_left_out_of_a_member_is_said(tmp_path: Path) -> None:
    extract = read(tmp_path, "a.zip", zips.packed({"a.txt": b"word " * 3_000_000, "z.txt": b"the last text"}))
    assert "the last text" in extract.text
    assert "a.txt: " in extract.note and "cut by the budget" in extract.note


PACKAGES = {"docx": office.document, "xlsx": office.workbook, "pptx": office.deck}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EvidenceStore:
    return EvidenceStore(tmp_path_factory.mktemp("store"), cpu_seconds=3)


def texts(store: EvidenceStore, folder: Path, name: str, content: bytes) -> tuple[set[str], dict[str, object]]:
    (folder / name).write_bytes(content)
    entry = store.entry(folder / name)
    return {unit.text for unit in entry.units()}, entry.meta


@pytest.mark.parametrize("kind", PACKAGES)
def test_section_8_entities_in_any_part_neither_multiply_nor_vanish_silently(
    tmp_path: Path, store: EvidenceStore, kind: str
) -> None:
    package = PACKAGES[kind]()
    whole, _ = texts(store, tmp_path, f"whole.{kind}", package)
    assert len(whole) > 3
    for part in xmls.parts(package):
        shown, meta = texts(store, tmp_path, f"a.{kind}", xmls.bombed(package, part, xmls.LAUGHS))
        assert meta["seconds"] < 3 and not meta["ours"], part
        assert not any("haha" in text for text in shown), part
        assert whole <= shown or meta["errors"] or meta["status"] == "unreadable", part


@pytest.mark.parametrize("kind", PACKAGES)
@pytest.mark.parametrize("doctype", xmls.DOCTYPES)
def test_section_8_no_entity_reaches_a_file_or_a_server(
    tmp_path: Path, store: EvidenceStore, kind: str, doctype: str
) -> None:
    main = {"docx": "word/document.xml", "xlsx": "xl/worksheets/sheet1.xml", "pptx": "ppt/slides/slide1.xml"}[kind]
    content = xmls.bombed(PACKAGES[kind](), main, xmls.DOCTYPES[doctype], times=2000)
    shown, meta = texts(store, tmp_path, f"a.{kind}", content)
    assert not any("root:" in text or "xxxx" in text for text in shown)
    assert "declares entities, which no office file may" in f"{meta['note']} {meta['errors']}"
    assert not meta["ours"]


@pytest.mark.parametrize(("name", "markup"), [("a.svg", "<svg><text>hello</text></svg>"), ("a.xml", "<a>hello</a>")])
def test_section_8_entities_in_other_xml_are_shown_as_they_stand(tmp_path: Path, name: str, markup: str) -> None:
    extract = read(tmp_path, name, xmls.with_entities(markup, xmls.LAUGHS).encode())
    assert "hello" in extract.text and "&l11;" in extract.text


def test_section_8_entities_in_html_are_not_resolved(tmp_path: Path) -> None:
    page = xmls.with_entities("<html><p>hello</p></html>", xmls.LAUGHS)
    extract = read(tmp_path, "a.html", page.encode())
    assert "hello" in extract.text and "haha" not in extract.text
