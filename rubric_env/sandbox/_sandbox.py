"""Finding out whether this machine has a sandbox, and running programs in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rubric_env.sandbox import _inside
from rubric_env.sandbox._bubblewrap import AS_NOBODY, NOBODY, Layout, NotPossible, inner, layout, outer
from rubric_env.sandbox._inside import CHUNK
from rubric_env.sandbox._job import Finished, Job, SandboxFailure
from rubric_env.sandbox._limits import Limits
from rubric_env.sandbox._packages import PROMISED
from rubric_env.sandbox._seccomp import seccomp_filter

AT_A_TIME = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
"""Sandboxes of this process that run at a time; others wait their turn, which is no part of their time."""

_PROBE = f"""
import importlib, os, site
missing = []
for name in {tuple(PROMISED.values())!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        missing.append(name)
places = [place for place in site.getsitepackages() if os.path.isdir(place)]
closed = [place for place in places if not all(os.access(entry.path, os.R_OK) for entry in os.scandir(place))]
print("ready", *missing)
print(*closed)
"""

_NAMESPACES = (
    "user namespaces are not allowed here: on the host try `sysctl -w kernel.unprivileged_userns_clone=1` (Debian) or"
    " `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), in a container"
    " `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`"
)
_SITE_PACKAGES = " ".join(sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")}))
_CLOSED = "files of Python's are closed to other users (installed under umask 077?): `chmod -R go+rX {}`"


class SandboxUnavailable(Exception):
    """Nothing can be run here; the message is one line that says why and what to do."""


@dataclass(frozen=True)
class Sandbox:
    """Runs programs without network, in a folder of their own; `find_sandbox` makes it."""

    layout: Layout
    fetched: bool
    """Python's folders are root's alone, and are brought to where nobody can read them."""
    disable: bool
    """Bubblewrap closes user namespaces inside."""
    missing: tuple[str, ...] = ()
    """Modules that a policy is promised and that cannot be imported."""

    async def run(self, command: str | Sequence[str], folder: Path, limits: Limits | None = None) -> Finished:
        """Run Python code, or a program with its arguments, with the contents of `folder` as its working directory.

        Files that it left are in `folder` when this returns, also after a stop; when it raises, and when a sandbox
        ended in disorder, `folder` is as it was. Raises SandboxFailure for what is the machine's doing.
        """
        job = Job(self.start, self.layout.python, command, folder, limits or Limits())
        running = _threads(os.getpid()).submit(job.run)
        try:
            return await asyncio.shield(asyncio.wrap_future(running))
        except asyncio.CancelledError:
            job.stop()
            if not running.cancel():
                with suppress(SandboxFailure):
                    await asyncio.wrap_future(running)
            raise

    def start(self, limits: Limits, errors: int) -> subprocess.Popen[bytes]:
        """Begin a sandbox whose process 1 reads records from its stdin. Raises OSError."""
        seccomp = seccomp_filter()
        with ExitStack() as opened:
            files: dict[str, int] = {}
            for name, data in (("venv", self.layout.venv.encode()), ("seccomp", seccomp)):
                if data:
                    handle = os.memfd_create(name)
                    opened.callback(os.close, handle)
                    os.write(handle, data)
                    os.lseek(handle, 0, os.SEEK_SET)
                    files[name] = handle
            command = inner(self.layout, limits, files, fetched=self.fetched, disable=self.disable)
            nobody = os.geteuid() == 0 and not self.fetched
            # Python itself would copy the page tables of this process, 40 ms for 450 MB, while no other thread runs.
            become = AS_NOBODY if nobody and shutil.which(AS_NOBODY[0], path=os.defpath) else ()
            nobody = nobody and not become
            return subprocess.Popen(
                [*become, *(outer(self.layout) if self.fetched else ()), *command, *self._python()],
                bufsize=CHUNK,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=tuple(files.values()),
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
                user=NOBODY if nobody else None,
                group=NOBODY if nobody else None,
                extra_groups=[] if nobody else None,
            )

    def _python(self) -> tuple[str, ...]:
        return (self.layout.python, "-I", "-S", "-c", _text_inside())


@cache
def _text_inside() -> str:
    return Path(_inside.__file__).read_text("utf-8")


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Of this process: threads do not live on in a fork."""
    return ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="sandbox")


def find_sandbox() -> Sandbox:
    """The sandbox of this machine, tried for real the first time, in about a second. Raises SandboxUnavailable."""
    found = _found()
    if isinstance(found, str):
        raise SandboxUnavailable(found)
    return found


@cache
def _found() -> Sandbox | str:
    if sys.platform != "linux":
        return "no sandbox: it needs Linux"
    try:
        place = layout()
    except NotPossible as error:
        return f"no sandbox: {error}"
    text = subprocess.run([place.bwrap, "--help"], capture_output=True, text=True, check=False).stdout
    if "--size" not in text:
        return "no sandbox: this bubblewrap is older than 0.7"
    why = ""
    for fetched in (False, True) if os.geteuid() == 0 else (False,):
        for disable in (True, False) if "--disable-userns" in text else (False,):
            try:
                return _tried(Sandbox(place, fetched, disable))
            except NotPossible as error:
                why = str(error)
    return f"no sandbox: {why}"


def _tried(sandbox: Sandbox) -> Sandbox:
    """It, with what it lacks. Raises NotPossible."""
    with tempfile.TemporaryDirectory(prefix="rubric-env-sandbox-") as made:
        folder = Path(made, "work")
        folder.mkdir()
        try:
            finished = Job(sandbox.start, sandbox.layout.python, _PROBE, folder, Limits()).run()
        except SandboxFailure as error:
            raise NotPossible(_remedy(str(error))) from error
    ready, _, closed = finished.output.partition("\n")
    if not ready.startswith("ready"):
        raise NotPossible(_remedy(finished.stopped or finished.errors.strip().rpartition("\n")[2]))
    missing = tuple(ready.split()[1:])
    if missing and closed.strip():
        raise NotPossible(_CLOSED.format(_SITE_PACKAGES))
    return Sandbox(sandbox.layout, sandbox.fetched, sandbox.disable, missing)


def _remedy(reason: str) -> str:
    if "namespace" in reason or "uid map" in reason or "Operation not permitted" in reason:
        return f"{_NAMESPACES} ({reason})"
    if "Permission denied" in reason or "ModuleNotFoundError" in reason:
        ours = "site-packages" in reason
        return f"{_CLOSED.format(_SITE_PACKAGES if ours else sys.base_prefix)} ({reason})"
    return reason
