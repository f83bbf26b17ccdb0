"""How a slide is laid out, measured: what a person who looks at it would find small, faint, crowded or cut off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from rubric_env.evidence._pptx_deck import counted
from rubric_env.evidence._pptx_geometry import Box
from rubric_env.evidence._pptx_runs import UNSEEN, Run
from rubric_env.evidence._pptx_shapes import FOOTERS, TITLES, Shape

SMALL = 10.0
"""Points below which text on a slide is hard to read from a distance."""

OVERLAP = 0.1
"""Of the smaller of two shapes, above which they are said to overlap."""

COARSE = 96
"""Pixels per inch, as shown, below which a picture looks soft on a screen."""

STRETCHED = 0.05
"""Change of a picture's proportions that is seen."""

CROWD = 300
"""Shapes with content on one slide that are compared with each other; it costs the square."""

SAID = 8
"""Facts of one kind that stand in the text; the JSON has all."""

_LEAVES = 2.0
"""Points beyond an edge that are a matter of rounding."""


def facts(shapes: Sequence[Shape], slide: Box) -> dict[str, Any]:
    """Everything of one slide that can be measured, and `notable`: short sentences on what stands out.

    Sizes of text are estimates from mean widths of letters, since fonts are not at hand.
    """
    seen = [shape for shape in shapes if not shape.hidden]
    overlaps = list(_overlaps(seen))
    found: dict[str, Any] = {
        "font_sizes": sizes(seen),
        "fonts": fonts(seen),
        "low_contrast": list(_faint(seen)),
        "overlaps": overlaps,
        "text_outside_its_shape_estimated": list(_spills(seen)),
        "outside_the_slide": list(_outside(seen, slide)),
        "empty_placeholders": [
            shape.placeholder
            for shape in seen
            if shape.placeholder and shape.placeholder not in FOOTERS and shape.kind == "shape" and not shape.has_text
        ],
        "pictures": list(_pictures(seen)),
    }
    found["notable"] = list(_notable(found, seen))
    return found


def sizes(shapes: Sequence[Shape]) -> dict[str, int]:
    """Letters in each size, in points, the smallest first."""
    counted: Counter[float] = Counter()
    for run in _runs(shapes):
        counted[run.size] += len(run.text.strip())
    return {f"{size:g}": count for size, count in sorted(counted.items()) if count}


def fonts(shapes: Sequence[Shape]) -> dict[str, int]:
    """Letters in each typeface, the most used first."""
    counted: Counter[str] = Counter()
    for run in _runs(shapes):
        counted[run.font] += len(run.text.strip())
    return {font: count for font, count in counted.most_common() if font and count}


def _runs(shapes: Sequence[Shape]) -> Iterator[Run]:
    for shape in shapes:
        for body in shape.bodies:
            yield from body.runs


def _faint(shapes: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    for shape in shapes:
        runs = [run for body in shape.bodies for run in body.runs if run.text.strip() and run.contrast is not None]
        faint = [run for run in runs if run.contrast is not None and UNSEEN <= run.contrast < run.legible]
        if faint:
            worst = min(faint, key=lambda run: run.contrast or 0.0)
            yield {
                "shape": _short(shape),
                "contrast": worst.contrast,
                "needed": worst.legible,
                "text": worst.text.strip()[:60],
            }


def _overlaps(shapes: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    placed = [(shape, area) for shape in shapes if shape.content and (area := _area(shape)) is not None]
    for (one, first), (other, second) in combinations(placed[:CROWD], 2):
        smaller = min(first.area, second.area)
        share = first.common(second) / smaller if smaller else 0.0
        # A caption on a picture is design; text on text never is.
        on_purpose = not (one.has_text and other.has_text) and share > 0.95
        if share >= OVERLAP and not on_purpose:
            yield {"shapes": [_short(one), _short(other)], "share": round(share, 2)}


def _area(shape: Shape) -> Box | None:
    """Where there is something to see: of text without a fill, the letters."""
    if shape.has_text and shape.ink is not None and not shape.fill.painted:
        return shape.ink
    return shape.box


def _spills(shapes: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    for shape in shapes:
        if shape.body is None or shape.ink is None or shape.box is None or shape.turned:
            continue
        # A shape that fits itself to its text is drawn larger than it is written.
        if shape.body.fit != "noAutofit" or not shape.box.area:
            continue
        tall, wide = shape.ink.height / shape.box.height, shape.ink.width / shape.box.width
        if max(tall, wide) > 1.15:
            yield {"shape": _short(shape), "of_its_size": round(max(tall, wide), 2)}


def _outside(shapes: Sequence[Shape], slide: Box) -> Iterator[dict[str, Any]]:
    for shape in shapes:
        box = shape.box
        if box is None or not shape.content:
            continue
        beyond = {
            "left": slide.left - box.left,
            "top": slide.top - box.top,
            "right": box.right - slide.right,
            "bottom": box.bottom - slide.bottom,
        }
        if far := {side: round(distance, 1) for side, distance in beyond.items() if distance > _LEAVES}:
            yield {"shape": _short(shape), "points_beyond": far, "entirely": off(box, slide)}


def off(box: Box, slide: Box) -> bool:
    """Nothing of it is on the slide."""
    before = (box.right <= slide.left and box.left < slide.left) or (box.bottom <= slide.top and box.top < slide.top)
    return before or box.left >= slide.right or box.top >= slide.bottom


def _pictures(shapes: Sequence[Shape]) -> Iterator[dict[str, Any]]:
    for shape in shapes:
        known = shape.facts.get("picture", {})
        if "pixels" not in known or shape.box is None or shape.turned or not shape.box.area:
            continue
        left, top, right, bottom = known.get("crop", (0, 0, 0, 0))
        width, height = known["pixels"][0] * (1 - left - right), known["pixels"][1] * (1 - top - bottom)
        if width <= 0 or height <= 0:
            continue
        across, down = 72 * width / shape.box.width, 72 * height / shape.box.height
        yield {
            "shape": _short(shape),
            "pixels_per_inch": round(min(across, down)),
            "stretched": round(max(across, down) / min(across, down) - 1, 2),
        }


def _notable(found: dict[str, Any], shapes: Sequence[Shape]) -> Iterator[str]:
    if not any(shape.placeholder in TITLES and shape.has_text for shape in shapes):
        yield "no title placeholder with text"
    if small := [float(size) for size in found["font_sizes"] if float(size) < SMALL]:
        yield f"text of {min(small):g} pt"
    yield from _some(f"contrast {one['contrast']:g} in {one['shape']}" for one in found["low_contrast"])
    yield from _some(
        f"{one['shapes'][0]} and {one['shapes'][1]} overlap ({one['share']:.0%})" for one in found["overlaps"]
    )
    yield from _some(
        f"text {one['of_its_size']:.0%} of the size of {one['shape']} (estimated)"
        for one in found["text_outside_its_shape_estimated"]
    )
    yield from _some(
        f"{one['shape']} {max(one['points_beyond'].values()):g} pt beyond the slide"
        for one in found["outside_the_slide"]
    )
    if empty := found["empty_placeholders"]:
        yield f"{counted(len(empty), 'empty placeholders')} ({', '.join(sorted(set(empty)))})"
    coarse = [one for one in found["pictures"] if one["pixels_per_inch"] < COARSE]
    yield from _some(f"{one['shape']} at {one['pixels_per_inch']} pixels per inch" for one in coarse)
    stretched = [one for one in found["pictures"] if one["stretched"] > STRETCHED]
    yield from _some(f"{one['shape']} stretched by {one['stretched']:.0%}" for one in stretched)


def _some(sentences: Iterable[str]) -> Iterator[str]:
    listed = list(sentences)
    yield from listed[:SAID]
    if len(listed) > SAID:
        yield f"{len(listed) - SAID} more of these"


def _short(shape: Shape) -> str:
    """Its address within the slide."""
    return shape.address.rpartition("/")[2]
