"""What comes out of a sandbox is trusted in nothing, and the folder is whole whatever happens."""

from __future__ import annotations

import io
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from rubric_env.sandbox import Change, Limits, Sandbox, SandboxFailure
from rubric_env.sandbox._files import BrokenStream, apply, folder_items, receive
from rubric_env.sandbox._inside import END, FACT, FILE, FOLDER, RECORD, SAME
from tests.sandbox.conftest import Inside, names


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file with its bytes, every folder with None."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


async def test_files_come_back_new_changed_and_deleted(inside: Inside, work: Path) -> None:
    for name in ("same.txt", "old.txt", "gone.txt", "folder/deep/same.bin"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(name.encode())
    (work / "empty").mkdir()
    finished = await inside(
        "import os, pathlib\n"
        "assert pathlib.Path.cwd() == pathlib.Path('/app')\n"
        "assert open('folder/deep/same.bin').read() == 'folder/deep/same.bin'\n"
        "open('old.txt', 'r+').write('OLD')\nos.unlink('gone.txt')\nos.rmdir('empty')\n"
        "os.makedirs('output/a/b')\nopen('output/a/b/报告.md', 'w').write('新')\n"
    )
    assert finished.changes == (
        Change("deleted", "gone.txt", 8),
        Change("changed", "old.txt", 7),
        Change("new", "output/a/b/报告.md", 3),
    )
    assert tree(work) == {
        "folder": None,
        "folder/deep": None,
        "folder/deep/same.bin": b"folder/deep/same.bin",
        "old.txt": b"OLD.txt",
        "output": None,
        "output/a": None,
        "output/a/b": None,
        "output/a/b/报告.md": "新".encode(),
        "same.txt": b"same.txt",
    }
    assert names(work.parent) == [work.name]


async def test_a_file_becomes_a_folder_and_a_folder_a_file(inside: Inside, work: Path) -> None:
    (work / "a").write_text("file")
    (work / "b").mkdir()
    (work / "b" / "inner").write_text("x")
    await inside.tries(
        "import os, shutil\nos.unlink('a'); os.mkdir('a'); open('a/inner', 'w').write('y')\n"
        "shutil.rmtree('b'); open('b', 'w').write('file')"
    )
    assert tree(work) == {"a": None, "a/inner": b"y", "b": b"file"}


async def test_a_stop_keeps_what_was_written_and_printed_until_then(inside: Inside, work: Path) -> None:
    finished = await inside("print('half'); open('half.txt', 'w').write('half')\nwhile True: pass", seconds=4)
    assert (finished.code, finished.stopped, finished.output) == (None, "stopped after 4 s", "half\n")
    assert tree(work) == {"half.txt": b"half"}


async def test_only_plain_files_with_plain_names_come_back(inside: Inside, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("host-secret")
    finished = await inside(
        "import os, socket\n"
        f"os.symlink({str(tmp_path / 'secret')!r}, 'link')\nos.symlink('/etc', 'folder-link')\n"
        "os.symlink('../../secret', 'up')\n"
        "os.mkfifo('pipe')\nsocket.socket(socket.AF_UNIX).bind('socket')\n"
        "open('one', 'w').write('x')\nos.link('one', 'two')\n"
        "open(b'\\xff.txt', 'w')\nopen('a\\nb', 'w')\nopen('a\\u202eb', 'w')\nopen('\\x1b[2J', 'w')\n"
        "os.mkdir('closed'); open('closed/file', 'w').write('c'); os.chmod('closed/file', 0); os.chmod('closed', 0)\n"
    )
    assert finished.code == 0
    assert tree(work) == {"closed": None, "closed/file": b"c", "one": b"x", "two": b"x"}
    assert (work / "one").stat().st_nlink == 1
    assert {note.rpartition(", ")[0] or note.rpartition(": ")[0] for note in finished.notes} == {
        "folder-link: a link",
        "link: a link",
        "up: a link",
        "pipe: a pipe",
        "socket: a socket",
        "'\\\\xff.txt'",
        "'a\\nb'",
        "'a\\u202eb'",
        "'\\x1b[2J'",
    }
    assert all(note.isprintable() for note in finished.notes)


async def test_names_that_were_there_come_back_however_odd(inside: Inside, work: Path) -> None:
    odd = [b"\xff.txt", b"a\nb", "全　角.txt".encode()]
    for name in odd:
        (work / os.fsdecode(name)).write_text("x")
    finished = await inside("import os\nfor name in os.listdir('.'): open(name, 'a').write('y')")
    assert {os.fsencode(name): text for name, text in tree(work).items()} == dict.fromkeys(odd, b"xy")
    assert finished.notes == ()


async def test_a_link_in_the_folder_stays_and_nothing_is_written_through_it(
    inside: Inside, work: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("host")
    (work / "link").symlink_to(outside)
    (work / "folder").mkdir()
    (work / "folder" / "file-link").symlink_to(outside / "file")
    finished = await inside(
        "import os, shutil\nassert sorted(os.listdir('.')) == ['folder'] and os.listdir('folder') == []\n"
        "os.mkdir('link'); open('link/file', 'w').write('bad')\nopen('folder/file-link', 'w').write('bad')\n"
    )
    assert tree(outside) == {"file": b"host"}
    assert (work / "link").is_symlink()
    assert (work / "folder" / "file-link").is_symlink()
    assert finished.changes == ()
    assert sorted(note.split(":")[0] for note in finished.notes) == ["folder/file-link", "link", "link/file"]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("for n in range(60): open(f'{n}', 'w')", "more than 50 files"),
        ("for n in range(60): os.mkdir(f'{n}')", "more than 50 folders"),
        ("for n in range(200): os.symlink('x', f'{n}')", "more than 100 entries in one folder"),
        ("for n in range(3): open(f'{n}', 'w').truncate(30 << 20)", "more than 64 MiB"),
        (
            "for n in range(3): open(f'{n}', 'w').write('x' * (20 << 20)) if n == 0 else os.link('0', f'{n}a')\n"
            "for n in range(3): os.link('0', f'{n}b')",
            "more than 64 MiB",
        ),
    ],
)
async def test_too_much_is_not_taken_back_and_said(inside: Inside, work: Path, code: str, why: str) -> None:
    (work / "kept").write_text("as it was")
    finished = await inside(f"import os\nos.unlink('kept')\n{code}", files=50, disk=64 * 2**20, file_size=32 * 2**20)
    assert finished.notes[0] == f"no file was taken back: the folder holds {why}"
    assert finished.changes == ()
    assert tree(work) == {"kept": b"as it was"}


async def test_folders_without_end_do_not_come_back(inside: Inside, work: Path) -> None:
    finished = await inside("import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')\nopen('deep', 'w')")
    assert finished.code == 0
    assert max(name.count("/") for name in tree(work)) == 31
    assert "too deep" in finished.notes[0]


async def test_a_folder_that_holds_more_than_the_limits_is_not_handed_in(inside: Inside, work: Path) -> None:
    for number in range(4):
        (work / str(number)).write_bytes(b"x" * 2**20)
    few = await inside("print(1)", files=3)
    small = await inside("print(1)", disk=3 * 2**20)
    assert (few.code, small.code) == (None, None)
    assert few.stopped == "nothing ran: the folder holds more than 3 files, the most that can be taken in"
    assert small.stopped == "nothing ran: the folder holds more than 3 MiB, the most that can be taken in"


async def test_a_disk_of_the_host_that_takes_no_more_is_the_machines_failure(inside: Inside, work: Path) -> None:
    (work / "kept").write_text("as it was")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))  # As near to a full disk as a process comes by itself.
    try:
        with pytest.raises(SandboxFailure, match="File too large"):
            await inside("open('kept', 'w').write('new'); open('big', 'wb').write(b'x' * 2**22)")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert tree(work) == {"kept": b"as it was"}
    assert names(work.parent) == [work.name]


async def test_a_folder_that_is_gone_is_the_machines_failure(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(SandboxFailure, match="cannot be handed"):
        await sandbox.run("print(1)", tmp_path / "no" / "such")


async def test_a_sandbox_that_does_not_begin_is_the_machines_failure(sandbox: Sandbox, work: Path) -> None:
    no_program = replace(sandbox, layout=replace(sandbox.layout, bwrap="/usr/bin/no-bwrap"))
    no_python = replace(sandbox, layout=replace(sandbox.layout, python="/opt/no-python"))
    (work / "large").write_bytes(b"x" * 2**22)
    with pytest.raises(SandboxFailure, match="No such file"):
        await no_program.run("print(1)", work)
    with pytest.raises(SandboxFailure, match=r"does not begin: bwrap: execvp /opt/no-python"):
        await no_python.run("print(1)", work)


async def test_a_machine_without_processes_left_is_the_machines_failure(sandbox: Sandbox, work: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("this process itself would have none left")
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (2, hard))  # Bubblewrap's two; what runs the program is the third.
    try:
        with pytest.raises(SandboxFailure, match="does not begin"):
            await sandbox.run("print(1)", work)
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))


async def test_names_that_the_disk_cannot_hold_are_no_failure_of_the_machine(sandbox: Sandbox, tmp_path: Path) -> None:
    work = tmp_path
    while len(str(work)) < 3400:  # As some encrypted disks, whose names end at 143 bytes, and those that fold case.
        work = work / ("d" * 200)
        work.mkdir()
    (work / "kept").write_text("as it was")
    finished = await sandbox.run("import os\nos.makedirs('/'.join(['n' * 240] * 3))", work)
    assert finished.stopped.startswith("stopped: the sandbox ended (the disk takes no 'nnn")
    assert "File name too long" in finished.stopped
    assert tree(work) == {"kept": b"as it was"}


def test_names_come_back_where_the_host_speaks_no_unicode(sandbox: Sandbox, work: Path) -> None:
    code = (
        "import asyncio, pathlib, sys\nfrom rubric_env.sandbox import find_sandbox\n"
        "print(asyncio.run(find_sandbox().run(\"open(chr(0x62a5), 'w')\", pathlib.Path(sys.argv[1]))).stopped)"
    )
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, work], env={**os.environ, **plain}, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "\n")
    assert names(work) == ["报"]


def record(kind: bytes, name: bytes = b"", data: bytes = b"", size: int | None = None) -> bytes:
    return RECORD.pack(kind, len(name), len(data) if size is None else size) + name + data


FORGED = {
    "above": [record(FOLDER, b".."), record(FILE, b"../x", b"x")],
    "above, at once": [record(FILE, b"../x", b"x")],
    "within": [record(FOLDER, b"a"), record(FILE, b"a/../../x", b"x")],
    "absolute": [record(FILE, b"/tmp/x", b"x")],
    "dot": [record(FOLDER, b".")],
    "no name": [record(FILE, b"", b"x")],
    "double slash": [record(FOLDER, b"a"), record(FILE, b"a//x", b"x")],
    "NUL": [record(FILE, b"a\0b", b"x")],
    "not UTF-8": [record(FILE, b"\xff", b"x")],
    "newline": [record(FILE, b"a\nb", b"x")],
    "no folder": [record(FILE, b"a/x", b"x")],
    "file as folder": [record(FILE, b"a", b"x"), record(FILE, b"a/x", b"x")],
    "twice": [record(FILE, b"a", b"x"), record(FILE, b"a", b"y")],
    "a link": [record(b"L", b"a", b"/etc/passwd")],
    "same, but new": [record(SAME, b"new")],
    "same, but a folder": [record(SAME, b"folder")],
    "long name": [record(FILE, b"a" * 256, b"x")],
    "too many": [record(FILE, b"%d" % number) for number in range(21)],
    "too large": [record(FILE, b"a", size=2**63)],
    "too large together": [record(FILE, b"%d" % number, b"x" * 400_000) for number in range(3)],
    "too many facts": [record(FACT, b"note", b"x")] * 100,
    "a large fact": [record(FACT, b"note", size=2**62)],
    "cut": [record(FILE, b"a", b"x")[:-1]],
    "noise": [bytes(range(256)) * 100],
    "nothing": [],
}


@pytest.mark.parametrize("records", FORGED.values(), ids=FORGED.keys())
def test_forged_records_break_the_stream_and_write_nothing_elsewhere(tmp_path: Path, records: Iterable[bytes]) -> None:
    work, stage = tmp_path / "work", tmp_path / "stage"
    stage.mkdir()
    (work / "folder").mkdir(parents=True)
    limits = Limits(files=10, disk=2**20, output=1000)
    whole = "cut" not in os.environ.get("PYTEST_CURRENT_TEST", "")
    stream = io.BytesIO(b"".join(records) + (record(END) if whole and records else b""))
    with pytest.raises(BrokenStream):
        receive(stream, folder_items(work, limits), stage, limits)
    shutil.rmtree(stage)
    assert tree(tmp_path) == {"work": None, "work/folder": None}


def test_what_is_put_in_place_never_goes_through_a_link_that_came_meanwhile(tmp_path: Path) -> None:
    work, stage, outside = (tmp_path / name for name in ("work", "stage", "outside"))
    for folder in (work / "a", stage, outside):
        folder.mkdir(parents=True)
    (work / "a" / "x").write_text("old")
    (outside / "x").write_text("host")
    limits = Limits()
    sent = folder_items(work, limits)
    stream = io.BytesIO(record(FOLDER, b"a") + record(FILE, b"a/x", b"new") + record(END))
    returned = receive(stream, sent, stage, limits)
    shutil.rmtree(work / "a")
    (work / "a").symlink_to(outside)
    changes, blocked = apply(work, sent, returned, stage)
    assert (changes, blocked) == ([], ["a", "a/x"])
    assert (outside / "x").read_text() == "host"
