"""Files into a task's runtime and out of it, whatever the runtime is."""

from __future__ import annotations

import asyncio
import io
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import uuid4

MAX_BYTES = 128 * 2**20
"""Of delivered files that leave a runtime; what comes after them is cut off, and a metric says so."""

PACK = 'tar -cf - -- "$1" 2>/dev/null | head -c "$2" > "$3"; exit 0'


class RuntimeUnfit(Exception):
    """A runtime in which a task cannot be prepared."""


async def place_inputs(runtime: Any, inputs: Path | None, output: str) -> None:
    """Copy the input files into the working directory of `runtime`, and make the output directory.

    Raises RuntimeUnfit where it cannot be done, or where the files could not be fetched later.
    """
    for name, data in await asyncio.to_thread(_read_all, inputs) if inputs else ():
        await runtime.write(name, data)
    made = await runtime.run(["sh", "-c", 'mkdir -p -- "$1" && command -v tar head', "sh", output], {})
    if made.exit_code:
        why = " ".join(made.stderr.split()) or "it has no tar or no head"
        raise RuntimeUnfit(f"the runtime cannot hold a workspace: {why}")


async def collect_output(runtime: Any, output: str, folder: Path) -> bool:
    """Copy the regular files of the output directory to `folder`; True when there was more than `MAX_BYTES`.

    An output directory that is gone or cannot be read delivers nothing. Raises what the runtime raises.
    """
    archive = f".submission-{uuid4().hex}.tar"
    packed = await runtime.run(["sh", "-c", PACK, "sh", output, str(MAX_BYTES), archive], {})
    if packed.exit_code:
        raise RuntimeUnfit(f"the delivered files could not be packed: {' '.join(packed.stderr.split())}")
    data = await runtime.read(archive)
    await asyncio.to_thread(_unpack, data, folder)
    return len(data) >= MAX_BYTES


def _read_all(root: Path) -> list[tuple[str, bytes]]:
    # Links are left out, so that an instance cannot show the host's files.
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [
        (path.relative_to(root).as_posix(), path.read_bytes())
        for path in files
        if not path.name.startswith("Dockerfile")
    ]


def _unpack(data: bytes, folder: Path) -> None:
    """The regular files of an archive that the policy may have had a hand in."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if not (member.isreg() or member.islnk()) or name.is_absolute() or ".." in name.parts:
                    continue
                content = archive.extractfile(member)
                if content is not None:
                    target = folder / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(content.read())
    except (tarfile.TarError, EOFError, KeyError):
        return  # cut off: what came whole counts
