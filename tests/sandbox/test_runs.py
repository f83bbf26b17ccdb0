"""Running programs: what is promised to a policy, turns, and machines without a sandbox."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_env.sandbox import Limits, Sandbox
from rubric_env.sandbox._sandbox import AT_A_TIME
from tests.heartbeat import the_loop_goes_on
from tests.sandbox.conftest import Inside, names

FIND = """
from rubric_env.sandbox import SandboxUnavailable, find_sandbox
for _ in range(2):
    try:
        find_sandbox()
    except SandboxUnavailable as error:
        print(error)
"""


def found_with(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", FIND], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


async def test_code_runs_with_the_libraries_that_are_promised(inside: Inside, work: Path) -> None:
    shown = await inside.tries(
        "import docx, openpyxl, pptx, lxml.etree, PIL.Image\n"
        "document = docx.Document(); document.add_heading('报告'); document.save('a.docx')\n"
        "book = openpyxl.Workbook(); book.active['A1'] = 1; book.save('a.xlsx')\n"
        "deck = pptx.Presentation(); deck.slides.add_slide(deck.slide_layouts[0]); deck.save('a.pptx')\n"
        "PIL.Image.new('RGB', (9, 9)).save('a.png')\n"
        "print('好')"
    )
    assert shown == "好"
    assert names(work) == ["a.docx", "a.png", "a.pptx", "a.xlsx"]
    assert docx_text(work / "a.docx") == ["报告"]


def docx_text(path: Path) -> list[str]:
    import docx

    return [paragraph.text for paragraph in docx.Document(str(path)).paragraphs]


async def test_a_traceback_shows_the_line_and_modules_of_the_folder_are_found(inside: Inside, work: Path) -> None:
    (work / "helper.py").write_text("def half(x): return x / 0\n")
    finished = await inside("import helper\nhelper.half(3)  # here")
    assert finished.code == 1
    assert 'File "/tmp/script.py", line 2' in finished.errors
    assert "helper.half(3)  # here" in finished.errors
    assert 'File "/app/helper.py", line 1' in finished.errors
    assert finished.changes == ()


async def test_a_program_with_arguments_runs_too(sandbox: Sandbox, work: Path) -> None:
    finished = await sandbox.run(["sh", "-c", 'echo "$1" > said; cat; exit 3', "sh", "two words"], work)
    assert (finished.code, finished.output) == (3, "")
    assert (work / "said").read_text() == "two words\n"
    absent = await sandbox.run(["no-such-program"], work)
    assert absent.code == 127
    assert "no-such-program does not start" in absent.errors


async def test_how_a_program_ends_is_told(inside: Inside) -> None:
    assert (await inside("raise SystemExit(7)")).code == 7
    assert (await inside("import os; os.abort()")).code == -6
    assert (await inside("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")).code == -9
    spun = await inside("while True: pass", cpu_seconds=1, seconds=120)
    assert (spun.code, spun.stopped) == (None, "stopped after 1 s of processor time")
    assert (await inside("print('\\ud800')")).code == 1
    assert (await inside("x = '\ud800'")).code == 0  # Half a letter, as broken JSON brings it.
    assert (await inside("x = 1\0")).code in (0, 1)  # Releases of Python differ.


async def test_bytes_that_are_no_text_are_shown_as_far_as_they_are(inside: Inside) -> None:
    finished = await inside("import os\nos.write(1, b'a\\xff\\n'); os.write(2, b'\\xfe')")
    assert (finished.output, finished.errors) == ("a\ufffd\n", "\ufffd")


async def test_long_output_keeps_its_beginning_and_its_end(inside: Inside) -> None:
    finished = await inside("print('始' * 500 + '中' * 9000 + '末' * 499)", output=1000)
    assert finished.output == "始" * 500 + "\n… 27000 bytes left out …\n" + "末" * 499 + "\n"
    exact = await inside("print('x' * 999)", output=1000)
    assert exact.output == "x" * 999 + "\n"


async def test_waiting_for_a_turn_is_no_part_of_the_time(sandbox: Sandbox, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(4 * AT_A_TIME)]
    for folder in folders:
        folder.mkdir()
    code = "import time; time.sleep(1.5); open('big', 'wb').write(b'x' * 2**24)"
    async with the_loop_goes_on():
        all_ = await asyncio.gather(*(sandbox.run(code, folder, Limits(seconds=5.5)) for folder in folders))
    assert [finished.stopped for finished in all_] == [""] * len(folders)


async def test_a_run_that_is_cancelled_in_the_queue_never_starts(sandbox: Sandbox, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(AT_A_TIME + 1)]
    for folder in folders:
        folder.mkdir()
    running = [
        asyncio.create_task(sandbox.run("import time; time.sleep(2); open('x', 'w')", folder)) for folder in folders
    ]
    await asyncio.sleep(0.3)
    running[-1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await running[-1]
    assert not any(task.done() for task in running[:-1])
    await asyncio.gather(*running[:-1])
    assert [names(folder) for folder in folders] == [["x"]] * AT_A_TIME + [[]]


async def test_runs_in_two_loops_of_one_process(sandbox: Sandbox, tmp_path: Path) -> None:
    def elsewhere(name: str) -> str:
        (tmp_path / name).mkdir()
        return asyncio.run(sandbox.run(f"print({name!r})", tmp_path / name)).output

    assert await asyncio.gather(*(asyncio.to_thread(elsewhere, name) for name in "ab")) == ["a\n", "b\n"]


def test_without_bubblewrap_one_line_says_what_to_install() -> None:
    assert (
        found_with(PATH="/nonexistent") == ["no sandbox: bubblewrap is not installed (apt-get install bubblewrap)"] * 2
    )


def test_without_user_namespaces_one_line_says_what_to_set(sandbox: Sandbox, tmp_path: Path) -> None:
    # A bubblewrap that says what the real one says on such a machine; this machine's kernel cannot be made to.
    program = tmp_path / "bwrap"
    says = "bwrap: No permissions to create new namespace, likely because the kernel does not allow it"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --help ] && exec {sandbox.layout.bwrap} --help\necho "{says}" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    lines = found_with(PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert len(set(lines)) == 1
    assert lines[0].startswith("no sandbox: user namespaces are not allowed here")
    assert "unprivileged_userns" in lines[0]
    assert says in lines[0]


def test_packages_that_others_cannot_read_are_named_with_the_remedy(sandbox: Sandbox, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only what root starts as another user meets closed files")
    made = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")]
    subprocess.run(made, check=True, umask=0o077)
    python = tmp_path / "venv" / "bin" / "python"
    lib = next(tmp_path.glob("venv/lib/*/site-packages"))
    for name, text in (
        ("openpyxl/__init__.py", ""),
        ("openpyxl-3.dist-info/METADATA", "Metadata-Version: 2.1\nName: openpyxl\nVersion: 3\n"),
        ("openpyxl-3.dist-info/RECORD", "openpyxl/__init__.py,,\nopenpyxl-3.dist-info/METADATA,,\n"),
    ):
        (lib / name).parent.mkdir(mode=0o700, exist_ok=True)
        (lib / name).write_text(text)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([python, "-c", FIND], env=environment, capture_output=True, text=True, check=True)
    line = done.stdout.splitlines()[0]
    assert line.startswith("no sandbox: files of Python's are closed to other users (installed under umask 077?)")
    assert f"chmod -R go+rX {tmp_path}/venv/lib" in line


def test_limits_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="processes must be a positive number, not 0"):
        Limits(processes=0)
    with pytest.raises(ValueError, match="seconds must be a positive number, not nan"):
        Limits(seconds=float("nan"))
    with pytest.raises(ValueError, match="seconds must be a positive number, not inf"):
        Limits(seconds=float("inf"))
