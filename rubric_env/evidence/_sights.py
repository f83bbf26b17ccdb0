"""Which pages a judge that sees is shown as pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rubric_env.evidence._extract import Extract
from rubric_env.evidence._store import DECKS, Entry, EvidenceStore, Picture

TOKENS = 1200
"""What a picture of 1,080 pixels costs at the endpoints that say so (765 to 1,600)."""

MOST = 20
"""Pictures of one rollout: the smallest limit of a request that is known."""


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
    files: Sequence[tuple[str, Entry]], store: EvidenceStore, *, most: int, seconds: float, everything: bool
) -> Sights:
    """At most `most` pictures, shared fairly: files with few pages show them all, the others evenly spaced ones.

    Without `everything` only pages that text does not stand for: pictures, slides, PDF pages without text.
    """
    drawn: dict[str, list[Sight]] = {}
    everything_drawn: dict[str, tuple[Picture, ...]] = {}
    notes: dict[str, str] = {}
    ours: set[str] = set()
    for name, entry in files:
        if not _worth_seeing(entry, everything):
            continue
        drawing = store.pictures(entry, seconds)
        everything_drawn[name] = tuple(drawing.pictures)
        pages = None if everything else set(entry.meta["facts"].get("textless", ())) or None
        pictures = [picture for picture in drawing.pictures if pages is None or picture.page in pages]
        drawn[name] = [Sight(f"{name}#{picture.label(entry.meta['kind'])}", picture.path) for picture in pictures]
        if drawing.note:
            notes[name] = drawing.note
            ours |= {name} if drawing.ours else set()
    kept: dict[str, list[Sight]] = {}
    left = most
    for place, name in enumerate(sorted(drawn, key=lambda name: len(drawn[name]))):
        kept[name] = _spread(drawn[name], left // (len(drawn) - place))
        left -= len(kept[name])
        if len(kept[name]) < len(drawn[name]):
            few = f"{len(kept[name])} of {len(drawn[name])} pages are shown as pictures"
            notes[name] = "; ".join(filter(None, (notes.get(name), few)))
            ours.add(name)
    shown = tuple(sight for name in drawn for sight in kept[name])
    return Sights(shown, notes, frozenset(ours), everything_drawn)


def _worth_seeing(entry: Entry, everything: bool) -> bool:
    kind, status, facts = entry.meta["kind"], entry.meta["status"], entry.meta["facts"]
    if kind in DECKS:
        return True  # one that no reader can open may still be drawn
    return status != "unreadable" and (everything or kind == "image" or bool(facts.get("textless")))


def _spread(sights: Sequence[Sight], count: int) -> list[Sight]:
    if count >= len(sights):
        return list(sights)
    return [sights[round(place * (len(sights) - 1) / max(1, count - 1))] for place in range(count)]
