"""Files made to hang, flood or fool whoever reads them."""

from __future__ import annotations

import os
import time
import tracemalloc

import pytest

from rubric_env.evidence import build_pack
from rubric_env.evidence._extract import ENCODED
from rubric_env.submission import read_submission

MEGABYTES = 1024 * 1024


def test_a_sparse_file_of_ten_gigabytes_is_not_read_whole(tmp_path):
    path = tmp_path / "output" / "huge.txt"
    path.parent.mkdir()
    path.write_bytes(b"A line of text.\n\n" * 600_000)
    os.truncate(path, 10 * 1024**3)
    start = time.perf_counter()
    tracemalloc.start()
    try:
        pack = build_pack(read_submission(tmp_path), budget_tokens=10_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (extract,) = pack.extracts
    assert (extract.status, extract.size) == ("cut", 10 * 1024**3)
    assert "only the first 8,388,608 bytes were read" in extract.note
    assert peak < 100 * MEGABYTES
    assert time.perf_counter() - start < 120


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", b"1,2\n" * 200_000),
        ("quotes.csv", b'"' * MEGABYTES),
        ("commas.csv", b"," * MEGABYTES),
        ("ragged.csv", b"1,2\n1\n" * 150_000),
        ("paragraphs.md", b"a\n\n" * 300_000),
        ("blanks.md", b" " * MEGABYTES),
        ("blank lines.md", b"\n" * MEGABYTES),
        ("one line.md", b"word " * 200_000),
        ("brackets.json", b"[" * MEGABYTES),
        ("nested.json", b"[" * 900 + b'"' + b"x " * 400_000 + b'"' + b"]" * 900),
        ("numbers.json", b"[" + b"1," * 500_000 + b"1]"),
        ("objects.json", b"[" + b'{"a":1},' * 120_000 + b"{}]"),
        ("digits.json", b"9" * MEGABYTES),
        ("records.jsonl", b"1\n" * 500_000),
        ("escapes.json", b'"' + b"\\" * MEGABYTES + b'"'),
    ],
)
def test_a_megabyte_of_anything_is_read_within_seconds(pack_of, name, content):
    start = time.perf_counter()
    pack = pack_of({name: content}, tokens=20_000)
    assert pack.tokens <= 20_000
    assert time.perf_counter() - start < 30


def test_encoded_data_just_too_short_to_be_shortened_is_read_in_time_linear_in_its_length(pack_of):
    start = time.perf_counter()
    (extract,) = pack_of({"hex.txt": (b"0" * (ENCODED - 1) + b" ") * 4000}, tokens=20_000).extracts
    assert "encoded data" not in extract.note
    assert time.perf_counter() - start < 30


def test_a_submission_of_many_large_files_is_read_in_bounded_memory(tmp_path):
    (tmp_path / "output").mkdir()
    for number in range(6):
        (tmp_path / "output" / f"{number}.txt").write_bytes(b"Some words of prose here.\n\n" * 100_000)
    tracemalloc.start()
    try:
        pack = build_pack(read_submission(tmp_path), budget_tokens=20_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(pack.extracts) == 6
    assert pack.tokens <= 20_000
    assert peak < 20 * MEGABYTES


def test_a_file_that_nobody_may_open_is_the_policys(public_workspace, unprivileged):
    path = public_workspace / "output" / "report.md"
    path.write_text("text")
    path.chmod(0)
    with unprivileged():
        (extract,) = build_pack(read_submission(public_workspace), budget_tokens=5000).extracts
    assert (extract.status, extract.note, extract.ours) == ("unreadable", "permission denied", False)


def test_invisible_and_reordering_characters_stay_in_the_text(extract_of):
    text = "pay \u202e001\u202c euros to \u200bACME"
    assert extract_of("report.md", text).units[0].text == text
