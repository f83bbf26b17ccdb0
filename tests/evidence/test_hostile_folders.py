"""SPEC 6, 8: links, devices, pipes and sockets among what was delivered, odd names, many files, files that change."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from rubric_env.evidence import EvidencePack, EvidenceStore, build_pack
from rubric_env.submission import read_submission
from tests.evidence.hostile import office, zips
from tests.evidence.hostile.office import cell, paragraph
from tests.evidence.office import changed

SECRET = "the machine's own secret"
OFFICE = (".docx", ".xlsx", ".pptx", ".pdf", ".zip", ".png", ".html", ".ipynb")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "output"
    folder.mkdir(parents=True)
    (folder / "zz.md").write_text("A report.")
    (tmp_path / "secret").write_text(SECRET)
    return folder


def packed(output: Path, tokens: int = 20_000) -> EvidencePack:
    store = EvidenceStore(output.parent.parent / "store", cpu_seconds=5)
    start = time.monotonic()
    pack = build_pack(read_submission(output.parent), budget_tokens=tokens, store=store)
    assert time.monotonic() - start < 90
    assert "[¶1] A report." in [extract.text for extract in pack.extracts]
    return pack


def test_what_is_no_file_is_not_opened_and_named(output: Path, tmp_path: Path) -> None:
    for number, suffix in enumerate(OFFICE):
        (output / f"link {number}{suffix}").symlink_to(tmp_path / "secret")
        os.mkfifo(output / f"pipe {number}{suffix}")
    (output / "folder").symlink_to(tmp_path)
    (output / "loop").symlink_to(output)
    (output / "device.pdf").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(output / "socket.docx"))
        pack = packed(output)
    assert len(pack.extracts) == 1
    assert SECRET not in pack.text("-")
    for name in ("link 0.docx", "pipe 0.docx", "socket.docx"):
        assert name in pack.text("-") or "more" in "".join(pack.notes)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_is_not_opened(output: Path) -> None:
    try:
        os.mknod(output / "zero.pdf", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this container makes no device nodes")
    assert len(packed(output).extracts) == 1


@pytest.mark.parametrize("suffix", OFFICE)
def test_a_file_that_becomes_a_link_after_it_was_listed_leads_nowhere(
    output: Path, tmp_path: Path, suffix: str
) -> None:
    path = output / f"a{suffix}"
    path.write_bytes(b"x")
    submission = read_submission(output.parent)
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    (extract, _) = build_pack(submission, budget_tokens=5000, store=EvidenceStore(tmp_path / "store")).extracts
    assert (extract.status, extract.ours) == ("unreadable", False)
    assert SECRET not in extract.text


NAMES = (
    b"invalid \xff\xfe.docx",
    "latin-1 größe.docx".encode("latin-1"),
    "\u202exslx.docx".encode(),
    b"line\nbreak.docx",
    b"escape\x1b[2J.docx",
    b"quote'\"`$(id).docx",
    b" .docx",
    b"-rf.docx",
    b"...docx",
    b"x" * 250 + b".docx",
    "数据 é e\u0301.docx".encode(),
    b"no suffix",
    b"dots.in.its.na\xffme",
    b"DOCX.DoCx",
)


def test_files_of_any_name_are_read_and_named_in_one_line(output: Path) -> None:
    for number, name in enumerate(NAMES):
        content = changed(office.document(), {"word/n.xml": str(number)})
        Path(os.fsdecode(bytes(output) + b"/" + name)).write_bytes(content)
    pack = packed(output)
    docx = [extract for extract in pack.extracts if extract.kind == "docx"]
    assert len(docx) == len(NAMES)
    assert all("A plain paragraph." in extract.text for extract in docx)
    assert len({extract.name for extract in docx}) == len(NAMES)
    assert all(extract.name.isprintable() for extract in docx)


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder where making files is cheap."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def test_a_hundred_thousand_files_are_counted_and_what_is_not_empty_is_read(in_memory: Path) -> None:
    output = in_memory / "work" / "output"
    for folder in range(100):
        (output / f"f{folder:02}").mkdir(parents=True)
        place = os.open(output / f"f{folder:02}", os.O_DIRECTORY)
        for number in range(1000):
            os.close(os.open(f"{number}.docx", os.O_CREAT | os.O_WRONLY, dir_fd=place))
        os.close(place)
    (output / "a.docx").write_bytes(office.document())
    (output / "zz.md").write_text("A report.")
    pack = packed(output)
    assert "A plain paragraph." in pack.extracts[0].text
    assert any("100,000 directory entries" in note for note in pack.notes)
    assert pack.tokens <= 20_000


def test_hundreds_of_hostile_files_stay_within_the_budget(output: Path) -> None:
    named = changed(office.workbook(), {"xl/workbook.xml": lambda text: text.replace('"First"', f'"{"name " * 9000}"')})
    for number in range(100):
        (output / f"{number:03}.xlsx").write_bytes(changed(named, {"n.xml": str(number)}))
    pack = packed(output)
    assert len(pack.extracts) == 101
    assert pack.tokens <= 20_000


def test_a_file_that_grows_while_it_is_read_is_read_as_it_was_at_some_moment(output: Path) -> None:
    path = output / "growing.docx"
    path.write_bytes(office.document())
    over = threading.Event()

    def write() -> None:
        with path.open("r+b", buffering=0) as opened:
            while not over.is_set():
                opened.seek(0)
                opened.write(office.document() + b"x" * 10_000)
                opened.truncate(5000)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(5):
            extract = packed(output).extracts[0]
            assert not extract.ours
            assert extract.status == "unreadable" or "A plain paragraph." in extract.text
    finally:
        over.set()
        writer.join()


def test_a_file_that_is_gone_when_it_is_read_is_named(output: Path, tmp_path: Path) -> None:
    path = output / "gone.docx"
    path.write_bytes(office.document())
    submission = read_submission(output.parent)
    path.unlink()
    extract = build_pack(submission, budget_tokens=5000, store=EvidenceStore(tmp_path / "store")).extracts[0]
    assert extract.status == "unreadable" and "no such file" in extract.note


def test_section_8_the_memory_of_the_parent_does_not_grow_with_the_submission(output: Path) -> None:
    def peak() -> int:
        tracemalloc.start()
        try:
            packed(output)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small = office.document_with(paragraph("word " * 1000))
    (output / "a.docx").write_bytes(small)
    peak()  # what is loaded once
    before = peak()
    for number in range(3):
        long = office.document_with(paragraph(f"word{number} " * 1_000_000) * 2)
        (output / f"{number}.docx").write_bytes(long)
        rows = "".join(f'<row r="{n}">{cell(f"A{n}", f"v{number}-{n}")}</row>' for n in range(1, 20_000))
        (output / f"{number}.xlsx").write_bytes(office.workbook_with(rows))
        (output / f"{number}.zip").write_bytes(zips.packed({"a.txt": f"{number} ".encode() * 4_000_000}))
    assert peak() < before + 8 * 2**20
