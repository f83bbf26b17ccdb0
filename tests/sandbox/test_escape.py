"""Each test tries an attack from inside, and looks from outside at what came of it."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rubric_env.sandbox import Limits, Sandbox
from rubric_env.sandbox._inside import Notes
from tests.sandbox.conftest import Inside, names

ATTEMPT = """
import os
def attempt(what, *arguments, **named):
    try:
        result = what(*arguments, **named)
    except (OSError, PermissionError) as error:
        return f"no: {error.strerror}"
    return f"YES: {result!r}"
def reading(path):
    return attempt(lambda: open(path, "rb").read(100))
def writing(path, text="x"):
    def write():
        with open(path, "w") as file:
            file.write(text)
    return attempt(write)
"""


def processes_with(word: str) -> list[str]:
    """Command lines of this machine that hold it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(f"{entry.name}: {line[:200]!r}")
    return found


async def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < end:  # noqa: ASYNC110 (it looks at other processes)
        await asyncio.sleep(0.02)
    return met


async def begins(word: str) -> None:
    """Until the daemon of STUBBORN runs, whose command line ends with the word."""
    assert await wait_for(lambda: any(line.endswith(f"# {word}\\x00'") for line in processes_with(word)), 40)


async def nothing_left(word: str) -> None:
    await wait_for(lambda: not processes_with(word), 30)
    assert processes_with(word) == []


def processes() -> dict[int, str]:
    """Names by pid."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found[int(entry.name)] = (entry / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def core_pattern() -> str:
    return Path("/proc/sys/kernel/core_pattern").read_text()


@contextmanager
def secret_file(folder: Path, text: str) -> Iterator[Path]:
    path = folder / f"secret-{secrets.token_hex(4)}"
    path.write_text(text)
    path.chmod(0o644)
    try:
        yield path
    finally:
        path.unlink()


async def test_files_of_the_host_are_not_there(inside: Inside, tmp_path: Path) -> None:
    with secret_file(tmp_path, "host-secret") as mine, secret_file(Path("/var/tmp"), "host-secret") as anyones:
        paths = [mine, anyones, Path("/etc/passwd"), Path("/etc/shadow"), Path("/root"), Path(__file__), Path.home()]
        shown = await inside.tries(
            f"{ATTEMPT}\nfor path in {[str(path) for path in paths]!r}: print(reading(path))\n"
            "print(sorted(os.listdir('/')), sorted(os.listdir('/etc')))"
        )
    lines = shown.splitlines()
    assert lines[:-1] == ["no: No such file or directory"] * len(paths)
    assert not {"home", "root", "work", "var", "run", "sys", "srv", "mnt", "boot"} & set(
        eval(lines[-1].split("] [")[0] + "]")
    )
    assert "passwd" not in lines[-1]


async def test_packages_that_may_hold_answers_are_not_there(inside: Inside) -> None:
    """Environments are packages, too: their rubrics and expected answers lie beside docx and the others."""
    site_packages = Path(sysconfig.get_path("purelib"))
    if not os.access(site_packages, os.W_OK):
        pytest.skip("no package can be put there")
    name = f"environment_{secrets.token_hex(4)}"
    (site_packages / name).mkdir()
    try:
        (site_packages / name / "rubric.json").write_text("host-secret")
        (site_packages / f"{name}.py").write_text("host-secret")
        shown = await inside.tries(
            "import os, importlib.util\n"
            f"print(importlib.util.find_spec({name!r}), importlib.util.find_spec('rubric_env'))\n"
            "for top in ('/opt', '/usr', '/app'):\n"
            "    for folder, folders, files in os.walk(top):\n"
            f"        for found in {{*folders, *files}} & {{{name!r}, {name + '.py'!r}, 'verifiers', 'rubric_env'}}:\n"
            "            print(folder, found)"
        )
    finally:
        shutil.rmtree(site_packages / name)
        (site_packages / f"{name}.py").unlink(missing_ok=True)
    assert shown == "None None"


async def test_no_secret_of_the_environment_is_seen(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "host-secret")
    shown = await inside.tries(
        f"{ATTEMPT}\nprint(dict(os.environ))\n"
        "for pid in os.listdir('/proc'):\n"
        "    if pid.isdigit():\n"
        "        print(pid, reading(f'/proc/{pid}/environ'), reading(f'/proc/{pid}/cmdline'))\n"
    )
    assert "host-secret" not in shown
    assert "JUDGE" not in shown


async def test_no_file_of_the_host_is_reached_through_a_process(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\n"
        "pids = [pid for pid in os.listdir('/proc') if pid.isdigit()]\n"
        "print(len(pids))\n"
        "for pid in pids:\n"
        "    for where in ('root', 'cwd', 'fd', 'root/etc/passwd', 'cwd/../etc/passwd'):\n"
        "        print(where, attempt(os.listdir, f'/proc/{pid}/{where}'))\n"
        "print(attempt(os.listdir, '/proc/1/fd'), attempt(os.readlink, '/proc/1/root'))"
    )
    lines = shown.splitlines()
    assert lines[0] == "2"  # Process 1 and the program.
    assert "passwd" not in shown.replace("etc/passwd no:", "")
    assert lines[-1].count("no: ") == 2


async def test_process_1_cannot_be_taken_over(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\n"
        "import ctypes\n"
        "print(attempt(open, '/proc/1/mem', 'r+b'))\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))\n"
        "import time\nfor number in range(1, 65): os.kill(1, number)\ntime.sleep(0.2)\n"
        "print('alive')"
    )
    assert shown.splitlines() == ["no: Permission denied", "-1 -1", "alive"]


async def test_process_1_cannot_be_slowed_down_or_limited(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport ctypes, platform, resource\n"
        "print(attempt(resource.prlimit, 1, resource.RLIMIT_NOFILE, (0, 0)))\n"
        "for which, who in ((os.PRIO_PROCESS, 1), (os.PRIO_USER, 0), (os.PRIO_PGRP, 0)):\n"
        "    print(attempt(os.setpriority, which, who, 19))\n"
        "print(attempt(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0)))\n"
        "print(attempt(os.sched_setaffinity, 1, {0}))\n"
        "number = {'x86_64': 251, 'aarch64': 30}.get(platform.machine(), 0)\n"
        "print('no:' if ctypes.CDLL(None).syscall(number, 1, 1, 3 << 13) == -1 else 'YES')\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)); os.nice(1)"
    )
    assert [line[:3] for line in shown.splitlines()] == ["no:"] * 7


async def test_no_process_of_the_host_can_be_killed(inside: Inside) -> None:
    victim = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
    try:
        shown = await inside.tries(
            f"{ATTEMPT}\nimport signal\nsignal.signal(15, signal.SIG_IGN)\n"
            f"print(attempt(os.kill, {victim.pid}, 9), attempt(os.kill, {os.getpid()}, 9), os.getppid())\n"
            "print(attempt(os.kill, -1, 15))"
        )
        assert victim.returncode is None
    finally:
        victim.kill()
        await victim.wait()
    assert shown.splitlines()[0].startswith("no: No such process no: No such process 1")


async def test_there_is_no_network(inside: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        shown = await inside.tries(
            f"{ATTEMPT}\nimport socket\n"
            f"print(attempt(socket.create_connection, ('127.0.0.1', {server.getsockname()[1]}), 2))\n"
            "print(attempt(socket.create_connection, ('1.1.1.1', 53), 2))\n"
            "print(attempt(socket.getaddrinfo, 'example.org', 80))\n"
            # VSOCK, which no namespace holds, ALG, PACKET, NETLINK, XDP
            "for family in (40, 38, 17, 16, 44):\n"
            "    print(attempt(socket.socket, family, socket.SOCK_STREAM))"
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    lines = shown.splitlines()
    assert lines[:2] == ["no: Address family not supported by protocol"] * 2
    assert all(line.startswith("no: ") for line in lines)
    assert lines[3:] == ["no: Address family not supported by protocol"] * 5


async def test_unix_sockets_of_the_host_are_out_of_reach(inside: Inside, tmp_path: Path) -> None:
    name = f"\0rubric-env-{secrets.token_hex(4)}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as file:
        abstract.bind(name)
        abstract.listen()
        file.bind(str(tmp_path / "socket"))
        file.listen()
        shown = await inside.tries(
            f"{ATTEMPT}\nimport socket\n"
            f"for name in ({name!r}, {str(tmp_path / 'socket')!r}):\n"
            "    print(attempt(socket.socket(socket.AF_UNIX).connect, name))"
        )
    assert shown.splitlines() == ["no: Connection refused", "no: No such file or directory"]


async def test_two_runs_at_a_time_do_not_see_each_other(sandbox: Sandbox, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / "whose.txt").write_text(folder.name)
    code = (
        "import os, time, pathlib\n"
        "pathlib.Path('/tmp/mine').write_text('x'); pathlib.Path('/dev/shm/mine').write_text('x')\n"
        "time.sleep(0.5)\n"
        "print(open('whose.txt').read(), os.listdir('/app'), sorted(os.listdir('/tmp')), os.listdir('/dev/shm'),"
        " len([name for name in os.listdir('/proc') if name.isdigit()]), os.listdir('/app/..').count('one'))"
    )
    both = await asyncio.gather(*(sandbox.run(code, folder) for folder in folders))
    for folder, finished in zip(folders, both, strict=True):
        assert finished.output.split() == [
            folder.name,
            "['whose.txt']",
            "['mine',",
            "'script.py']",
            "['mine']",
            "2",
            "0",
        ]


async def test_nothing_is_mounted_and_no_namespace_made(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.mount(b'none', b'/app', b'tmpfs', 0, None))\n"
        "print(libc.mount(b'/', b'/usr', b'', 4096 | 32, None))\n"  # bind, remount
        "print(libc.umount2(b'/usr', 2), libc.unshare(0x10000000), libc.unshare(0x20000), libc.chroot(b'/app'))\n"
        "print(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0))\n"
        "import subprocess\n"
        "print(subprocess.run(['unshare', '-r', 'true'], capture_output=True).returncode)"
    )
    assert shown.split() == ["-1"] * 7 + ["1"]


async def test_what_is_bound_is_read_only(inside: Inside, sandbox: Sandbox) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport sys, docx\n"
        "for path in ('/usr/x', '/usr/bin/env', '/x', '/dev/x', '/etc/x', '/opt/x', '/proc/x', docx.__file__,"
        " sys.prefix + '/x', sys.base_prefix + '/x', os.path.realpath(sys.executable)):\n"
        "    print(path, writing(path))\n"
        "print(attempt(os.unlink, docx.__file__), attempt(os.chmod, '/usr', 0o777), attempt(os.rename, '/usr', '/x'))"
    )
    assert "YES" not in shown
    assert len(shown.splitlines()) == 12


async def test_the_kernel_cannot_be_set(inside: Inside) -> None:
    before = core_pattern()
    shown = await inside.tries(
        f"{ATTEMPT}\n"
        "for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches',"
        " '/proc/sys/kernel/hostname', '/sys/kernel/uevent_helper', '/proc/1/oom_score_adj'):\n"
        "    print(writing(path, '|/bin/true'))"
    )
    assert "YES" not in shown
    assert core_pattern() == before


async def test_no_capability_and_no_other_user(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport subprocess\n"
        "for line in open('/proc/self/status'):\n"
        "    if line.startswith(('Cap', 'NoNewPrivs', 'Seccomp:', 'Groups')): print(line.strip())\n"
        "print(attempt(os.setuid, 0), attempt(os.setgid, 0), attempt(os.setgroups, [0]))\n"
        "done = subprocess.run(['su', '-c', 'id'], stdin=subprocess.DEVNULL, capture_output=True, text=True)\n"
        "print(done.returncode != 0, 'uid=0' in done.stdout, os.getuid() != 0)"
    )
    lines = shown.splitlines()
    fields = dict(line.split(":", 1) for line in lines[:-2])
    assert {int(value, 16) for name, value in fields.items() if name.startswith("Cap")} == {0}
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"
    assert lines[-2].count("no: ") == 3
    assert lines[-1] == "True False True"


async def test_no_device_is_made_or_reached(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport stat\n"
        "print(attempt(os.mknod, '/app/disk', stat.S_IFBLK | 0o666, os.makedev(8, 0)))\n"
        "print(attempt(os.mknod, '/app/mem', stat.S_IFCHR | 0o666, os.makedev(1, 1)))\n"
        "for path in ('/dev/kmsg', '/dev/mem', '/proc/kcore', '/dev/vda', '/dev/sda'): print(reading(path))\n"
        "print(sorted(os.listdir('/dev')))"
    )
    assert "YES" not in shown
    known = "core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert shown.splitlines()[-1] == str(known.split())


async def test_a_setuid_file_of_the_program_comes_back_as_a_plain_one(inside: Inside, work: Path) -> None:
    await inside.tries("import os\nopen('tool', 'w').write('#!/bin/sh')\nos.chmod('tool', 0o6777)")
    assert (work / "tool").stat().st_mode & 0o7111 == 0


async def test_a_fork_bomb_is_contained_and_disturbs_no_other_run(sandbox: Sandbox, tmp_path: Path) -> None:
    name = f"bomb-{secrets.token_hex(4)}"
    bomb = (
        "import os, time\n"
        f"open('/proc/self/comm', 'w').write('{name}')\n"
        "failed = 0\n"
        "while True:\n"
        "    try:\n"
        "        os.fork()\n"
        "    except OSError:\n"
        "        failed += 1\n"
        "        if failed == 1: print('full', flush=True)\n"
        "        time.sleep(0.01)\n"
    )
    other = "import threading, subprocess\nfor _ in range(20): subprocess.run(['true'], check=True)\nprint('fine')"
    folders = [tmp_path / name for name in ("bomb", "other")]
    for folder in folders:
        folder.mkdir()
    bombed = asyncio.create_task(sandbox.run(bomb, folders[0], Limits(seconds=8)))
    assert await wait_for(lambda: list(processes().values()).count(name) > 40, 60)
    beside = asyncio.create_task(sandbox.run(other, folders[1], Limits(seconds=60)))
    most = 0
    while not bombed.done():
        most = max(most, list(processes().values()).count(name))
        await asyncio.sleep(0.1)
    finished = await bombed
    assert most < 64
    assert ((await beside).code, (await beside).output) == (0, "fine\n")
    assert finished.stopped == "stopped after 8 s"
    assert "full" in finished.output
    assert name not in processes().values()


@pytest.mark.parametrize("place", ["/app", "/tmp", "/dev/shm"])
async def test_a_disk_flood_ends_at_its_bound(inside: Inside, place: str) -> None:
    shown = await inside.tries(
        "import os\nwritten = 0\ntry:\n"
        "    for number in range(10_000):\n"
        f"        with open(f'{place}/{{number}}', 'wb', buffering=0) as file:\n"
        "            for _ in range(16): written += file.write(b'x' * 2**18)\n"
        "except OSError as error: print(error.errno, written >> 20)\n"
        f"for name in os.listdir('{place}'): os.unlink(f'{place}/{{name}}')",
        disk=40 * 2**20,
        scratch=20 * 2**20,
    )
    assert shown in ({"/app": "28 40"}.get(place, "28 20"), {"/app": "28 39"}.get(place, "28 19"))


async def test_a_flood_of_empty_files_is_memory_too(inside: Inside) -> None:
    finished = await inside(
        "number = 0\nwhile True:\n    open(f'/tmp/{number}', 'w').close()\n    number += 1",
        memory=60 * 2**20,
        seconds=60,
    )
    assert finished.stopped.startswith("stopped at more than 60 MiB of memory")


async def test_a_file_that_is_only_holes_is_bounded(inside: Inside) -> None:
    finished = await inside("open('big', 'wb').truncate(10**12)")
    assert "File too large" in finished.errors


@pytest.mark.parametrize(
    "code",
    [
        "x = []\nwhile True: x.append(bytearray(2**24))",
        "import os\nfor _ in range(4): os.fork()\nx = bytearray(b'x') * (60 << 20)\nimport time; time.sleep(30)",
        "import mmap\nf = open('/dev/shm/x', 'w+b'); f.truncate(2**26); m = mmap.mmap(f.fileno(), 2**26)\n"
        "m[:] = b'x' * 2**26; m.madvise(mmap.MADV_DONTNEED)\nx = bytearray(b'x') * (240 << 20)\n"
        "import time; time.sleep(30)",
    ],
    ids=["one process", "many processes", "shared pages"],
)
async def test_a_memory_bomb_is_stopped(inside: Inside, code: str) -> None:
    finished = await inside(code, memory=300 * 2**20, seconds=60)
    assert finished.stopped == "stopped at more than 300 MiB of memory, files included"


async def test_memory_of_no_process_and_no_file_system_is_not_to_be_had(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport ctypes\nlibc = ctypes.CDLL(None)\n"
        "print(attempt(os.memfd_create, 'x'), libc.shmget(0, 4096, 0o1600), libc.msgget(0, 0o1600))\n"
        "import mmap\nprint(attempt(mmap.mmap, -1, 4096), attempt(lambda: mmap.mmap(os.open('/dev/zero', 2), 4096)))\n"
        "r, w = os.pipe()\nprint(libc.vmsplice(w, None, 0, 0))"
    )
    assert shown.splitlines() == [
        "no: Function not implemented -1 -1",
        "no: Operation not permitted no: No such device",
        "-1",
    ]


async def test_what_all_of_a_machine_share_in_small_numbers_is_not_to_be_had(inside: Inside) -> None:
    shown = await inside.tries(
        f"{ATTEMPT}\nimport ctypes, platform\nlibc = ctypes.CDLL(None)\n"
        "print(attempt(os.open, '/dev/ptmx', 2), attempt(os.open, '/dev/pts/ptmx', 2))\n"
        "setup = {'x86_64': 206, 'aarch64': 0}.get(platform.machine(), 0)\n"
        "print(libc.inotify_init1(0), libc.syscall(setup, 64, ctypes.byref(ctypes.c_ulong(0))))"
    )
    assert shown.splitlines() == ["no: No such file or directory no: No such file or directory", "-1 -1"]


async def test_what_waits_in_sockets_is_memory_too(inside: Inside) -> None:
    finished = await inside(
        f"{ATTEMPT}\nimport socket, time\npairs = [socket.socketpair() for _ in range(120)]\n"
        "print(attempt(pairs[0][0].setsockopt, socket.SOL_SOCKET, socket.SO_SNDBUF, 2**24), flush=True)\n"
        "time.sleep(20)",
        memory=60 * 2**20,
    )
    assert finished.output.strip() in ("no: Operation not permitted", "")  # It may be stopped before it asks.
    assert finished.stopped == "stopped at more than 60 MiB of memory, files included"
    assert (await inside.tries("import socket\npair = socket.socketpair(); pair[0].send(b'x'); print(1)")) == "1"


async def test_an_allocation_that_no_process_may_make_is_an_error_of_the_program(inside: Inside) -> None:
    finished = await inside("x = bytearray(4 << 30)")
    assert finished.code == 1
    assert finished.errors.rstrip().endswith("MemoryError")


async def test_a_flood_of_output_is_read_in_bounded_memory(inside: Inside) -> None:
    finished = await inside(
        "import os\nprint('first', flush=True)\ndata = b'x' * 2**20\n"
        "for _ in range(300): os.write(1, data)\nprint('last')",
        output=1000,
    )
    assert finished.code == 0
    assert len(finished.output) < 1100
    assert finished.output.startswith("firs")
    assert finished.output.endswith("last\n")
    assert "bytes left out" in finished.output


STUBBORN = """
import os, signal, sys, time
for number in (1, 2, 13, 15): signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)  # MARK'])
    os._exit(0)
"""


def test_what_process_1_says_of_odd_entries_does_not_add_up() -> None:
    notes = Notes()  # Process 1 has no limit of memory, and there can be millions of them.
    for number in range(1000):
        notes.add(f"{number}: a link, not kept")
    assert (len(notes.first), notes.count) == (20, 1000)


async def test_daemons_end_with_the_program(inside: Inside) -> None:
    mark = secrets.token_hex(8)
    finished = await inside(STUBBORN.replace("MARK", mark) + "time.sleep(0.3)\nprint('done')")
    assert finished.output == "done\n"
    await nothing_left(mark)


async def test_a_program_that_never_stops_is_stopped_with_all_it_started(inside: Inside) -> None:
    mark = secrets.token_hex(8)
    begin = time.monotonic()
    finished = await inside(STUBBORN.replace("MARK", mark) + "print('begun')\nwhile True: pass", seconds=4)
    assert time.monotonic() - begin < 30
    assert finished.stopped == "stopped after 4 s"
    assert finished.output == "begun\n"
    await nothing_left(mark)


async def test_cancelling_kills_it_and_leaves_the_folder_as_it_was(inside: Inside, work: Path) -> None:
    mark = secrets.token_hex(8)
    task = asyncio.create_task(inside(STUBBORN.replace("MARK", mark) + "open('x', 'w')\nwhile True: pass"))
    await begins(mark)
    task.cancel()
    begin = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - begin < 20  # it would go on for a minute
    await nothing_left(mark)
    assert names(work) == []
    assert names(work.parent) == [work.name]


async def test_nothing_of_it_outlives_this_process(sandbox: Sandbox, work: Path) -> None:
    mark = secrets.token_hex(8)
    host = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "import asyncio, pathlib, sys\nfrom rubric_env.sandbox import find_sandbox\n"
        "asyncio.run(find_sandbox().run(sys.argv[1], pathlib.Path(sys.argv[2])))",
        STUBBORN.replace("MARK", mark) + "while True: pass",
        str(work),
    )
    await begins(mark)
    host.kill()
    await host.wait()
    await nothing_left(mark)


async def test_no_descriptor_is_inherited(inside: Inside) -> None:
    secret = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        shown = await inside.tries(
            "import os\nfolder = '/proc/self/fd/'\n"
            "names = [name for name in os.listdir(folder) if os.path.exists(folder + name)]\n"
            "print({name: os.readlink(folder + name).split(':')[0] for name in names})"
        )
    finally:
        os.close(secret)
    seen = eval(shown)
    assert {name: seen[name] for name in sorted(seen)[:3]} == {"0": "/dev/null", "1": "pipe", "2": "pipe"}
    assert set(seen.values()) <= {"/dev/null", "pipe", "/tmp/script.py"}
