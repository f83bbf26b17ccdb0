"""The workspaces of rollouts: what a policy is shown of its tools, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Literal

import pytest

from rubric_env.classic import Family, build_environment
from rubric_env.classic.tools import Workspace
from rubric_env.classic.tools._workspace import ABANDONED, _sweep
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import Scenario

TINY = Family("tiny-env", Path("none-ships"), tools=("list_files", "write_file"))


@pytest.fixture
def instances(tmp_path: Path) -> Path:
    tests = tmp_path / "instances" / "a" / "tests"
    tests.mkdir(parents=True)
    (tests.parent / "instruction.md").write_text("Write output/memo.md.")
    (tests / "rubric.json").write_text('[{"description": "States the total", "weight": 1}]')
    return tests.parents[1]


def make(instances: Path) -> Any:
    return build_environment(TINY, str(instances), judge={"settings": {"backend": "local"}})


def test_a_policy_is_told_the_parameters_of_a_tool_but_not_its_workspace(instances: Path) -> None:
    env = make(instances)
    write = next(tool for tool in env.tool_defs if tool.name == "write_file")
    assert write.description.startswith("Write a text file into the workspace")
    assert list(write.parameters["properties"]) == ["path", "content"]
    assert "the whole text" in write.parameters["properties"]["content"]["description"]


Colour = Literal["red", "green"]


async def paint(workspace: Workspace, colour: Colour) -> str:
    """Paint.

    Args:
        colour: of what is painted
    """
    return str(colour)


def test_a_tool_may_use_types_of_its_own_module(instances: Path) -> None:
    env = make(instances)
    env.add_tool(paint, ["workspace"])
    assert env.tool_defs[-1].parameters["properties"]["colour"]["enum"] == ["red", "green"]


@pytest.mark.parametrize("depth", [3, 1000])
def test_a_workspace_is_deleted_however_deep_and_closed_it_is(tmp_path: Path, depth: int) -> None:
    workspace = Workspace.make(parent=tmp_path)
    deepest = os.open(workspace.root, os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("folder", dir_fd=deepest)  # the whole path is too long for a call
        below = os.open("folder", os.O_DIRECTORY, dir_fd=deepest)
        os.close(deepest)
        deepest = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=deepest))
    os.symlink("/etc", "link", dir_fd=deepest)
    os.mkfifo("pipe", dir_fd=deepest)
    os.fchmod(deepest, 0)
    os.close(deepest)
    workspace.root.joinpath("folder").chmod(0)
    workspace.root.chmod(0)
    workspace.remove()
    assert list(tmp_path.iterdir()) == []
    workspace.remove()


def test_a_link_out_of_the_workspace_is_deleted_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("stays")
    workspace = Workspace.make(parent=tmp_path)
    workspace.root.joinpath("link").symlink_to(tmp_path / "outside")
    workspace.remove()
    assert (tmp_path / "outside" / "file").read_text() == "stays"


def test_inputs_that_cannot_be_copied_leave_nothing(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    os.mkfifo(inputs / "pipe")
    with pytest.raises(OSError, match="pipe"):
        Workspace.make(inputs, parent=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["inputs"]


def test_inputs_that_are_read_only_can_be_worked_on(tmp_path: Path) -> None:
    (tmp_path / "inputs" / "data").mkdir(parents=True)
    (tmp_path / "inputs" / "data" / "a.csv").write_text("a")
    for path in (tmp_path / "inputs" / "data" / "a.csv", tmp_path / "inputs" / "data", tmp_path / "inputs"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    workspace = Workspace.make(tmp_path / "inputs")
    modes = [path.stat().st_mode for path in (workspace.root, workspace.root / "data", workspace.root / "data/a.csv")]
    workspace.remove()
    assert all(mode & 0o200 for mode in modes)


def test_what_a_killed_process_left_is_deleted_a_day_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone = str(2**22 + 1)  # above all process ids
    names = dict.fromkeys(["old", "recent"], gone) | {"alive": str(os.getpid())}
    other = tmp_path / "other"
    (other / "folder").mkdir(parents=True)
    (tmp_path / f"rubric-env-workspace-{gone}-link").symlink_to(other)
    os.utime(other, (0, time.time() - ABANDONED - 60))
    for name, owner in names.items():
        folder = tmp_path / f"rubric-env-workspace-{owner}-{name}"
        (folder / "output").mkdir(parents=True)
        if name != "recent":
            os.utime(folder, (0, time.time() - ABANDONED - 60))
    _sweep.cache_clear()
    _sweep()
    assert sorted(path.name.rpartition("-")[2] for path in tmp_path.iterdir()) == ["alive", "link", "other", "recent"]
    assert (other / "folder").is_dir()


def test_a_rollout_whose_set_up_is_cancelled_leaves_no_workspace(
    instances: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    env = make(instances)
    begun, cancelled = threading.Event(), threading.Event()
    made = env._make_workspace

    def make_workspace(info: Any) -> Any:
        begun.set()
        cancelled.wait(60)
        return made(info)

    monkeypatch.setattr(env, "_make_workspace", make_workspace)

    async def cancel() -> None:
        setting_up = asyncio.ensure_future(env.setup_state({"info": "{}", "trajectory": []}))
        await asyncio.to_thread(begun.wait)
        setting_up.cancel()
        asyncio.get_running_loop().call_soon(cancelled.set)
        with pytest.raises(asyncio.CancelledError):
            await setting_up

    asyncio.run(cancel())
    until = time.monotonic() + 60
    while not env._unscored and time.monotonic() < until:
        time.sleep(0.01)  # its thread goes on, and at the end of the process is waited for
    assert len(list(temporary.iterdir())) == 1
    asyncio.run(env._teardown())
    assert list(temporary.iterdir()) == []


RUN = """
import asyncio, sys
from verifiers.types import ClientConfig
from rubric_env.classic import Family, build_environment
family = Family("tiny-env", None, tools=("list_files",))
env = build_environment(family, sys.argv[1], judge={"settings": {"backend": "local"}})
client = ClientConfig(api_base_url=sys.argv[2], api_key_var="POLICY_KEY")
asyncio.run(env.evaluate(client=client, model="policy", num_examples=-1, rollouts_per_example=2))
"""


def test_a_run_that_is_stopped_leaves_nothing(instances: Path, tmp_path: Path, endpoint: Endpoint) -> None:
    endpoint.default = Scenario("hangs", wire="hang")
    signals = {signal.SIGINT, signal.SIGTERM}
    running = {}
    for number in signals:
        temporary = tmp_path / number.name
        temporary.mkdir()
        environment = {**os.environ, "TMPDIR": str(temporary), "POLICY_KEY": "any", "HOME": str(tmp_path)}
        command = [sys.executable, "-c", RUN, str(instances), endpoint.base_url]
        # What is started in the background of a shell ignores SIGINT, and its children inherit that.
        default = functools.partial(signal.signal, number, signal.SIG_DFL)
        running[number] = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, preexec_fn=default)
    try:
        endpoint.wait_in_flight(2 * len(signals), seconds=60)
        for number, process in running.items():
            assert len(list((tmp_path / number.name).glob("rubric-env-workspace-*"))) == 2
            process.send_signal(number)
        for number, process in running.items():
            assert process.wait(60) != 0
            assert list((tmp_path / number.name).glob("rubric-env-workspace-*")) == []
    finally:
        for process in running.values():
            process.kill()
            process.wait()
