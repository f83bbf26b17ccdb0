"""Run a program that reads what a policy delivered: `python -m rubric_env.evidence._limited SECONDS FOLDER PROGRAM …`.

With a FOLDER other than `-` it sees that one, and what belongs to the machine itself, and no other files.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sys
from collections.abc import Container, Iterable
from pathlib import Path

WRITTEN = 512 * 2**20
"""Bytes of one file that the program writes."""

MEMORY = 6 * 2**30
"""Bytes of address space; LibreOffice maps far more than it uses (measured: 330 MB resident)."""

SYSTEM = frozenset({"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "sys", "usr", "var"})
"""Directories that programs and fonts are in; people and judges keep theirs elsewhere."""

_BIND = 0x1000


def main() -> None:
    cpu, folder, *command = sys.argv[1:]
    if folder != "-":
        fonts = [os.environ.get("FONTCONFIG_PATH"), os.environ.get("FONTCONFIG_FILE")]
        places = [Path(place) for place in fonts if place]
        program = Path(shutil.which(command[0]) or sys.executable).resolve()
        kept = [Path(folder), *(place if place.is_dir() else place.parent for place in places)]
        hide_all_but(kept, {*SYSTEM, program.parts[1]})
        os.chdir(folder)
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, int(cpu)),
        (resource.RLIMIT_FSIZE, WRITTEN),
        (resource.RLIMIT_AS, MEMORY),
    ):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))
    os.execvp(command[0], command)


def hide_all_but(folders: Iterable[Path], system: Container[str]) -> None:
    """In a mount namespace of our own: put empty directories over those of the root that are not in `system`.

    `folders` stay where they are. Raises OSError.
    """
    kept = [(folder, os.open(folder, os.O_PATH | os.O_DIRECTORY)) for folder in folders]
    for path in Path("/").iterdir():
        if path.is_dir() and not path.is_symlink() and path.name not in system:
            _mount("none", path, "tmpfs", 0)
    for folder, handle in kept:
        folder.mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{handle}", folder, "", _BIND)


def _mount(source: str, target: Path, kind: str, flags: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(source.encode(), bytes(target), kind.encode(), flags, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(target))


if __name__ == "__main__":
    main()
