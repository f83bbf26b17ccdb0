"""The contact sheet of a pack, for people: what was read of each file, what it looks like, what is missing and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from rubric_env.evidence._extract import Extract, Unit
from rubric_env.evidence._flags import Flag
from rubric_env.evidence._pack import STATUS, EvidencePack
from rubric_env.evidence._tokens import estimate_tokens

_TEMPLATE = Path(__file__).with_name("_page.html")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""What HTML cannot hold, and what turns the direction of the text after it."""

_HAN, _KANA = re.compile("[\u4e00-\u9fff]"), re.compile("[\u3040-\u30ff\uac00-\ud7af]")


def page(pack: EvidencePack, folders: Mapping[str, str]) -> str:
    """One HTML file without scripts and outside resources. `folders` hold the pictures of a source, by its name."""
    anchors = _anchors(pack)
    seen = frozenset(sight.address for sight in pack.sights)
    cards = [_Card(extract, pack, anchors, folders.get(extract.name, ""), seen).html() for extract in pack.extracts]
    return Template(_TEMPLATE.read_text("utf-8")).substitute(
        title=_text(pack.delivered),
        summary="\n".join(_summary(pack)),
        flags=_flags(pack.flags, anchors),
        files="\n".join(cards),
    )


def _summary(pack: EvidencePack) -> Iterator[str]:
    yield f"<p>{_text(pack.delivered)}</p>"
    share = min(100, round(100 * pack.tokens / max(1, pack.budget)))
    cost = f"About {pack.tokens:,} of {pack.budget:,} tokens"
    pictures = f", {_count(pack.pages, 'picture')} among them" if pack.pages else ""
    yield f'<div class="share"><i style="width:{share}%"></i></div>'
    yield f'<p class="faint">{cost}{pictures}. Digest {pack.digest[:12]}…</p>'
    if unread := [extract for extract in pack.extracts if extract.status not in ("read", "same")]:
        yield f'<p class="why">Not read whole: {_count(len(unread), "source")}, each with the reason below.</p>'
    yield from (f'<p class="why">{_text(note)}.</p>' for note in pack.notes)


def _anchors(pack: EvidencePack) -> dict[str, str]:
    """Where on the page a source stands, and each passage that is flagged."""
    anchors = {extract.name: f"file-{number}" for number, extract in enumerate(pack.extracts, 1)}
    return {flag.address: f"flag-{number}" for number, flag in enumerate(pack.flags, 1)} | anchors


def _flags(flags: Sequence[Flag], anchors: Mapping[str, str]) -> str:
    if not flags:
        return ""
    rows = [
        f'<li><a href="#{anchors[flag.address]}">{_named(flag.address)}</a>: <q>{_text(flag.excerpt)}</q></li>'
        for flag in flags
    ]
    return (
        '<section class="card flags"><h2>Text that talks to the judge</h2>'
        f"<p>It is shown to the judge as it stands; nothing was removed.</p><ul>{''.join(rows)}</ul></section>"
    )


class _Card:
    """One source."""

    def __init__(
        self, extract: Extract, pack: EvidencePack, anchors: Mapping[str, str], folder: str, seen: frozenset[str]
    ) -> None:
        self._extract = extract
        self._pack = pack
        self._folder = folder
        self._seen = seen
        self._anchor = anchors[extract.name]
        self._flagged = {
            unit.label: anchors[address]
            for unit in extract.units
            if (address := f"{extract.name}#{unit.label}") in anchors
        }

    def html(self) -> str:
        extract = self._extract
        level = self._pack.level(extract)
        return "\n".join(
            [
                f'<article class="card" id="{self._anchor}">',
                f'<div class="head"><h2>{_named(extract.name)}</h2><span class="level {level}">{level}</span></div>',
                f'<p class="faint">{_text(extract.kind)}, {extract.size:,} bytes, {STATUS[extract.status]}</p>',
                *self._notes(),
                *self._pictures(),
                *self._passages(),
                "</article>",
            ]
        )

    def _notes(self) -> Iterator[str]:
        extract = self._extract
        if extract.note:
            lost = extract.ours or extract.status in ("unreadable", "unsupported", "cut")
            look = "why bad" if extract.status in ("unreadable", "unsupported") else "why" if lost else ""
            ours = " (a limit of ours)" if extract.ours else ""
            yield f'<p class="{look}">{_text(extract.note)}{ours}</p>'
        if extract.gap:
            yield f'<p class="why">Not shown: {_text(extract.gap)}.</p>'

    def _pictures(self) -> Iterator[str]:
        origin = self._pack.origins.get(self._extract.name)
        if origin is None or origin.entry is None or not origin.pictures:
            return
        yield '<div class="pictures">'
        for picture in origin.pictures:
            source = quote(f"{self._folder}/{picture.path.relative_to(origin.entry.folder).as_posix()}")
            label = picture.label(self._extract.kind)
            unseen = "" if f"{self._extract.name}#{label}" in self._seen else ", not shown to the judge"
            yield (
                f'<figure><a href="{source}"><img src="{source}" width="{picture.width}" height="{picture.height}"'
                f' loading="lazy" alt="{label}"></a><figcaption>{label}{unseen}</figcaption></figure>'
            )
        yield "</div>"

    def _passages(self) -> Iterator[str]:
        extract = self._extract
        if not extract.units:
            return
        tokens = estimate_tokens(extract.text)
        share = 100 * tokens / max(1, self._pack.budget)
        yield f'<div class="share"><i style="width:{min(100, share):.1f}%"></i></div>'
        count = _count(len(extract.units), "passage")
        opened = " open" if self._flagged else ""
        yield f"<details{opened}><summary>{count}, about {tokens:,} tokens ({share:.1f} % of the budget)</summary>"
        yield '<div class="units">'
        yield from map(self._unit, extract.head)
        if extract.gap:
            yield f'<p class="unit why">{_text(extract.gap)}</p>'
        yield from map(self._unit, extract.tail)
        yield "</div></details>"

    def _unit(self, unit: Unit) -> str:
        # The first piece of a long passage takes the anchor.
        anchor = self._flagged.pop(unit.label, "")
        flagged = f' flagged" id="{anchor}' if anchor else ""
        mark = f" <em>({_text(unit.mark)})</em>" if unit.mark else ""
        return f'<p class="unit{flagged}"{_lang(unit.text)}><b>{_text(unit.label)}</b>{mark} {_text(unit.text)}</p>'


def _named(name: str) -> str:
    return f"<bdi{_lang(name)}>{_text(name)}</bdi>"


def _text(text: str) -> str:
    """Harmless between tags and in quotes, whatever it holds."""
    return escape(_CONTROL.sub(lambda match: f"[U+{ord(match.group()):04X}]", text))


def _lang(text: str) -> str:
    """Chinese drawn in its own shapes; the page around it is English."""
    return ' lang="zh"' if _HAN.search(text) and not _KANA.search(text) else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
