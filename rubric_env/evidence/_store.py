"""Extracted files by their content: blocks, votes, equal submissions and re-judging never extract twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary, finalize

from rubric_env.evidence._extract import Unit
from rubric_env.evidence._fonts import missing_fonts
from rubric_env.evidence._soffice import NotRendered, calculate, to_pdf
from rubric_env.evidence._worker import CPU_SECONDS, Draw, Job
from rubric_env.evidence._workers import WorkerDied, workers
from rubric_env.evidence.kinds.sheets import NOT_CALCULATED
from rubric_env.submission import open_regular

LARGEST = 256 * 2**20
"""Bytes of a file that is read at all."""


_TEMPORARY = "rubric-env-evidence-"

PAGES = 100
"""Of one file that are drawn."""

LEAST_SECONDS = 45
"""Below this only the structure of a file is used (SPEC 8)."""

CALCULATING = 60
"""Seconds of LibreOffice for the formulas of one workbook; an ordinary one needs two (measured)."""

_CALCULATED = "calculated.xlsx"

DECKS = frozenset({"pptx", "ppt", "odp"})

KEPT = 4 * 2**30
"""Bytes of entries above which those go that nobody used for `UNUSED` seconds."""

UNUSED = 3600
"""Twice the default deadline of a rollout: nothing that is being judged is taken away."""


class TooLarge(Exception):
    """The file is larger than `LARGEST`: a limit of ours."""


@dataclass(frozen=True)
class Entry:
    """What was extracted of one content. `folder` holds `meta.json`, `units.jsonl` and what the reader wrote."""

    folder: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        """`kind`, `status`, `note`, `notes`, `errors`, `cut`, `units` (count), `facts`; `ours` where we failed.

        `seconds` is what reading it took, `in_vain` what calculating took that was given up.
        """
        meta: dict[str, Any] = json.loads((self.folder / "meta.json").read_text("utf-8"))
        return meta

    @property
    def sha256(self) -> str:
        """Of the file's bytes."""
        return self.folder.name[:64]

    @property
    def size(self) -> int:
        """Bytes of the passages."""
        path = self.folder / "units.jsonl"
        return path.stat().st_size if path.exists() else 0

    def units(self) -> Iterator[Unit]:
        """The passages, one at a time: a caller holds as many as it keeps."""
        path = self.folder / "units.jsonl"
        if path.exists():
            with path.open(encoding="utf-8") as stream:
                for line in stream:
                    yield Unit(*json.loads(line))


@dataclass(frozen=True, slots=True)
class Picture:
    """One page: a PNG file, its number from 1, and its size in pixels."""

    path: Path
    page: int
    width: int
    height: int

    def label(self, kind: str) -> str:
        """The address, in a file of that kind, under which a verdict cites it."""
        if kind == "image":
            return "picture"
        return f"slide {self.page}" if kind in DECKS else f"p{self.page}"


@dataclass(frozen=True, slots=True)
class Drawing:
    """The pictures of a file, and the active seconds that drawing them took.

    `note` says what is missing and why; `ours` when that is a failure or limit of ours.
    """

    pictures: Sequence[Picture]
    note: str = ""
    ours: bool = False
    seconds: float = 0.0


class EvidenceStore:
    """Entries under `root`, which processes may share; without one in a folder that is removed with the process.

    `cpu_seconds` bound the reading of one file.
    """

    def __init__(self, root: Path | None = None, *, cpu_seconds: int = CPU_SECONDS) -> None:
        self._cpu_seconds = cpu_seconds
        self._given = root
        self._locks: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._added = 0

    @cached_property
    def _root(self) -> Path:
        if self._given is not None:
            self._given.mkdir(parents=True, exist_ok=True)
            return self._given
        _sweep()
        temporary = tempfile.mkdtemp(prefix=f"{_TEMPORARY}{os.getpid()}-")
        finalize(self, _remove, temporary, os.getpid())
        return Path(temporary)

    def entry(self, path: Path) -> Entry:
        """The extract of a file that `read_submission` listed, made now if nobody has. Raises OSError, TooLarge."""
        with tempfile.TemporaryDirectory(dir=self._root, prefix="new-") as made:
            folder = Path(made)
            suffix = path.suffix.lower() if path.suffix.isascii() and len(path.suffix) <= 12 else ""
            copy = folder / f"file{suffix}"
            key = f"{_copy(path, copy)}{suffix}-{version()}"
            with self._turn(key):
                done = self._root / key
                if not done.exists():
                    self._extract(Job(str(copy), suffix, made, self._cpu_seconds), folder)
                    # Another process may have been faster; its entry is as good.
                    _move(folder, done)
                    self._added += 1
                    if self._added % 100 == 0:
                        self._shrink()
                os.utime(done)
            return Entry(done)

    def pictures(self, entry: Entry, seconds: float) -> Drawing:
        """The pages of an entry as pictures, made now if nobody has, within `seconds` of active time.

        What reading the file took counts; with less than `LEAST_SECONDS` left nothing is drawn.
        """
        done = entry.folder / "drawing.json"
        with self._turn(entry.folder.name):
            if done.exists():
                drawing = json.loads(done.read_text("utf-8"))
            else:
                drawing = self._draw(entry, seconds - entry.meta["seconds"])
                if drawing["drawn"] or not drawing["ours"]:
                    # A renderer that is missing or out of time now may be there next time.
                    with suppress(OSError):  # then it is drawn again next time
                        staged = done.with_suffix(f".{os.getpid()}")
                        staged.write_text(json.dumps(drawing), "utf-8")
                        staged.rename(done)
        pictures = [Picture(entry.folder / name, *size) for name, *size in drawing["drawn"]]
        return Drawing(pictures, drawing["note"], drawing["ours"], drawing.get("seconds", 0.0))

    def _draw(self, entry: Entry, seconds: float) -> dict[str, Any]:
        kind = entry.meta["kind"]
        slides = kind in DECKS
        folder, stem = ("slides", "slide") if slides else ("pictures", "page")
        if seconds < LEAST_SECONDS:
            return {"drawn": [], "note": f"not drawn: less than {LEAST_SECONDS} s were left for it", "ours": True}
        original = next(entry.folder.glob(_CALCULATED), None) or next(entry.folder.glob("file*"))
        used = 0.0
        try:
            pdf = original if kind == "pdf" else entry.folder / "drawing.pdf"
            if pdf is not original:
                used = to_pdf(original, pdf, seconds, slides=slides)
                seconds -= used
            cpu_seconds = max(1, min(self._cpu_seconds, int(seconds)))
            drawn = workers().do(Draw(str(pdf), str(entry.folder / folder), stem, PAGES, cpu_seconds))
        except (NotRendered, WorkerDied) as error:
            used += error.seconds if isinstance(error, NotRendered) else self._cpu_seconds
            return {"drawn": [], "note": f"not drawn: {error}", "ours": error.ours, "seconds": used}
        except OSError as error:
            # The machine's: a full disk, no place for temporary files, no more processes.
            why = (error.strerror or str(error)).lower()
            return {"drawn": [], "note": f"not drawn: {why}", "ours": True, "seconds": used}
        named = [
            [f"{folder}/{stem}-{number:03}.png", number, width, height] for number, width, height in drawn["drawn"]
        ]
        # A PDF brings its fonts, or pdfium has others for it.
        fonts = "" if pdf is original else missing_fonts(unit.text for unit in entry.units())
        many = f"only {PAGES} of {drawn['pages']} pages were drawn" if drawn["pages"] > PAGES else ""
        note = "; ".join(filter(None, (many, drawn["note"], fonts)))
        return {"drawn": named, "note": note, "ours": bool(many or fonts or drawn["late"]), "seconds": used}

    def _shrink(self) -> None:
        """Remove what was not used for long, the oldest first, while there is too much."""
        entries = [(path.stat().st_mtime, path) for path in self._root.iterdir() if not path.name.startswith("new-")]
        sizes = {path: sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) for _, path in entries}
        total = sum(sizes.values())
        for used, path in sorted(entries):
            if total <= KEPT or used > time.time() - UNUSED:
                break
            shutil.rmtree(path, ignore_errors=True)
            total -= sizes[path]

    def _extract(self, job: Job, folder: Path) -> None:
        try:
            meta = workers().do(job)
            if meta["facts"].get("uncalculated"):
                meta = self._calculated(job, folder, meta)
        except WorkerDied as died:
            meta = {"kind": job.suffix.lstrip(".") or "unknown", "status": "unreadable", "note": str(died)}
            meta |= {"notes": [], "errors": [], "cut": False, "units": 0, "facts": {}, "ours": died.ours}
            meta["seconds"] = float(job.cpu_seconds)
        (folder / "meta.json").write_text(json.dumps(meta, ensure_ascii=False), "utf-8")

    def _calculated(self, job: Job, folder: Path, meta: dict[str, Any]) -> dict[str, Any]:
        """Read a workbook again, with the values of formulas that it does not hold: as whoever opens it sees them."""
        copy = folder / _CALCULATED
        try:
            used = calculate(Path(job.path), copy, CALCULATING)
            again = workers().do(replace(job, calculated=str(copy)))
        except NotRendered as error:
            return _not_calculated(meta, str(error), error.ours, error.seconds)
        except OSError as error:
            return _not_calculated(meta, (error.strerror or str(error)).lower(), True, 0.0)
        except WorkerDied as died:
            copy.unlink()
            return _not_calculated(workers().do(job), f"its values are too much: {died}", died.ours, job.cpu_seconds)
        if again["facts"].get("uncalculated"):
            # Not to be drawn: what it shows in their place is wrong.
            copy.unlink()
        return {**again, "seconds": again["seconds"] + meta["seconds"] + used}

    def _turn(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())


def _not_calculated(meta: dict[str, Any], why: str, ours: bool, seconds: float) -> dict[str, Any]:
    notes = [*meta["notes"], f"{NOT_CALCULATED}: {why}"]
    return {**meta, "notes": notes, "ours": meta["ours"] or ours, "in_vain": seconds}


@cache
def default_store() -> EvidenceStore:
    """That of this process."""
    os.register_at_fork(after_in_child=default_store.cache_clear)
    return EvidenceStore()


@cache
def version() -> str:
    """Changes with every line of code that reads files."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _copy(path: Path, target: Path) -> str:
    """SHA-256 of what was copied: the policy's own processes may still write to the original."""
    digest = hashlib.sha256()
    with open_regular(path) as source, target.open("wb") as copy:
        size = 0
        while chunk := source.read(2**20):
            size += len(chunk)
            if size > LARGEST:
                raise TooLarge(f"larger than {LARGEST // 2**20} MB")
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest()


def _move(folder: Path, done: Path) -> None:
    staged = folder.with_name(f"{folder.name}-done")
    folder.rename(staged)
    folder.mkdir()
    try:
        staged.rename(done)
    except OSError:
        shutil.rmtree(staged)


def _sweep() -> None:
    """Remove what processes left that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        owner = folder.name.removeprefix(_TEMPORARY).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
