"""PowerPoint decks: slides in their order, shapes in that of a reader, and everything that a plain reader drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading

if TYPE_CHECKING:
    from rubric_env.evidence._pptx_deck import Deck
    from rubric_env.evidence._pptx_slide import Slide

_SUFFIXES = (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm")
_COUNTED = ("pictures", "charts", "tables", "diagrams", "videos", "audios", "embedded objects")


def units(reading: Reading) -> Iterator[Unit]:
    """Properties, sections, the slides, what layouts and masters show on them, and the deck's layout as a whole.

    A shape is `slide 3/shape 7`: the seventh on the slide in the order of a reader, top to bottom and left to right,
    silent shapes counted; its id and name stand in `pages/slide-003.json`. Titles are `slide 3/title`. A field, a shape
    or a slide that cannot be read costs itself alone.
    """
    from rubric_env.evidence._ooxml import Package
    from rubric_env.evidence._pptx_deck import SLIDES, Deck

    try:
        deck = Deck(Package(reading), reading)
        slides = deck.slides
    except Unreadable as error:
        _digest(reading, None, [], str(error))
        raise
    yield from deck.package.properties()
    for place, (name, numbers) in enumerate(deck.sections(), 1):
        yield Unit(f"section {place}", f"{name}: {_span(numbers)}", "section of the deck")
    pages: list[dict[str, Any]] = []
    used: dict[str, list[int]] = {}
    if len(slides) > SLIDES:
        reading.skipped(f"only the first {SLIDES:,} of {len(slides):,} slides are read")
    for number, entry in enumerate(slides[:SLIDES], 1):
        slide = _opened(deck, entry.part, number)
        if slide is None:
            pages.append({"number": number, "read": False})
            continue
        yield from _read(slide, pages)
        _use(slide, used)
    yield from _behind(deck, used)
    yield from _as_a_whole(deck, pages)
    _digest(reading, deck, pages, "")


def _opened(deck: Deck, part: str, number: int) -> Slide | None:
    from rubric_env.evidence._pptx_slide import Slide

    address = f"slide {number}"
    try:
        if not part:
            raise Unreadable("its part is missing")
        return Slide(deck, deck.slide(part, address), number)
    except Exception as error:
        # Broken slides raise anything; the others stay.
        deck.reading.lost(address, error)
        return None


def _read(slide: Slide, pages: list[dict[str, Any]]) -> Iterator[Unit]:
    reading = slide.deck.reading
    try:
        yield from slide.units()
    except Exception as error:
        reading.lost(f"the rest of {slide.address}", error)
    if not slide.page:
        pages.append({"number": slide.number, "read": False})
        return
    reading.write(f"pages/slide-{slide.number:03}.json", slide.page)
    measured = slide.page.pop("layout_facts")
    del slide.page["shapes"]  # the rest stays in memory until all slides are read
    sizes = measured["font_sizes"]
    pages.append(
        slide.page
        | {"smallest_font": min(map(float, sizes), default=None), "font_sizes": sizes, "fonts": measured["fonts"]}
        | {"notable": measured["notable"]}
    )


def _use(slide: Slide, used: dict[str, list[int]]) -> None:
    from rubric_env.evidence._pptx_slide import shown_behind

    for sheet in shown_behind(slide.sheet):
        used.setdefault(sheet.part, []).append(slide.number)


def _behind(deck: Deck, used: dict[str, list[int]]) -> Iterator[Unit]:
    """Text and alt text of layouts and masters, once, with the slides that show it."""
    from rubric_env.evidence._pptx_slide import behind

    for part, numbers in used.items():
        for unit in behind(deck, part):
            yield unit._replace(mark=", ".join(filter(None, (f"shown on {_span(numbers)}", unit.mark))))


def _as_a_whole(deck: Deck, pages: list[dict[str, Any]]) -> Iterator[Unit]:
    """Size, fonts and sizes of text over all slides."""
    read = [page for page in pages if page.get("read", True)]
    if not read:
        return
    fonts, sizes = Counter[str](), Counter[str]()
    for page in read:
        fonts.update(page["fonts"])
        sizes.update(page["font_sizes"])
    width, height = deck.size.width / 72, deck.size.height / 72
    words = [f"slides of {width:.2f} × {height:.2f} inches", f"{sum(page['words'] for page in read):,} words on slides"]
    total = sum(fonts.values())
    if total:
        words.append("fonts: " + ", ".join(f"{font} {count / total:.0%}" for font, count in fonts.most_common(6)))
        known = sorted(map(float, sizes))
        words.append("text of " + (f"{known[0]:g} to " if len(known) > 1 else "") + f"{known[-1]:g} pt")
    yield Unit("deck/layout", "; ".join(words), "layout facts")


def _digest(reading: Reading, deck: Deck | None, pages: list[dict[str, Any]], failure: str) -> None:
    """`digest.json`, and what the judge is told of the deck as a whole."""
    hidden = sum(page.get("hidden", False) for page in pages)
    counts = Counter[str]()
    for page in pages:
        counts.update({name: page["counts"][name] for name in _COUNTED if page.get("counts")})
    if deck is not None:
        from rubric_env.evidence._pptx_deck import counted

        words = [counted(len(pages), "slides") + (f", {hidden} of them hidden" if hidden else "")]
        reading.note("; ".join(words + [counted(count, name) for name, count in counts.items() if count]))
        for problem in deck.broken:
            reading.note(problem)
    wrong = [failure] if failure else [*(deck.broken if deck else []), *reading.errors]
    state = {"structure_ok": not wrong, "extract_errors": len(reading.errors) + bool(failure)}
    size = [deck.size.width, deck.size.height] if deck else None
    digest = {**state, "structure_note": "; ".join(wrong), "slide_count": len(pages), "hidden": hidden}
    reading.write("digest.json", digest | {"size_in_points": size, "slides": pages})
    reading.facts |= {"slides": len(pages), "hidden": hidden, **state}


def _span(numbers: list[int]) -> str:
    """`slides 1-3, 7`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    words = ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts)
    return f"slide{'s' if len(numbers) > 1 else ''} {words}" if words else "no slide"


KINDS = (Kind("pptx", _SUFFIXES, units=units, contains=("ppt/",)),)
