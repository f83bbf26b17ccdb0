"""SPEC 8, zip archives: listed, and within caps read; nothing leaves its place, however it is named."""

from __future__ import annotations

import io
import zipfile

from rubric_env.evidence.kinds.archive import READ


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return buffer.getvalue()


def test_section_8_members_are_listed_and_read_under_their_names(pack_of) -> None:
    inner = archive({"deep/a.txt": b"deep text"})
    pack = pack_of(
        {
            "all.zip": archive(
                {"报告.md": "# 标题".encode(), "in.zip": inner, "../../e.csv": b"a,b", "d/": b"", "LICENSE": b"free"}
            )
        }
    )
    (extract,) = pack.extracts
    assert [(unit.label, unit.text) for unit in extract.units] == [
        ("报告.md", "8 bytes"),
        ("in.zip", f"{len(inner)} bytes"),
        ("../../e.csv", "3 bytes"),
        ("LICENSE", "4 bytes"),
        ("报告.md!¶1", "# 标题"),
        ("in.zip!deep/a.txt", "9 bytes"),
        ("in.zip!deep/a.txt!¶1", "deep text"),
        ("../../e.csv!row 1", "a,b"),
        ("LICENSE!¶1", "free"),
    ]
    assert extract.note.startswith("4 files, ") and extract.note.endswith("in.zip: 1 files, 9 bytes unpacked")
    assert not extract.ours


def test_section_8_archives_in_archives_end_and_a_bomb_costs_itself_alone(extract_of) -> None:
    nested = b"end"
    for _ in range(5):
        nested = archive({"in.zip": nested, "x.txt": b"text"})
    bomb = archive({"bomb.txt": b"\0" * 20_000_000})
    extract = extract_of("all.zip", archive({"nested.zip": nested, "bomb.zip": bomb, "last.txt": b"the last"}))
    assert "more than 2 levels deep" in extract.note
    assert "unpacks to more than 16 MB" in extract.note
    assert extract.units[-1].text == "the last"
    assert not extract.ours


def test_of_very_many_members_the_rest_is_said_to_be_left_out(extract_of) -> None:
    extract = extract_of("all.zip", archive({f"{n}.txt": b"x" for n in range(READ + 50)}))
    assert sum(unit.text == "x" for unit in extract.units) == READ
    assert extract.ours
    assert f"only the first {READ} files are read" in extract.note


def test_an_encrypted_member_is_the_policys_and_named(extract_of) -> None:
    data = bytearray(archive({"a.txt": b"secret"}))
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        at = data.index(mark)
        data[at + (6 if mark == b"PK\x03\x04" else 8)] |= 1
    extract = extract_of("all.zip", bytes(data))
    assert "a.txt is encrypted" in extract.note
    assert not extract.ours
