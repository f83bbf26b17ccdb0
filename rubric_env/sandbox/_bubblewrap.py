"""The command line of a sandbox: what a program sees there, and how bubblewrap is started as nobody."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rubric_env.sandbox._limits import Limits
from rubric_env.sandbox._packages import packages

NOBODY = 61183
"""User and group of what root starts: above those that systems give out, and not 65534, which may own files."""

AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--")

_USR = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "share", "include")
"""Directories of /usr and /usr/local that are seen. Not all of it: people keep projects in /usr/src."""

_ETC = ("ld.so.cache", "alternatives", "fonts", "libreoffice")
_PYTHON, _VENV = "/opt/python", "/opt/venv"

_PREFIX = ("bin", "lib", "lib64")
"""Directories of Python's prefix that are seen: conda keeps other environments in it."""

_ENVIRONMENT = {
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "USER": "policy",
    "LANG": "C.UTF-8",
    "PYTHONPATH": "/app",
    "PYTHONSAFEPATH": "1",
    "PYTHONUNBUFFERED": "1",  # What was printed before a stop is not lost.
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLBACKEND": "Agg",
    # Many threads want more address space than there is, and one sandbox has one processor's worth of work.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}


class NotPossible(Exception):
    """This machine has no sandbox; the message says why and what to do."""


@dataclass(frozen=True)
class Layout:
    """Where things are inside: (source on the host, destination) of what is bound read-only, links, and Python."""

    bwrap: str
    binds: tuple[tuple[str, str], ...]
    hidden: tuple[str, ...]
    """Directories of packages in what is bound; each is covered, and holds what `packages` puts there."""
    packages: tuple[tuple[str, str], ...]
    links: tuple[tuple[str, str], ...]
    python: str
    environment: tuple[tuple[str, str], ...]
    venv: str
    """The text of its pyvenv.cfg; empty where Python is used without one."""


def layout() -> Layout:
    """That of this process's Python. Raises NotPossible."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise NotPossible("bubblewrap is not installed (apt-get install bubblewrap)")
    binds, links = _system()
    base = Path(sys.base_prefix).resolve()
    prefixes = dict.fromkeys((base, Path(sys.base_prefix)), str(base))
    program = Path(sys.executable).resolve()
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    environment = dict(_ENVIRONMENT)
    bins = ["/usr/local/bin", "/usr/bin", "/bin"]
    if _seen(base, program, binds):
        python = str(program)
    elif program.is_relative_to(base):
        binds += [(str(base / name), f"{_PYTHON}/{name}") for name in _PREFIX if (base / name).is_dir()]
        prefixes = dict.fromkeys(prefixes, _PYTHON)
        python = f"{_PYTHON}/{program.relative_to(base)}"
        bins.insert(0, f"{_PYTHON}/bin")
        if sysconfig.get_config_var("Py_ENABLE_SHARED"):
            environment["LD_LIBRARY_PATH"] = f"{_PYTHON}/lib"
    else:
        raise NotPossible(f"the program of this Python, {program}, is not below its prefix, {base}")
    venv = ""
    if sys.prefix != sys.base_prefix:
        prefixes[Path(sys.prefix)] = _VENV
        links += [(python, f"{_VENV}/bin/{name}") for name in ("python", "python3", version)]
        venv = f"home = {Path(python).parent}\ninclude-system-site-packages = {_system_packages()}\n"
        python = f"{_VENV}/bin/python"
        bins.insert(0, f"{_VENV}/bin")
    environment["PATH"] = ":".join(bins)
    return Layout(
        os.path.realpath(bwrap),
        tuple(binds),
        tuple(_hidden(binds)),
        tuple(_placed(packages(), prefixes)),
        tuple(links),
        python,
        tuple(environment.items()),
        venv,
    )


def _hidden(binds: list[tuple[str, str]]) -> Iterator[str]:
    """Where packages are installed, but Debian's python3/dist-packages, which only Debian's own are in."""
    ours = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    for source, at in binds:
        for path in sorted({*Path(source).glob("python3.*/*-packages"), *ours}):
            if path.is_relative_to(source) and path.is_dir():
                yield f"{at}/{path.relative_to(source)}"


def _placed(found: list[Path], prefixes: Mapping[Path, str]) -> Iterator[tuple[str, str]]:
    for path in found:
        around = [prefix for prefix in prefixes if path.is_relative_to(prefix)]
        if around:
            prefix = max(around, key=lambda prefix: len(prefix.parts))
            yield str(path), f"{prefixes[prefix]}/{path.relative_to(prefix)}"


def _system() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    binds: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    places = [*(f"/usr/{name}" for name in _USR), *(f"/usr/local/{name}" for name in _USR)]
    for place in [*places, *(f"/{name}" for name in _USR[:6]), *(f"/etc/{name}" for name in _ETC)]:
        path = Path(place)
        if path.is_symlink():
            links.append((str(path.readlink()), place))
        elif path.exists():
            binds.append((place, place))
    return binds, links


def _seen(base: Path, program: Path, binds: list[tuple[str, str]]) -> bool:
    """Whether Python belongs to the system, or to /usr/local."""
    return base in (Path("/usr"), Path("/usr/local")) and any(program.is_relative_to(place) for place, _ in binds)


def _system_packages() -> str:
    config = Path(sys.prefix, "pyvenv.cfg")
    text = config.read_text("utf-8", "replace") if config.is_file() else ""
    values = dict(line.split("=", 1) for line in text.replace(" ", "").lower().splitlines() if "=" in line)
    return "true" if values.get("include-system-site-packages") == "true" else "false"


def inner(place: Layout, limits: Limits, descriptors: dict[str, int], *, fetched: bool, disable: bool) -> list[str]:
    """Bubblewrap as nobody. `fetched`: `outer` put everything where it belongs already.

    `descriptors` are those of the files "venv" and "seccomp", where there is one.
    """
    scratch = ["--size", str(limits.scratch), "--tmpfs"]
    return [
        place.bwrap,
        *("--unshare-all", "--unshare-user", *(("--disable-userns",) if disable else ())),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv"),
        *(word for name, value in place.environment for word in ("--setenv", name, value)),
        *_parents(place),
        *(_fetched(place) if fetched else _bound(place)),
        *(word for target, at in place.links for word in ("--symlink", target, at)),
        *(("--ro-bind-data", str(descriptors["venv"]), f"{_VENV}/pyvenv.cfg") if "venv" in descriptors else ()),
        *("--proc", "/proc", "--dev", "/dev", *scratch, "/dev/shm", *scratch, "/tmp"),
        # Shared maps of the real one are memory that nobody counts; terminals are the whole machine's, and few.
        *("--dev-bind", "/dev/full", "/dev/zero", "--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts"),
        *("--size", str(limits.disk), "--tmpfs", "/app"),
        # These two are bubblewrap's, of no bounded size, and would belong to the program.
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *(("--seccomp", str(descriptors["seccomp"])) if "seccomp" in descriptors else ()),
        *("--chdir", "/app", "--hostname", "sandbox", "--"),
    ]


def outer(place: Layout) -> list[str]:
    """As root: a view in which nobody reaches a Python whose folder root keeps to itself, and then be nobody.

    With processes of its own: root's bubblewrap has no right to kill nobody's when it ends, but its namespace ends.
    """
    return [
        *(place.bwrap, "--die-with-parent", "--unshare-pid", *_parents(place)),
        *_bound(place),
        *(word for target, at in place.links for word in ("--symlink", target, at)),
        # The kernel lets nobody mount a /proc unless a whole one is in sight, and bubblewrap covers parts of its own.
        *("--proc", "/proc", "--dev-bind", "/proc", "/whole", "--dev-bind", "/dev", "/dev", "--tmpfs", "/tmp"),
        *("--chdir", "/", "--", *AS_NOBODY),
    ]


def _bound(place: Layout) -> Iterator[str]:
    for source, at in place.binds:
        yield from ("--ro-bind", source, at)
    for at in place.hidden:
        yield from ("--perms", "0755", "--tmpfs", at)
    for parent in dict.fromkeys(str(Path(at).parent) for _, at in place.packages):
        yield from ("--perms", "0755", "--dir", parent)
    for source, at in place.packages:
        yield from ("--ro-bind", source, at)
    for at in place.hidden:
        yield from ("--remount-ro", at)


def _fetched(place: Layout) -> Iterator[str]:
    """What `_bound` put into the view that bubblewrap is in, in few steps, as each takes time."""
    of_venv = (Path(at).relative_to(_VENV).parts[0] for _, at in place.packages if at.startswith(f"{_VENV}/"))
    for at in dict.fromkeys([*(at for _, at in place.binds), *(f"{_VENV}/{name}" for name in of_venv)]):
        yield from ("--ro-bind", at, at)


def _parents(place: Layout) -> Iterator[str]:
    """Folders that bubblewrap makes on its way are closed to others."""
    made: set[Path] = set()
    for _, at in (*place.binds, *place.packages, *place.links):
        for parent in reversed(Path(at).parents[:-1]):
            if parent not in made:
                made.add(parent)
                yield from ("--perms", "0755", "--dir", str(parent))
