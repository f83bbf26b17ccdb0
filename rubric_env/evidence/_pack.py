"""The evidence of one rollout: what is shown of every delivered file and of the reply, within one budget."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from errno import EACCES, EINVAL, ELOOP, ENOTDIR, EPERM
from functools import cached_property
from pathlib import Path
from typing import Literal

from rubric_env.evidence._decode import clean
from rubric_env.evidence._extract import FILE_BYTES, Extract, Kind, Limits, Unit, Unreadable
from rubric_env.evidence._flags import Flag, find_flags, suspicious
from rubric_env.evidence._resolve import Index
from rubric_env.evidence._shown import Shown, shown
from rubric_env.evidence._sights import MOST, TOKENS, Sight, Sights, look
from rubric_env.evidence._store import Entry, EvidenceStore, Picture, TooLarge, default_store
from rubric_env.evidence._tokens import estimate_tokens
from rubric_env.evidence.kinds import NotRead, kind_of, registry
from rubric_env.evidence.kinds.text import paragraphs
from rubric_env.submission import DeliveredFile, Submission, open_regular

REPLY = "model_response_text.txt"
CONVERSATION = "conversation.txt"

TOTAL_BYTES = 64 * 1024 * 1024
"""Read of all files together, in equal shares of at most `FILE_BYTES`."""

FRAME_TOKENS = 100
"""What a source costs beside its text: its line in the list and two fence lines with a marker of 32 hex digits."""

NEUTRALISED = "[fence marker]"
"""Stands where the policy wrote the marker of the fence."""

PARALLEL = 2
"""Files of one submission that are extracted at a time."""

ERRORS_SHOWN = 5
"""Parts of one file that could not be extracted, named to the judge."""

UNNAMED_SHARE = 0.1
"""Of the budget, kept for files that no row names, so that none of them vanishes."""

STATUS = {
    "read": "read whole",
    "cut": "cut",
    "same": "not repeated",
    "unsupported": "not shown",
    "unreadable": "cannot be read",
    "empty": "nothing in it can be seen",
}
Level = Literal["structure", "pages", "cut", "unreadable"]

# What the policy can bring about itself. Any other failure to open a file that the walk has seen is the machine's.
_POLICY_ERRORS = frozenset({EACCES, EPERM, ELOOP, ENOTDIR, EINVAL})
_MESSAGE = re.compile(r"^\[message (\d+)\] ", re.MULTILINE)
_POLICY_MESSAGE = re.compile(r"(?:assistant|text)\b")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a source was read: the delivered file, and what a worker process extracted and drew of it."""

    path: Path
    entry: Entry | None = None
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class EvidencePack:
    """What a judge is shown, the same for all blocks of a rollout and for equal submissions.

    `flags` are passages that address the judge, `notes` what was skipped before reading. `sights` are the pictures.
    `reference` is text that a verdict may quote although the policy did not write it. `origins` are the delivered files
    by name; `budget` is in estimated tokens.
    """

    delivered: str
    extracts: tuple[Extract, ...]
    notes: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    reference: str = ""
    sights: tuple[Sight, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict, repr=False, compare=False)
    budget: int = 0

    @property
    def pages(self) -> int:
        """Pictures shown."""
        return len(self.sights)

    @property
    def ours(self) -> bool:
        """Whether a failure or cut of ours hides something, so that a judge may answer null."""
        return any(extract.ours for extract in self.extracts)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything shown; no fence marker goes into it, so that one can be made from it."""
        shown = hashlib.sha256(self.text("\0").encode())
        for sight in self.sights:
            shown.update(f"\0{sight.address}\0".encode() + sight.path.read_bytes())
        return shown.hexdigest()

    def level(self, extract: Extract) -> Level:
        """How far a source was read: `pages` when it was drawn too."""
        origin = self.origins.get(extract.same_as or extract.name)
        if origin and origin.pictures:
            return "pages"
        if extract.status in ("unreadable", "unsupported"):
            return "unreadable"
        return "cut" if extract.status == "cut" else "structure"

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of everything shown."""
        return estimate_tokens(self.text("\0")) + TOKENS * len(self.sights)

    def text(self, marker: str) -> str:
        """The evidence section of a prompt, without its heading.

        First what was delivered, then every source with its size, kind and state, then the sources themselves. What
        the policy wrote stands between lines that carry `marker`, and nowhere else but in the quoted names; a marker
        that it holds is shown as `[fence marker]`.
        """
        if not marker:
            raise ValueError("an empty fence marker protects nothing")
        lines = [self.delivered, "Every passage begins with its label in brackets; cite it as file#label.", "Sources:"]
        lines += [f"- {_described(extract)}" for extract in self.extracts]
        lines += [f"Note: {note}." for note in self.notes]
        lines = [line.replace(marker, NEUTRALISED) for line in lines]
        return "\n".join([*lines, *(line for extract in self.extracts for line in _sections(extract, marker))])

    def resolves(self, reference: str) -> bool:
        """Whether the addresses, file names and longer quotes of a verdict's evidence are in the pack.

        Prose without any of them is never in doubt. Quotes are compared without white space, case and markdown.
        """
        return self._index.resolves(reference)

    @cached_property
    def _index(self) -> Index:
        by_name = {extract.name: extract for extract in self.extracts}
        seen: dict[str, list[str]] = {}
        for sight in self.sights:
            name, _, label = sight.address.rpartition("#")
            seen.setdefault(name, []).append(label)
        sources: list[Shown] = []
        for extract in self.extracts:
            original = by_name[extract.same_as or extract.name]
            origin = self.origins.get(original.name)
            facts = origin.entry.meta["facts"] if origin and origin.entry else {}
            sources += shown(replace(original, name=extract.name), facts, seen.get(original.name, ()))
        words = ("".join(unit.text for unit in extract.units) for extract in self.extracts)
        return Index(sources, [*words, self.reference, self.text("\0")])


def build_pack(
    submission: Submission,
    *,
    budget_tokens: int,
    named: Sequence[str] = (),
    reference: str = "",
    store: EvidenceStore | None = None,
    sights: Literal["none", "some", "all"] = "none",
    seconds: float = 180.0,
) -> EvidencePack:
    """Read a submission within `budget_tokens` (estimated).

    Files whose name occurs in one of `named` (texts of rows, or names) are read first; what they leave is shared fairly
    by the others. Equal files are shown once. Text is read in the caller's thread, in time linear in at most
    `TOTAL_BYTES`; other kinds in worker processes, once for each content of the `store`. Nothing that a policy delivers
    makes it raise; files that cannot be read are in the pack with the reason.

    `sights`: "some" adds pictures, decks and pages without text as pictures, "all" the pages of every file that can be
    drawn. Drawing one file may take `seconds` of active time.
    """
    mentions = "\n".join(named).casefold()
    whole_budget = budget_tokens
    store = store or default_store()
    with ThreadPoolExecutor(PARALLEL) as threads:
        found = list(threads.map(lambda file: _source(file, store), submission.files))
    sources = _once(found, mentions)
    words = _words(submission)
    first = [source for source in sources if _mentioned(source.name, mentions)]
    rest = [source for source in sources if not _mentioned(source.name, mentions)]
    seen = Sights()
    if sights != "none":
        most = min(MOST, budget_tokens // 2 // TOKENS)
        files = [(source.name, source.entry) for source in (*first, *rest) if source.entry is not None]
        seen = look(files, store, most=most, seconds=seconds, everything=sights == "all")
        budget_tokens -= TOKENS * len(seen.shown)
    budget = budget_tokens - min(FRAME_TOKENS * (len(sources) + 1), budget_tokens // 2)
    kept = int(min(UNNAMED_SHARE * budget, sum(source.size for source in rest)))
    file_bytes = min(FILE_BYTES, TOTAL_BYTES // max(1, len(sources)))
    shown = _read_all([*first, *words], budget - kept, file_bytes)
    spent = sum(estimate_tokens(extract.text) for extract in shown)
    extracts = (*shown[: len(first)], *_read_all(rest, budget - spent, file_bytes), *shown[len(first) :])
    return EvidencePack(
        delivered=_delivered(submission),
        extracts=tuple(map(seen.noted, extracts)),
        notes=submission.notes,
        flags=tuple(flag for extract in extracts for flag in _flags(extract)),
        reference=reference,
        sights=seen.shown,
        origins={
            source.name: Origin(source.path, source.entry, seen.drawn.get(source.name, ()))
            for source in sources
            if source.path is not None
        },
        budget=whole_budget,
    )


@dataclass(frozen=True, slots=True)
class _Source:
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


def _source(file: DeliveredFile, store: EvidenceStore) -> _Source:
    try:
        with open_regular(file.path) as opened:
            found = kind_of(file.path.suffix.lower(), opened.read(64))
        return _direct(file, *found) if found else _stored(file, store)
    except NotRead as error:
        gap = Extract(kind=error.kind, status="unsupported", note=str(error), ours=True)
        return _Source(file.name, file.size, 0, lambda _: gap)
    except (Unreadable, OSError) as error:
        failed = _failed(error)
        return _Source(file.name, file.size, 0, lambda _: failed)


def _direct(file: DeliveredFile, kind: Kind, note: str) -> _Source:
    """Text, which is read where it lies."""
    reader = kind.read
    assert reader is not None

    def read(limits: Limits) -> Extract:
        try:
            extract = reader(file.path, limits)
        except (Unreadable, OSError) as error:
            return replace(_failed(error), kind=kind.name)
        return replace(extract, kind=kind.name, note="; ".join(filter(None, (note, extract.note))))

    return _Source(file.name, file.size, file.size, read, file.path, kind.name)


def _stored(file: DeliveredFile, store: EvidenceStore) -> _Source:
    """A file that a worker process reads, once for each content."""
    try:
        entry = store.entry(file.path)
    except TooLarge as error:
        gap = Extract(kind=file.path.suffix.lstrip("."), status="unsupported", note=str(error), ours=True)
        return _Source(file.name, file.size, 0, lambda _: gap)
    meta = entry.meta
    if meta["status"] == "text":
        return _direct(file, next(kind for kind in registry() if kind.name == meta["kind"]), meta["note"])
    if meta["status"] not in ("read", "empty"):
        ours = meta["status"] == "unsupported" or meta.get("ours", False)
        lost = Extract(kind=meta["kind"], status=meta["status"], note=meta["note"], ours=ours)
        return _Source(file.name, file.size, 0, lambda _: lost, file.path, meta["kind"], entry)
    notes, errors = list(meta["notes"]), meta["errors"]
    if errors:
        more = f" and {len(errors) - ERRORS_SHOWN} more" if len(errors) > ERRORS_SHOWN else ""
        notes.append(f"not extracted, which does not mean not there: {'; '.join(errors[:ERRORS_SHOWN])}{more}")

    def read(limits: Limits) -> Extract:
        extract = Extract.of(entry.units(), limits, notes=notes, cut=meta["cut"])
        return replace(extract, kind=meta["kind"], ours=extract.ours or bool(errors))

    return _Source(file.name, file.size, max(1, entry.size), read, file.path, meta["kind"], entry)


def _once(sources: Sequence[_Source], mentions: str) -> list[_Source]:
    """Files that equal another of the same suffix are named, not read: the judge pays for each content once."""
    alike = Counter(source.size for source in sources)
    shown: dict[tuple[str, str], str] = {}
    same: dict[str, str] = {}
    for source in sorted(sources, key=lambda source: not _mentioned(source.name, mentions)):
        if source.path is not None and source.size and alike[source.size] > 1:
            with suppress(OSError):
                original = shown.setdefault((source.path.suffix, sha256(source.path)), source.name)
                if original != source.name:
                    same[source.name] = original
    return [_repeated(source, same[source.name]) if source.name in same else source for source in sources]


def _repeated(source: _Source, original: str) -> _Source:
    note = f"the same bytes as {_quoted(original)}: see there"
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


def _words(submission: Submission) -> list[_Source]:
    def source(name: str, kind: str, text: str, split: Callable[[str], Iterator[Unit]]) -> _Source:
        text = clean(text)
        size = len(text.encode())
        return _Source(name, size, size, lambda limits: replace(Extract.of(split(text), limits), kind=kind))

    if submission.conversation is not None:
        return [source(CONVERSATION, "conversation", submission.conversation, _messages)]
    return [source(REPLY, "reply", submission.reply, paragraphs)] if submission.has_reply else []


def _messages(conversation: str) -> Iterator[Unit]:
    before, *rest = _MESSAGE.split(conversation)
    yield from paragraphs(before)
    for number, text in zip(rest[::2], rest[1::2], strict=True):
        yield Unit(f"message {number}", text.rstrip("\n"))


def _mentioned(name: str, mentions: str) -> bool:
    last = name.casefold().rpartition("/")[2]
    return name.casefold() in mentions or ("." in last and last in mentions)


def _read_all(sources: Sequence[_Source], budget: int, file_bytes: int) -> list[Extract]:
    """Every source gets an equal share of what is left; the smallest go first and hand on what they do not need."""
    shown: dict[int, Extract] = {}
    for place in sorted(range(len(sources)), key=lambda place: (sources[place].weight, place)):
        source = sources[place]
        share = max(0, budget) // (len(sources) - len(shown))
        shown[place] = replace(source.read(Limits(share, file_bytes)), name=source.name, size=source.size)
        budget -= estimate_tokens(shown[place].text)
    return [shown[place] for place in range(len(sources))]


def _flags(extract: Extract) -> Iterator[Flag]:
    if excerpt := suspicious(extract.name):
        yield Flag(extract.name, excerpt)
    units = extract.units
    if extract.kind == "conversation":
        units = tuple(unit for unit in units if _POLICY_MESSAGE.match(unit.text))
    yield from find_flags(extract.name, units)


def _delivered(submission: Submission) -> str:
    count = len(submission.files)
    files = "no file" if not count else "1 file" if count == 1 else f"{count:,} files"
    reply = "a reply" if submission.has_reply else "no reply"
    whole = " The whole conversation is shown." if submission.conversation is not None else ""
    return f"Delivered: {files}, {reply}.{whole}"


def _described(extract: Extract) -> str:
    ours = " (a limit of ours)" if extract.ours else ""
    note = f": {extract.note}" if extract.note else ""
    return f"{_quoted(extract.name)}: {extract.kind}, {extract.size:,} bytes, {STATUS[extract.status]}{ours}{note}"


def _sections(extract: Extract, marker: str) -> Iterator[str]:
    def fenced(units: Sequence[Unit]) -> str:
        body = "\n".join([extract.name, *(unit.shown for unit in units)]).replace(marker, NEUTRALISED)
        return f"<<<DATA {marker} {body}\nDATA {marker}>>>"

    if extract.head:
        yield fenced(extract.head)
    if extract.omitted:
        yield f"Not shown of {_quoted(extract.name)} at this point: {extract.gap}.".replace(marker, NEUTRALISED)
    if extract.tail:
        yield fenced(extract.tail)
    if extract.status == "cut" and extract.note:
        yield f"Note on {_quoted(extract.name)}: {extract.note}.".replace(marker, NEUTRALISED)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
