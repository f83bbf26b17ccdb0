"""Process 1 of a sandbox: takes files in, runs one program within limits, gives back what it printed and left.

Its text is handed to the sandbox's Python, so that it stands alone, and imports little: each module costs every run
milliseconds. It is no more than the program it runs as far as the host is concerned, which trusts nothing that comes
out; but the program can neither kill process 1 of its namespace nor look into it, so that its limits hold.

Both directions are records: a kind, the lengths of a name and of data, the name, the data.
"""

# ruff: noqa: PTH101, PTH102, PTH123, PTH208

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import stat
import struct
import sys
import time
from _blake2 import blake2b
from _signal import SIG_DFL, SIGINT, signal  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

RECORD = struct.Struct(">cHQ")
FACT, FILE, FOLDER, SAME, END = b"f", b"F", b"D", b"S", b"."
"""SAME is a file that is as it was handed in."""

STARTED = b"started"
WORK = b"/app"
WRITABLE = ("/app", "/tmp", "/dev/shm")
SCRIPT = "/tmp/script.py"
CHUNK = 2**20
DEPTH = 32
NAME_BYTES = 1000
NOTES = 20
LOOK_SECONDS = 0.05
REAPED = 200
"""Ended processes between two looks at the clock: a program may make them faster than they are counted."""

INODE_BYTES = 2048
"""Memory of the kernel for each file of a tmpfs, which its size does not bound."""
SOCKET_BYTES = 2**18
"""The most that may wait in a socket."""

_SET_DUMPABLE, _KILL, _LOW_PRIORITY = 4, 9, 5


class Item(NamedTuple):
    """One entry of the folder: its name relative to it."""

    kind: bytes
    name: bytes
    size: int


class Kept:
    """The first and the last bytes of a stream, however long it is."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.head = b""
        self.tail = b""
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        free = self.room - len(self.head)
        self.head += data[:free]
        if len(data) > free:
            self.tail = (self.tail + data[free:])[-self.room :]


class Notes:
    """The first of what is said about entries, and how many there are: millions must not take memory here."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, note: str) -> None:
        self.count += 1
        if self.count <= NOTES:
            self.first.append(note)


def write_record(write: Callable[[bytes], object], kind: bytes, name: bytes = b"", data: bytes = b"") -> None:
    write(RECORD.pack(kind, len(name), len(data)) + name + data)


def main() -> None:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # Where the machine's memory ends, this and its children go first.
    # Else the program could open /proc/1/mem and take this process over, and with it the limits.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    # Process 1 gets no signal from inside but those that it handles, and Python handles this one.
    signal(SIGINT, SIG_DFL)
    facts, before = _take_in(sys.stdin.buffer)
    out = os.fdopen(1, "wb", buffering=CHUNK)
    limits = {name: int(facts[name][0]) for name in facts if name.startswith("limit.")}
    stdout, stderr = Kept(limits["limit.kept"]), Kept(limits["limit.kept"])
    code, stopped = _run(facts, limits, stdout, stderr, out)
    notes = Notes()
    items: list[Item] = []
    said = [("stopped", stopped)]
    try:
        items = list(_left(limits, notes, before))
    except OverflowError as over:
        said.append(("over", str(over)))
    said += [("notes", str(notes.count)), *(("note", note) for note in notes.first)]
    if code is not None:
        said.append(("code", str(code)))
    for name, text in said:
        write_record(out.write, FACT, name.encode(), text.encode())
    for name, kept in (("stdout", stdout), ("stderr", stderr)):
        write_record(out.write, FACT, f"{name}.head".encode(), kept.head)
        write_record(out.write, FACT, f"{name}.tail".encode(), kept.tail)
        write_record(out.write, FACT, f"{name}.size".encode(), str(kept.size).encode())
    _give_back(out, items)
    write_record(out.write, END)
    out.flush()


def _take_in(stream: BinaryIO) -> tuple[dict[str, list[bytes]], dict[bytes, tuple[int, bytes]]]:
    """The facts, by name; and of all that was written the size and digest, by name."""
    facts: dict[str, list[bytes]] = {}
    written: dict[bytes, tuple[int, bytes]] = {}
    while True:
        kind, length, size = RECORD.unpack(stream.read(RECORD.size))
        name = stream.read(length)
        if kind == END:
            return facts, written
        if kind == FACT:
            facts.setdefault(name.decode(), []).append(stream.read(size))
        elif kind == FOLDER:
            os.mkdir(WORK + b"/" + name)
            written[name] = (0, b"")
        else:
            digest, left = blake2b(), size
            with open(WORK + b"/" + name, "wb") as file:
                while left:
                    data = stream.read(min(left, CHUNK))
                    if not data:
                        raise EOFError(name)
                    digest.update(data)
                    file.write(data)
                    left -= len(data)
            written[name] = (size, digest.digest())


def _run(
    facts: dict[str, list[bytes]], limits: dict[str, int], stdout: Kept, stderr: Kept, out: BinaryIO
) -> tuple[int | None, str]:
    """The exit code, unless it was stopped; and what it was stopped for. Nothing of it runs when this returns."""
    pipes = {}
    ends = []
    for kept in (stdout, stderr):
        read, write = os.pipe()
        pipes[read] = kept
        ends.append(write)
    held, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(facts["argv"], limits, ends, held, release)
    # What fails up to here is the machine's doing, and from here on the program's: not a line of it has run.
    write_record(out.write, FACT, STARTED)
    out.flush()
    for script in facts.get("script", ()):
        with open(SCRIPT, "wb") as file:
            file.write(script)
    for end in (*ends, held, release):
        os.close(end)
    poll = select.poll()
    for read in pipes:
        os.set_blocking(read, False)
        poll.register(read, select.POLLIN)
    code, stopped = _watch(pid, limits, poll, pipes)
    try:
        os.kill(-1, _KILL)
        while True:
            os.wait()
    except (ProcessLookupError, ChildProcessError):
        pass
    for read, kept in pipes.items():
        while data := _read(read):
            kept.add(data)
    return code, stopped


def _become(argv: list[bytes], limits: dict[str, int], ends: list[int], held: int, release: int) -> None:
    """In the child: the program, once it is released, within limits that it cannot raise. Does not return."""
    try:
        os.close(release)
        os.read(held, 1)
        os.setsid()
        os.nice(_LOW_PRIORITY)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(ends[0], 1)
        os.dup2(ends[1], 2)
        os.closerange(3, 4096)
        for name, value in limits.items():
            kind = getattr(resource, name.removeprefix("limit."), None)
            if kind is not None:
                # One more than the soft one: SIGXCPU at the first, which is told from other ends, SIGKILL at the other.
                resource.setrlimit(kind, (value, value + 1 if kind == resource.RLIMIT_CPU else value))
        os.chdir(WORK)
        os.execvp(argv[0], argv)
    except Exception as error:
        os.write(2, f"{os.fsdecode(argv[0])} does not start: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _watch(pid: int, limits: dict[str, int], poll: select.poll, pipes: dict[int, Kept]) -> tuple[int | None, str]:
    end = time.monotonic() + limits["limit.milliseconds"] / 1000
    look = 0.0
    opened = len(pipes)
    while True:
        # Once both streams are closed the end is near, and nothing else tells of it.
        for read, _ in poll.poll(1000 * LOOK_SECONDS if opened else 2):
            data = _read(read)
            if data == b"":
                poll.unregister(read)
                opened -= 1
            elif data:
                pipes[read].add(data)
        for _ in range(REAPED):
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if ended == pid:
                return os.waitstatus_to_exitcode(status), ""
            if ended == 0:
                break
        now = time.monotonic()
        if now >= end:
            return None, "time"
        if now >= look:
            look = now + LOOK_SECONDS
            if _used() > limits["limit.memory"]:
                return None, "memory"


def _read(descriptor: int) -> bytes | None:
    """None when there is nothing at the moment."""
    try:
        return os.read(descriptor, CHUNK)
    except BlockingIOError:
        return None


def _used() -> int:
    """Bytes of memory of all processes, of all files, as those of a tmpfs are memory, too, and of all sockets."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", "rb") as status:
                    lines = status.readlines()
            except OSError:  # It ended meanwhile.
                continue
            total += sum(
                int(line.split()[1]) * 1024
                for line in lines
                if line.startswith((b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:", b"HugetlbPages:"))
            )
    for place in WRITABLE:
        room = os.statvfs(place)
        total += (room.f_blocks - room.f_bfree) * room.f_frsize + (room.f_files - room.f_ffree) * INODE_BYTES
    with open("/proc/self/net/unix", "rb") as sockets:
        total += (sockets.read().count(b"\n") - 1) * SOCKET_BYTES  # Its first line is no socket.
    return total


def _left(limits: dict[str, int], notes: Notes, before: dict[bytes, tuple[int, bytes]]) -> Iterator[Item]:
    """What is in the folder now and may go back. Raises OverflowError when it is too much."""
    most, total = limits["limit.files"], 0
    counts = {True: 0, False: 0}
    folders = [(b"", 0)]
    while folders:
        folder, depth = folders.pop()
        for name, status in _entries(folder, 2 * most):
            shown = name.decode("utf-8", "backslashreplace")
            if not _plain(name) and name not in before:
                notes.add(f"{shown!r}: not a name that can be kept")
                continue
            regular = stat.S_ISREG(status.st_mode)
            if not regular and not stat.S_ISDIR(status.st_mode):
                notes.add(f"{shown}: {_odd(status.st_mode)}, not kept")
                continue
            if not regular and depth == DEPTH:
                notes.add(f"{shown}: too deep, not kept")
                continue
            counts[regular] += 1
            if counts[regular] > most:
                raise OverflowError(f"more than {most} {'files' if regular else 'folders'}")
            if not regular:
                folders.append((name, depth + 1))
                yield Item(FOLDER, name, 0)
                continue
            total += status.st_size  # Holes take no room in a tmpfs, but would on the host.
            if total > limits["limit.disk"]:
                raise OverflowError(f"more than {limits['limit.disk'] >> 20} MiB")
            known = before.get(name)
            same = known is not None and known[0] == status.st_size and known[1] == _digest(name)
            yield Item(SAME if same else FILE, name, 0 if same else status.st_size)


def _entries(folder: bytes, most: int) -> list[tuple[bytes, os.stat_result]]:
    path = WORK + b"/" + folder
    os.chmod(path, 0o700)  # The program may have closed it.
    found: list[tuple[bytes, os.stat_result]] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if len(found) == most:
                raise OverflowError(f"more than {most} entries in one folder")
            found.append((entry.name, entry.stat(follow_symlinks=False)))
    return sorted((folder + b"/" + name if folder else name, status) for name, status in found)


def _plain(name: bytes) -> bool:
    try:
        return name.decode().isprintable() and len(name) <= NAME_BYTES
    except UnicodeDecodeError:
        return False


def _odd(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _open(name: bytes) -> BinaryIO:
    path = WORK + b"/" + name
    os.chmod(path, 0o600)
    return open(path, "rb")


def _digest(name: bytes) -> bytes:
    digest = blake2b()
    with _open(name) as file:
        while data := file.read(CHUNK):
            digest.update(data)
    return digest.digest()


def _give_back(out: BinaryIO, items: list[Item]) -> None:
    for kind, name, size in items:
        out.write(RECORD.pack(kind, len(name), size) + name)
        if kind != FILE:
            continue
        with _open(name) as file:
            while size:
                data = file.read(min(size, CHUNK))
                if not data:
                    raise OSError(errno.EIO, "a file became shorter", name)
                out.write(data)
                size -= len(data)


if __name__ == "__main__":
    main()
