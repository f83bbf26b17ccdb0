"""Where shapes of a slide are, in points, and the order in which a person reads them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rubric_env.evidence._ooxml import A

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

POINT = 12700
"""English metric units in a point."""

FAR = 1e7
"""Points; what is farther out or larger is a broken number."""

NESTING_SHAPES = 500
"""Shapes of one slide among which cards and what lies on them are told apart; it costs the square."""

CUTS = 40
"""Bands within columns within bands …"""

LARGEST = 1e12
"""A number above it means nothing in a slide, and makes infinities."""

T = TypeVar("T")


class Box(NamedTuple):
    """A rectangle on the slide, in points from its top left corner."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        return self.width * self.height

    def common(self, other: Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width > 0 and height > 0 else 0.0

    def holds(self, other: Box) -> bool:
        """Nearly all of the other lies within."""
        if not other.area:
            return self.left <= other.left and other.right <= self.right and self.top <= other.top <= self.bottom
        return self.common(other) >= 0.95 * other.area


class Matrix(NamedTuple):
    """x' = a·x + c·y + e, y' = b·x + d·y + f."""

    a: float = 1
    b: float = 0
    c: float = 0
    d: float = 1
    e: float = 0
    f: float = 0

    def point(self, x: float, y: float) -> tuple[float, float]:
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def after(self, first: Matrix) -> Matrix:
        """Both in one."""
        a, b, c, d, e, f = first
        return Matrix(
            self.a * a + self.c * b,
            self.b * a + self.d * b,
            self.a * c + self.c * d,
            self.b * c + self.d * d,
            *self.point(e, f),
        )


class Frame(NamedTuple):
    """An `a:xfrm`: a rectangle in the coordinates of its parent, turned by `rotation` degrees around its middle."""

    left: float
    top: float
    width: float
    height: float
    rotation: float = 0
    flips: tuple[bool, bool] = (False, False)

    def matrix(self) -> Matrix:
        """From the rectangle as if it were not turned to where it is."""
        x, y = self.left + self.width / 2, self.top + self.height / 2
        cosine, sine = math.cos(math.radians(self.rotation)), math.sin(math.radians(self.rotation))
        across, down = (-1 if flip else 1 for flip in self.flips)
        turned = Matrix(cosine * across, sine * across, -sine * down, cosine * down, x, y)
        return turned.after(Matrix(e=-x, f=-y))

    def box(self, parent: Matrix) -> Box:
        """The rectangle around it on the slide."""
        matrix = parent.after(self.matrix())
        right, bottom = self.left + self.width, self.top + self.height
        corners = [matrix.point(x, y) for x in (self.left, right) for y in (self.top, bottom)]
        across, down = zip(*corners, strict=True)
        return Box(*(round(value, 2) for value in (min(across), min(down), max(across), max(down))))


def number(text: str | None, default: float = 0.0) -> float:
    """A number as broken writers write it, or `default`."""
    try:
        value = float(text or "")
    except ValueError:
        return default
    return value if abs(value) < LARGEST else default


def share(text: str | None, default: float = 0.0) -> float:
    """A percentage: `65000`, in Strict files `65%`, is 0.65."""
    text = text or ""
    return number(text[:-1], 100 * default) / 100 if text.endswith("%") else number(text, 1e5 * default) / 1e5


def points(text: str | None) -> float | None:
    """A coordinate; None where there is none that makes sense. Zero is one."""
    value = number(text, LARGEST) / POINT
    return value if abs(value) < FAR else None


def frame(xfrm: Element | None) -> Frame | None:
    """None without a place or a size."""
    if xfrm is None:
        return None
    place, size = xfrm.find(f"{A}off"), xfrm.find(f"{A}ext")
    if place is None or size is None:
        return None
    left, top, width, height = map(points, (place.get("x"), place.get("y"), size.get("cx"), size.get("cy")))
    if left is None or top is None or width is None or height is None:
        return None
    flips = xfrm.get("flipH") in ("1", "true"), xfrm.get("flipV") in ("1", "true")
    return Frame(left, top, max(width, 0.0), max(height, 0.0), number(xfrm.get("rot")) / 60000 % 360, flips)


def group_matrix(xfrm: Element | None) -> Matrix:
    """From the coordinates of a group's members to those of what the group stands in."""
    outer = frame(xfrm)
    if xfrm is None or outer is None:
        return Matrix()
    place, size = xfrm.find(f"{A}chOff"), xfrm.find(f"{A}chExt")
    left = points(place.get("x")) if place is not None else None
    top = points(place.get("y")) if place is not None else None
    width = points(size.get("cx")) if size is not None else None
    height = points(size.get("cy")) if size is not None else None
    across = outer.width / width if width else 1.0
    down = outer.height / height if height else 1.0
    x = outer.left - across * (outer.left if left is None else left)
    y = outer.top - down * (outer.top if top is None else top)
    return outer.matrix().after(Matrix(across, 0, 0, down, x, y))


def in_reading_order(items: Sequence[T], box: Callable[[T], Box | None], holder: Callable[[T], bool]) -> list[T]:
    """Bands from top to bottom, in each from left to right; what lies on a `holder` (a card, a panel) comes after it.

    `items` are given from back to front. What has no place comes last.
    """
    placed = [(found, number) for number, item in enumerate(items) if (found := box(item)) is not None]
    inside: dict[int, list[_Placed]] = {}
    if len(placed) <= NESTING_SHAPES:
        holders = [entry for entry in placed if holder(items[entry[1]])]
        for child in placed:
            around = [entry for entry in holders if entry[1] < child[1] and _carries(entry[0], child[0])]
            inside.setdefault(min(around, key=lambda entry: entry[0].area)[1] if around else -1, []).append(child)
    else:
        inside[-1] = placed

    def ordered(parent: int) -> Iterable[int]:
        for _, number in _cut(inside.get(parent, []), 0):
            yield number
            yield from ordered(number)

    # Rectangles within rectangles: each level is smaller, so that there are never many.
    seen = list(ordered(-1))
    return [items[number] for number in seen] + [item for item in items if box(item) is None]


_Placed = tuple[Box, int]


def _carries(outer: Box, inner: Box) -> bool:
    return outer.area > 1.2 * inner.area and outer.holds(inner)


def _cut(placed: Sequence[_Placed], depth: int) -> Iterable[_Placed]:
    if len(placed) > 1 and depth < CUTS:
        for start, end in ((1, 3), (0, 2)):
            parts = _split(placed, start, end)
            if len(parts) > 1:
                return chain.from_iterable(_cut(part, depth + 1) for part in parts)
    return sorted(placed, key=lambda entry: (entry[0].top, entry[0].left, entry[1]))


def _split(placed: Sequence[_Placed], start: int, end: int) -> list[list[_Placed]]:
    """Apart where a line fits between; boxes that overlap by a tenth of their size count as apart."""
    parts: list[list[_Placed]] = []
    reached = -math.inf
    for entry in sorted(placed, key=lambda entry: (entry[0][start], entry[1])):
        spare = (entry[0][end] - entry[0][start]) / 10
        if entry[0][start] + spare >= reached:
            parts.append([])
        parts[-1].append(entry)
        reached = max(reached, entry[0][end] - spare)
    return parts
