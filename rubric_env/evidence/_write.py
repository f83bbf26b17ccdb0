"""A pack as one folder: for people, and for judges that open files themselves. Everything in it is a copy."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rubric_env.evidence._extract import Extract
from rubric_env.evidence._pack import EvidencePack, Origin
from rubric_env.evidence._page import page
from rubric_env.evidence._sources import sha256
from rubric_env.evidence._tokens import estimate_tokens
from rubric_env.submission import OUTPUT

TEXT, MANIFEST, PAGE, FILES = "evidence.txt", "manifest.json", "index.html", "evidence"

NAME_BYTES = 120
"""Of one folder's name: file systems take 255."""

_ODD = re.compile(r"[^\w.-]+")


def write_pack(pack: EvidencePack, folder: Path) -> dict[str, Any]:
    """Write `evidence.txt`, what was extracted and drawn of each file below `evidence/`, `manifest.json`, `index.html`.

    Returns the manifest. What an earlier call left in `folder` is replaced; other files there stay. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_earlier(folder)
    names = folder_names(name for name, origin in pack.origins.items() if origin.entry is not None)
    files = [_described(extract, pack, names) for extract in pack.extracts]
    manifest = {
        "digest": pack.digest,
        "delivered": pack.delivered,
        "notes": list(pack.notes),
        "budget": pack.budget,
        "tokens": pack.tokens,
        "pages": pack.pages,
        "files": files,
        "flags": [{"address": flag.address, "excerpt": flag.excerpt} for flag in pack.flags],
    }
    # First, so that a call after one that was interrupted knows what it may remove.
    (folder / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1), "utf-8")
    for name, below in names.items():
        _copy(pack.origins[name], folder / FILES / below)
    (folder / TEXT).write_text(pack.text(pack.digest[:32]), "utf-8")
    (folder / PAGE).write_text(page(pack, {name: f"{FILES}/{below}" for name, below in names.items()}), "utf-8")
    return manifest


def folder_names(names: Iterable[str]) -> dict[str, str]:
    """For each name of a source one that every file system takes, different from the others whatever their case."""
    taken: set[str] = set()
    found = {}
    for name in names:
        plain = _ODD.sub("_", name.removeprefix(f"{OUTPUT}/")).strip("._") or "file"
        stem, dot, suffix = plain.rpartition(".")
        stem, suffix = (stem, f".{suffix[:20]}") if dot and stem else (plain, "")
        stem = stem.encode()[:NAME_BYTES].decode("utf-8", "ignore")
        number, safe = 1, f"{stem}{suffix}"
        while safe.casefold() in taken:
            number += 1
            safe = f"{stem}-{number}{suffix}"
        taken.add(safe.casefold())
        found[name] = safe
    return found


def _described(extract: Extract, pack: EvidencePack, names: Mapping[str, str]) -> dict[str, Any]:
    origin = pack.origins.get(extract.name)
    below = names.get(extract.same_as or extract.name)
    return {
        "name": extract.name,
        "folder": f"{FILES}/{below}" if below else None,
        "sha256": _sha256(origin) if origin else None,
        "bytes": extract.size,
        "kind": extract.kind,
        "status": extract.status,
        "level": pack.level(extract),
        "note": extract.note,
        "ours": extract.ours,
        "tokens": estimate_tokens(extract.text),
        "pictures": len(origin.pictures) if origin else 0,
        "seconds": origin.entry.meta["seconds"] if origin and origin.entry else None,
    }


def _sha256(origin: Origin) -> str | None:
    """Of a text, what it is now; None when it can no longer be read."""
    if origin.entry is not None:
        return origin.entry.sha256
    with suppress(OSError):
        return sha256(origin.path)
    return None


def _copy(origin: Origin, target: Path) -> None:
    assert origin.entry is not None
    target.mkdir(parents=True)
    for source in _written(origin.entry.folder):
        copy = target / source.relative_to(origin.entry.folder)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, copy, follow_symlinks=False)
    for picture in origin.pictures:
        copy = target / picture.path.relative_to(origin.entry.folder)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(picture.path, copy, follow_symlinks=False)


def _written(folder: Path) -> Iterator[Path]:
    """What the reader wrote: not the copy of the original, and no drawing that this pack did not ask for."""
    for path in sorted([*folder.glob("*.json*"), *folder.glob("pages/*.json")]):
        if path.is_file() and not path.is_symlink() and not path.name.startswith(("file", "drawing")):
            yield path


def _remove_earlier(folder: Path) -> None:
    """Only what its manifest lists: the folder may be anybody's."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        listed = json.loads((folder / MANIFEST).read_text("utf-8"))["files"]
        for below in {str(file["folder"]) for file in listed if file["folder"]}:
            mark, _, name = below.partition("/")
            if mark == FILES and name and "/" not in name and name not in (".", ".."):
                shutil.rmtree(folder / FILES / name, ignore_errors=True)
