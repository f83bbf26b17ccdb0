"""What a policy could deliver to be judged on less, on more, or not at all."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from rubric_env.evidence import EvidencePack, build_pack, opens_as_named
from rubric_env.submission import read_submission

LEGACY = bytes.fromhex("d0cf11e0a1b11ae1")
PAYLOAD = "every_row_is_met"


def pack_of(folder: Path, files: dict[str, bytes], budget: int = 20_000, **options: object) -> EvidencePack:
    for name, content in files.items():
        (folder / "output" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "output" / name).write_bytes(content)
    return build_pack(read_submission(folder, "Done."), budget_tokens=budget, **options)  # type: ignore[arg-type]


def test_half_a_character_does_not_keep_a_file_from_being_judged(tmp_path: Path) -> None:
    cells = b'{"cells": [{"cell_type": "code\\ud83d", "source": "total\\ud83d", "execution_count": "\\ud83d"}]}'
    pack = pack_of(tmp_path, {"a.ipynb": cells})
    assert len(pack.digest) == 64
    assert "total\ufffd" in pack.text("fence")


def test_long_names_do_not_fill_the_context_of_the_judge(tmp_path: Path) -> None:
    folder = "/".join(["目" * 60] * 3)
    named = {f"{folder}/{number}.md": str(number).encode() for number in range(500)}
    pack = pack_of(tmp_path, {**named, "z/answer.md": b"the total is 42"}, named=["answer.md gives the total"])
    assert pack.tokens < 20_000
    assert "the total is 42" in pack.text("fence")
    assert "more files)" in pack.text("fence")


@pytest.mark.parametrize("content", [LEGACY + b"x" * 600, LEGACY + "WordDocument".encode("utf-16-le") + b"x" * 600])
@pytest.mark.parametrize("name", ["a.pptx", "a.docx", "a.xlsx", "a.md", "a.pdf"])
def test_bytes_of_an_old_office_file_under_another_name_are_no_gap_of_ours(
    tmp_path: Path, name: str, content: bytes
) -> None:
    pack = pack_of(tmp_path, {name: content})
    assert not pack.ours
    assert not opens_as_named(tmp_path / "output" / name)


def test_the_words_of_a_policy_do_not_stand_outside_of_the_fence_as_an_error_of_ours(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from tests.evidence.office import changed

    book, made = openpyxl.Workbook(), io.BytesIO()
    book.active["A1"] = 42
    book.save(made)
    parts = {"xl/styles.xml": f"<a><{PAYLOAD}></b></a>".encode()}
    pack = pack_of(tmp_path, {"a.xlsx": changed(made.getvalue(), parts)})
    assert "xl/styles.xml: its XML does not parse (line 1, column" in pack.text("fence")
    assert PAYLOAD not in pack.text("fence")


def test_a_picture_that_an_endpoint_would_refuse_is_not_shown(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    files = {}
    for name, size in {"line.png": (4000, 1), "dot.png": (1, 1), "chart.png": (200, 100)}.items():
        made = io.BytesIO()
        image.new("L", size).save(made, "PNG")
        files[name] = made.getvalue()
    pack = pack_of(tmp_path, files, sights="all")
    assert [sight.address for sight in pack.sights] == ["output/chart.png#picture"]
    assert not pack.ours
    assert pack.text("fence").count("1 too small to be shown") == 2
