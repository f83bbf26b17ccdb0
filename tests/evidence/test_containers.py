"""SPEC 6, 8: zip and XML from a policy are opened without entities, network, or more bytes than their caps."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from rubric_env.evidence import Unreadable
from rubric_env.evidence._xml import parse
from rubric_env.evidence._zip import Archive

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def document(declared: str) -> bytes:
    return f"<?xml version='1.0'?><!DOCTYPE a [{declared}]><a>b&x;c</a>".encode()


def test_section_8_entities_are_not_resolved_and_no_file_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    root = parse(document(f'<!ENTITY x SYSTEM "{secret}">'))
    assert "".join(root.itertext()).replace("&x;", "") == "bc"


def test_section_8_entities_that_multiply_are_refused() -> None:
    with pytest.raises(Unreadable, match="does not parse"):
        parse(document(f'<!ENTITY l0 "ha">{LAUGHS}<!ENTITY x "&l9;">'))


def test_xml_that_is_cut_is_refused_or_recovered() -> None:
    with pytest.raises(Unreadable, match="does not parse"):
        parse(b"<a><b>text</b><b>mo")
    assert parse(b"<a><b>text</b><b>mo", recover=True).findtext("b") == "text"
    assert parse(b"\n <?xml version='1.0'?><a/>").tag == "a"


def test_xml_nested_without_end_is_refused() -> None:
    with pytest.raises(Unreadable, match="nested deeper"):
        parse(b"<a>" * 250 + b"</a>" * 250)


def container(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_members_are_found_as_office_programs_find_them(tmp_path: Path) -> None:
    archive = Archive(container(tmp_path / "a.zip", {"Word\\Document.xml": b"x", "/lead.xml": b"y"}))
    assert archive.read("word/document.xml") == b"x"
    assert archive.read("lead.xml") == b"y"
    assert "word/other.xml" not in archive
    with pytest.raises(KeyError):
        archive.read("word/other.xml")


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    archive = Archive(container(tmp_path / "a.zip", {"bomb": b"\0" * (65 * 2**20), "small": b"s"}))
    with pytest.raises(Unreadable, match="more than 64 MB"):
        archive.read("bomb")
    with pytest.raises(Unreadable, match="more than 1 MB"):
        archive.read("bomb", 2**20)
    assert archive.read("small") == b"s"


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"PK\x03\x04" + b"x" * 500, b"no zip at all"])
def test_what_is_no_zip_is_unreadable(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="no zip container"):
        Archive(path)


def test_a_damaged_member_costs_itself_alone(tmp_path: Path) -> None:
    path = container(tmp_path / "a.zip", {"first": b"1" * 5000, "second": b"2"})
    data = bytearray(path.read_bytes())
    data[45] ^= 0xFF
    path.write_bytes(data)
    archive = Archive(path)
    with pytest.raises(Unreadable, match="cannot be unpacked"):
        archive.read("first")
    assert archive.read("second") == b"2"
