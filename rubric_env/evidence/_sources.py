"""What one rollout has for a judge: its files, each with its reader, and the policy's words."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from errno import EACCES, EINVAL, ELOOP, ENOTDIR, EPERM
from pathlib import Path

from rubric_env.evidence._decode import clean
from rubric_env.evidence._extract import Extract, Kind, Limits, Unit, Unreadable
from rubric_env.evidence._store import Entry, EvidenceStore, TooLarge
from rubric_env.evidence._tokens import estimate_tokens
from rubric_env.evidence.kinds import NotRead, kind_of, registry
from rubric_env.evidence.kinds.text import paragraphs
from rubric_env.submission import DeliveredFile, Submission, open_regular

REPLY = "model_response_text.txt"
CONVERSATION = "conversation.txt"

ERRORS_SHOWN = 5
"""Parts of one file that could not be extracted, named to the judge."""

SUBMISSION_SECONDS = 300.0
"""CPU seconds for all files of a submission that workers read: five times what one may take."""

SUBMISSION_BYTES = 2**30
"""Of all these files together."""

LEAST_NOTE = 100
"""Characters that may be said of a file, however little room there is."""

# What the policy can bring about itself. Any other failure to open a file that the walk has seen is the machine's.
_POLICY_ERRORS = frozenset({EACCES, EPERM, ELOOP, ENOTDIR, EINVAL})
_MESSAGE = re.compile(r"^\[message (\d+)\] ", re.MULTILINE)


class Allowance:
    """What reading the files of one submission may cost together. Safe in several threads.

    CPU seconds count whether a file is read now or was before, so that equal submissions are shown equally much.
    """

    def __init__(self, seconds: float = SUBMISSION_SECONDS, size: int = SUBMISSION_BYTES) -> None:
        self._lock = threading.Lock()
        self._seconds = seconds
        self._size = size
        self._honest = 0.0

    def take(self, size: int) -> Extract | None:
        """None when a file of that size may be read, else what is shown in its place."""
        with self._lock:
            self._size -= size
            if self._seconds > 0 and self._size > 0:
                return None
            what = "bytes" if self._seconds > 0 else "time"
            # Bombs that use up the time are the policy's doing; many files that can be read are a limit of ours.
            ours = self._seconds > 0 or self._honest > SUBMISSION_SECONDS / 2
            note = f"not read: the {what} for the files of one submission were used up before"
            return Extract(kind="unknown", status="unsupported", note=note, ours=ours)

    def spent(self, seconds: float, *, honest: bool) -> None:
        """Book what a file took; `honest`: it could be read."""
        with self._lock:
            self._seconds -= seconds
            self._honest += seconds * honest


@dataclass(frozen=True, slots=True)
class Source:
    """`weight` is a size in bytes, or 0 where nothing is to be read; `read` gives the extract without name and size.

    `path` and `kind` are those of a file that is read.
    """

    name: str
    size: int
    weight: int
    read: Callable[[Limits], Extract]
    path: Path | None = None
    kind: str = ""
    entry: Entry | None = None


def source_of(file: DeliveredFile, store: EvidenceStore, allowance: Allowance) -> Source:
    """A delivered file with its reader; what a worker has to read is read here, within the allowance."""
    try:
        with open_regular(file.path) as opened:
            found = kind_of(file.path.suffix.lower(), opened.read(64))
        return _direct(file, *found) if found else _stored(file, store, allowance)
    except NotRead as error:
        gap = Extract(kind=error.kind, status="unsupported", note=str(error), ours=True)
        return Source(file.name, file.size, 0, lambda _: gap)
    except (Unreadable, OSError) as error:
        failed = _failed(error)
        return Source(file.name, file.size, 0, lambda _: failed)


def _direct(file: DeliveredFile, kind: Kind, note: str) -> Source:
    """Text, which is read where it lies."""
    reader = kind.read
    assert reader is not None

    def read(limits: Limits) -> Extract:
        try:
            extract = reader(file.path, limits)
        except (Unreadable, OSError) as error:
            return replace(_failed(error), kind=kind.name)
        return replace(extract, kind=kind.name, note="; ".join(filter(None, (note, extract.note))))

    return Source(file.name, file.size, file.size, read, file.path, kind.name)


def _stored(file: DeliveredFile, store: EvidenceStore, allowance: Allowance) -> Source:
    """A file that a worker process reads, once for each content."""
    if left_out := allowance.take(file.size):
        return Source(file.name, file.size, 0, lambda _: left_out)
    try:
        entry = store.entry(file.path)
    except TooLarge as error:
        gap = Extract(kind=file.path.suffix.lstrip("."), status="unsupported", note=str(error), ours=True)
        return Source(file.name, file.size, 0, lambda _: gap)
    meta = entry.meta
    allowance.spent(meta["seconds"], honest=meta["status"] != "unreadable")
    allowance.spent(meta.get("in_vain", 0.0), honest=False)
    if meta["status"] == "text":
        return _direct(file, next(kind for kind in registry() if kind.name == meta["kind"]), meta["note"])
    if meta["status"] not in ("read", "empty"):
        ours = meta["status"] == "unsupported" or meta["ours"]
        lost = Extract(kind=meta["kind"], status=meta["status"], note=meta["note"], ours=ours)
        return Source(file.name, file.size, 0, lambda _: lost, file.path, meta["kind"], entry)
    notes, errors = list(meta["notes"]), meta["errors"]
    if errors:
        more = f" and {len(errors) - ERRORS_SHOWN} more" if len(errors) > ERRORS_SHOWN else ""
        notes.append(f"not extracted, which does not mean not there: {'; '.join(errors[:ERRORS_SHOWN])}{more}")

    said = "; ".join(notes)

    def read(limits: Limits) -> Extract:
        # What is said of a file may hold names as long as the policy likes, and stands in the evidence twice.
        most = max(LEAST_NOTE, limits.tokens)
        note = said if len(said) <= most else f"{said[: most - 2]} …"
        left = replace(limits, tokens=max(0, limits.tokens - 2 * estimate_tokens(note)))
        extract = Extract.of(entry.units(), left, notes=filter(None, [note]), cut=meta["cut"])
        return replace(extract, kind=meta["kind"], ours=extract.ours or meta["ours"])

    return Source(file.name, file.size, max(1, entry.size), read, file.path, meta["kind"], entry)


def once(sources: Sequence[Source], mentions: str) -> list[Source]:
    """Files that equal another of the same suffix are named, not read: the judge pays for each content once."""
    alike = Counter(source.size for source in sources)
    shown: dict[tuple[str, str], str] = {}
    same: dict[str, str] = {}
    for source in sorted(sources, key=lambda source: not mentioned(source.name, mentions)):
        if source.path is not None and source.size and alike[source.size] > 1:
            with suppress(OSError):
                digest = source.entry.sha256 if source.entry else sha256(source.path)
                original = shown.setdefault((source.path.suffix, digest), source.name)
                if original != source.name:
                    same[source.name] = original
    return [_repeated(source, same[source.name]) if source.name in same else source for source in sources]


def _repeated(source: Source, original: str) -> Source:
    note = f"the same bytes as {quoted(original)}: see there"
    extract = Extract(kind=source.kind, status="same", note=note, same_as=original)
    return replace(source, weight=0, read=lambda _: extract, entry=None)


def sha256(path: Path) -> str:
    """Of a delivered file as it is now. Raises OSError."""
    digest = hashlib.sha256()
    with open_regular(path) as opened:
        while chunk := opened.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _failed(error: Unreadable | OSError) -> Extract:
    if isinstance(error, Unreadable):
        return Extract(kind="unknown", status="unreadable", note=str(error))
    reason = (error.strerror or str(error)).lower()
    return Extract(kind="unknown", status="unreadable", note=reason, ours=error.errno not in _POLICY_ERRORS)


def words_of(submission: Submission) -> list[Source]:
    def source(name: str, kind: str, text: str, split: Callable[[str], Iterator[Unit]]) -> Source:
        text = clean(text)
        size = len(text.encode())
        return Source(name, size, size, lambda limits: replace(Extract.of(split(text), limits), kind=kind))

    if submission.conversation is not None:
        return [source(CONVERSATION, "conversation", submission.conversation, _messages)]
    return [source(REPLY, "reply", submission.reply, paragraphs)] if submission.has_reply else []


def _messages(conversation: str) -> Iterator[Unit]:
    before, *rest = _MESSAGE.split(conversation)
    yield from paragraphs(before)
    for number, text in zip(rest[::2], rest[1::2], strict=True):
        yield Unit(f"message {number}", text.rstrip("\n"))


def mentioned(name: str, mentions: str) -> bool:
    last = name.casefold().rpartition("/")[2]
    return name.casefold() in mentions or ("." in last and last in mentions)


def quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
