"""The evidence of one rollout: what is shown of every delivered file and of the reply, within one budget."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal

from rubric_env._computing import computing
from rubric_env.evidence._extract import FILE_BYTES, Extract, Limits, Unit
from rubric_env.evidence._flags import Flag, find_flags
from rubric_env.evidence._resolve import Index
from rubric_env.evidence._shown import Shown, addresses
from rubric_env.evidence._sights import MOST, TOKENS, Sight, Sights, look
from rubric_env.evidence._sources import Allowance, Source, mentioned, once, quoted, source_of, words_of
from rubric_env.evidence._store import Entry, EvidenceStore, Picture, default_store
from rubric_env.evidence._tokens import estimate_tokens
from rubric_env.submission import DeliveredFile, Submission

TOTAL_BYTES = 64 * 1024 * 1024
"""Read of all files together, in equal shares of at most `FILE_BYTES`."""

FRAME_TOKENS = 100
"""What a source costs beside its text: its line in the list and two fence lines with a marker of 32 hex digits."""

FRAME = 40
"""The same without its name, which stands there twice."""

NEUTRALISED = "[fence marker]"
"""Stands where the policy wrote the marker of the fence."""

PARALLEL = 2
"""Files of one submission that are extracted at a time."""

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
            sources += addresses(replace(original, name=extract.name), facts, seen.get(original.name, ()))
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
    store, allowance = store or default_store(), Allowance()
    with ThreadPoolExecutor(PARALLEL) as threads:
        # What rows name goes first where time or bytes run out; results stand in the submission's order.
        ordered = sorted(submission.files, key=lambda file: not mentioned(file.name, mentions))
        ordered, untold = _told(ordered, budget_tokens // 2)
        found = dict(zip(ordered, threads.map(lambda file: source_of(file, store, allowance), ordered), strict=True))
    sources = once([found[file] for file in submission.files if file in found], mentions)
    words = words_of(submission)
    first = [source for source in sources if mentioned(source.name, mentions)]
    rest = [source for source in sources if not mentioned(source.name, mentions)]
    seen = Sights()
    if sights != "none":
        most = min(MOST, budget_tokens // 2 // TOKENS)
        files = [(source.name, source.entry) for source in (*first, *rest) if source.entry is not None]
        named_files = frozenset(source.name for source in first)
        seen = look(files, store, most=most, seconds=seconds, everything=sights == "all", named=named_files)
        budget_tokens -= TOKENS * len(seen.shown)
    with computing():
        budget = budget_tokens - min(FRAME_TOKENS * (len(sources) + 1), budget_tokens // 2)
        kept = int(min(UNNAMED_SHARE * budget, sum(source.size for source in rest)))
        file_bytes = min(FILE_BYTES, TOTAL_BYTES // max(1, len(sources)))
        shown = _read_all([*first, *words], budget - kept, file_bytes)
        spent = sum(estimate_tokens(extract.text) for extract in shown)
        extracts = (*shown[: len(first)], *_read_all(rest, budget - spent, file_bytes), *shown[len(first) :])
        return EvidencePack(
            delivered=_delivered(submission),
            extracts=(*map(seen.noted, extracts), *untold),
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


def _told(files: Sequence[DeliveredFile], room: int) -> tuple[list[DeliveredFile], list[Extract]]:
    """The first files (at least one) whose names and fences fit into `room` tokens; what is said of the others.

    Hundreds of long names would fill the judge's context, however little is shown of the files.
    """
    ends = accumulate(FRAME + 2 * estimate_tokens(file.name) for file in files)
    count = max(1, sum(end <= room for end in ends))
    told, left = list(files[:count]), files[count:]
    if not left:
        return told, []
    note = f"named nowhere: the names of all {len(files):,} files would take more than half of the room"
    size = sum(file.size for file in left)
    return told, [Extract(f"({len(left):,} more files)", "files", "unsupported", note, ours=True, size=size)]


def _read_all(sources: Sequence[Source], budget: int, file_bytes: int) -> list[Extract]:
    """Every source gets an equal share of what is left; the smallest go first and hand on what they do not need."""
    shown: dict[int, Extract] = {}
    for place in sorted(range(len(sources)), key=lambda place: (sources[place].weight, place)):
        source = sources[place]
        share = max(0, budget) // (len(sources) - len(shown))
        shown[place] = replace(source.read(Limits(share, file_bytes)), name=source.name, size=source.size)
        noted = 2 * estimate_tokens(shown[place].note) if source.entry is not None else 0
        budget -= estimate_tokens(shown[place].text) + noted
    return [shown[place] for place in range(len(sources))]


def _flags(extract: Extract) -> Iterator[Flag]:
    units = extract.units
    if extract.kind == "conversation":
        units = tuple(unit for unit in units if _POLICY_MESSAGE.match(unit.text))
    yield from find_flags(extract.name, units, extract.note)


def _delivered(submission: Submission) -> str:
    count = len(submission.files)
    files = "no file" if not count else "1 file" if count == 1 else f"{count:,} files"
    reply = "a reply" if submission.has_reply else "no reply"
    whole = " The whole conversation is shown." if submission.conversation is not None else ""
    return f"Delivered: {files}, {reply}.{whole}"


def _described(extract: Extract) -> str:
    ours = " (a limit of ours)" if extract.ours else ""
    note = f": {extract.note}" if extract.note else ""
    return f"{quoted(extract.name)}: {extract.kind}, {extract.size:,} bytes, {STATUS[extract.status]}{ours}{note}"


def _sections(extract: Extract, marker: str) -> Iterator[str]:
    def fenced(units: Sequence[Unit]) -> str:
        body = "\n".join([extract.name, *(unit.shown for unit in units)]).replace(marker, NEUTRALISED)
        return f"<<<DATA {marker} {body}\nDATA {marker}>>>"

    if extract.head:
        yield fenced(extract.head)
    if extract.omitted:
        yield f"Not shown of {quoted(extract.name)} at this point: {extract.gap}.".replace(marker, NEUTRALISED)
    if extract.tail:
        yield fenced(extract.tail)
    if extract.status == "cut" and extract.note:
        yield f"Note on {quoted(extract.name)}: {extract.note}.".replace(marker, NEUTRALISED)
