"""The tool `run_python`: what a policy is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("verifiers")

from rubric_env.classic.tools import ToolRefusal, Workspace
from rubric_env.classic.tools import _python as tool
from rubric_env.classic.tools._python import run_python
from rubric_env.sandbox import SandboxFailure, SandboxUnavailable, find_sandbox


@pytest.fixture(scope="module", autouse=True)
def sandboxed() -> None:
    try:
        find_sandbox()
    except SandboxUnavailable as error:
        if os.environ.get("RUBRIC_ENV_REQUIRE_SANDBOX") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    made = Workspace.make(parent=tmp_path)
    yield made
    made.remove()


async def test_what_it_printed_and_the_files_it_left_are_told(workspace: Workspace) -> None:
    (workspace.root / "old.csv").write_text("a,b\n")
    told = await run_python(
        workspace,
        "import os\nprint('sum: 3')\nopen('output/report.md', 'w').write('# r')\n"
        "open('old.csv', 'a').write('1,2')\nopen('tmp', 'w')",
    )
    assert told == ("sum: 3\n[files]\nchanged old.csv (7 bytes)\nnew output/report.md (3 bytes)\nnew tmp (0 bytes)")
    assert (workspace.root / "output" / "report.md").read_text() == "# r"
    assert await run_python(workspace, "import os; os.unlink('tmp')") == "[files]\ndeleted tmp"
    assert await run_python(workspace, "x = 1") == "(it printed nothing and changed no file)"


async def test_an_error_of_the_program_comes_with_its_traceback_and_exit_code(workspace: Workspace) -> None:
    told = await run_python(workspace, "print('before')\nopen('no.csv')")
    first, *middle, last = told.splitlines()
    assert (first, middle[0], last) == ("before", "[stderr]", "[exit code 1]")
    assert '  File "/tmp/script.py", line 2, in <module>' in middle
    assert "FileNotFoundError" in middle[-1]
    assert "SyntaxError" in await run_python(workspace, "print(")
    assert (await run_python(workspace, "import os; os.kill(os.getpid(), 9)")) == "[ended by SIGKILL]"


async def test_all_runs_of_a_rollout_share_a_time(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "TOTAL_SECONDS", 2)
    assert "stopped" in await run_python(workspace, "import time; time.sleep(1.2)\ntime.sleep(60)")
    with pytest.raises(ToolRefusal, match="no more runs: the programs of this task have run for 2 s"):
        await run_python(workspace, "print(1)")


async def test_a_stop_is_told_with_what_was_printed_until_then(workspace: Workspace) -> None:
    told = await run_python(workspace, "print('step 1'); open('output/a', 'w')\nwhile True: pass", seconds=4)
    assert told == "step 1\n[stopped after 4 s]\n[files]\nnew output/a (0 bytes)"


async def test_results_are_short_whatever_is_printed_and_left(workspace: Workspace) -> None:
    told = await run_python(
        workspace,
        "import os, sys\nprint('x' * 10**6)\nprint('y' * 10**6 + 'the end', file=sys.stderr)\n"
        "for n in range(400): open(f'output/{n}', 'w')\nfor n in range(99): os.symlink('x', f'link{n}')\nsys.exit(1)",
    )
    assert len(told) < 21_000
    for part in ("bytes left out", "characters left out", "the end", "[exit code 1]", "… and 360 more", "and 79 more"):
        assert part in told


@pytest.mark.parametrize("seconds", ["soon", None, [], float("nan"), 0, -1, 10**400])
async def test_a_time_that_is_none_is_refused(workspace: Workspace, seconds: object) -> None:
    with pytest.raises(ToolRefusal, match=r"^seconds: "):
        await run_python(workspace, "print(1)", seconds)  # type: ignore[arg-type]


async def test_no_policy_gets_more_time_than_there_is(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "MAX_SECONDS", 1)
    assert await run_python(workspace, "import time; time.sleep(30)", 10**9) == "[stopped after 1 s]"
    # A busy program is at both limits at once, of time and of processor time: either may tell it.
    busy = await run_python(workspace, "while True: pass", float("inf"))  # type: ignore[arg-type]
    assert busy in ("[stopped after 1 s]", "[stopped after 1 s of processor time]")
    assert await run_python(workspace, "print(1)", "30") == "1"  # type: ignore[arg-type]


async def test_a_long_program_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ToolRefusal, match="a program may have 200,000"):
        await run_python(workspace, "#" * 200_001)


async def test_a_workspace_takes_no_more_than_it_may_hold(tmp_path: Path) -> None:
    (tmp_path / "w" / "output").mkdir(parents=True)
    workspace = Workspace(tmp_path / "w", files=3, size=2**20)
    told = await run_python(workspace, "for n in range(4): open(f'{n}', 'w')")
    assert told == "[not kept]\nno file was taken back: the folder holds more than 3 files"
    full = await run_python(workspace, "open('output/big', 'wb').write(b'x' * 2**21)")
    assert "No space left on device" in full
    assert (workspace.root / "output" / "big").stat().st_size <= 2**20


async def test_what_the_machine_suffers_is_no_tool_message(workspace: Workspace) -> None:
    workspace.remove()
    with pytest.raises(SandboxFailure):
        await run_python(workspace, "print(1)")
