"""Which pages a judge that sees is shown as pictures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rubric_env.evidence._extract import Extract
from rubric_env.evidence._store import DECKS, Entry, EvidenceStore, Picture

TOKENS = 1200
"""What a picture of 1,080 pixels costs at the endpoints that say so (765 to 1,600)."""

MOST = 20
"""Pictures of one rollout: the smallest limit of a request that is known."""

SMALLEST = 32
"""Pixels of a side. Endpoints refuse smaller pictures, and with them the question; one that complained of a picture is
shown none from then on, of no rollout."""

LEFT = 10
"""One in so many is kept for files that no row names."""

_DRAWABLE = DECKS | {"docx", "doc", "odt", "xlsx", "xlsb", "xls", "ods", "pdf", "html", "image"}


@dataclass(frozen=True, slots=True)
class Sight:
    """A picture for a judge that sees, and the address under which a verdict cites it: `output/deck.pptx#slide 3`."""

    address: str
    path: Path


@dataclass(frozen=True, slots=True)
class Sights:
    """What is shown, and by file why it is less than all its pages (`ours`: for a failure or cap of ours).

    `drawn` are all pictures there are, those that this rollout's judge is not shown too.
    """

    shown: tuple[Sight, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    ours: frozenset[str] = frozenset()
    drawn: Mapping[str, tuple[Picture, ...]] = field(default_factory=dict)

    def noted(self, extract: Extract) -> Extract:
        """The extract that also says what was not drawn."""
        if extract.name not in self.notes:
            return extract
        note = "; ".join(filter(None, (extract.note, self.notes[extract.name])))
        return replace(extract, note=note, ours=extract.ours or extract.name in self.ours)


def look(
    files: Sequence[tuple[str, Entry]],
    store: EvidenceStore,
    *,
    most: int,
    seconds: float,
    everything: bool,
    named: Collection[str] = (),
) -> Sights:
    """At most `most` pictures, shared fairly: files with few pages show them all, the others evenly spaced ones.

    Those that are `named` come first, but leave some to the others. Without `everything` only pages that text does not
    stand for: pictures, slides, PDF pages without text. All drawing together takes `seconds` of active time, and no
    more than `MOST` files are drawn.
    """
    drawn: dict[str, tuple[Picture, ...]] = {}
    sights: dict[str, list[Sight]] = {}
    notes: dict[str, str] = {}
    ours: set[str] = set()
    for name, entry in files:
        if not _worth_seeing(entry, everything):
            continue
        if len(drawn) >= MOST and entry.meta["kind"] != "image":
            notes[name] = f"not drawn: only {MOST} files of a submission are"
            ours.add(name)
            continue
        drawing = store.pictures(entry, seconds)
        seconds -= drawing.seconds
        drawn[name] = tuple(drawing.pictures)
        pages = None if everything else set(entry.meta["facts"].get("textless", ())) or None
        asked = [picture for picture in drawing.pictures if pages is None or picture.page in pages]
        pictures = [picture for picture in asked if min(picture.width, picture.height) >= SMALLEST]
        sights[name] = [Sight(f"{name}#{picture.label(entry.meta['kind'])}", picture.path) for picture in pictures]
        small = f"{len(asked) - len(pictures)} too small to be shown" if len(pictures) < len(asked) else ""
        if drawing.note or small:
            notes[name] = "; ".join(filter(None, (drawing.note, small)))
            ours |= {name} if drawing.ours else set()
    first = {name: found for name, found in sights.items() if name in named}
    rest = {name: found for name, found in sights.items() if name not in named}
    kept = _shared(first, most - min(len(rest), most // LEFT))
    kept |= _shared(rest, most - sum(map(len, kept.values())))
    for name, found in sights.items():
        if len(kept[name]) < len(found):
            few = f"{len(kept[name])} of {len(found)} pages are shown as pictures"
            notes[name] = "; ".join(filter(None, (notes.get(name), few)))
            ours.add(name)
    return Sights(tuple(sight for name in sights for sight in kept[name]), notes, frozenset(ours), drawn)


def _shared(sights: Mapping[str, Sequence[Sight]], most: int) -> dict[str, list[Sight]]:
    kept: dict[str, list[Sight]] = {}
    for place, name in enumerate(sorted(sights, key=lambda name: len(sights[name]))):
        kept[name] = _spread(sights[name], most // (len(sights) - place))
        most -= len(kept[name])
    return kept


def _worth_seeing(entry: Entry, everything: bool) -> bool:
    kind, status, facts = entry.meta["kind"], entry.meta["status"], entry.meta["facts"]
    if kind in DECKS:
        return True  # one that no reader can open may still be drawn
    return (
        kind in _DRAWABLE and status != "unreadable" and (everything or kind == "image" or bool(facts.get("textless")))
    )


def _spread(sights: Sequence[Sight], count: int) -> list[Sight]:
    if count >= len(sights):
        return list(sights)
    return [sights[round(place * (len(sights) - 1) / max(1, count - 1))] for place in range(count)]
