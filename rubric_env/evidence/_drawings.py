"""Charts and SmartArt of office files in words: what the drawing shows, as a table of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric_env.evidence._ooxml import DGM, A, C, descendants

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

POINTS = 200
"""Values of one series that are shown."""

_LABELS = "{http://schemas.microsoft.com/office/drawing/2012/chart}"
_EXTENDED = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"


def chart(root: Element) -> list[str]:
    """One line for the kind and title, one for the categories, one for each series with its values."""
    plots = sorted({plot.tag.removeprefix(C) for plot in root.iter() if _is_plot(plot)})
    kinds = ", ".join(name.removesuffix("Chart") for name in plots) or "unknown kind"
    title = _title(root.find(f".//{C}chart/{C}title")) or _title(root.find(f".//{_EXTENDED}chart/{_EXTENDED}title"))
    lines = [f"chart ({kinds})" + (f": {title}" if title else "")]
    for axis in root.iter(f"{C}catAx", f"{C}valAx", f"{C}dateAx"):
        if name := _title(axis.find(f"{C}title")):
            lines.append(f"axis: {name}")
    before: list[str] = []
    for number, series in enumerate(root.iter(f"{C}ser"), 1):
        categories = _points(series, "cat", "xVal")
        if categories and categories != before:
            lines.append(f"categories: {_listed(categories)}")
            before = categories
        name = "".join(_points(series, "tx")) or f"series {number}"
        values = _points(series, "val", "yVal")
        # A file whose chart was never drawn holds no values, but says where they are.
        where = ", ".join(reference.text or "" for reference in series.iter(f"{C}f"))
        lines.append(f"{name}: {_listed(values)}" if values else f"{name}: no values kept, of {where or 'nothing'}")
        if sizes := _points(series, "bubbleSize"):
            lines.append(f"{name}, sizes: {_listed(sizes)}")
        labels = [words for rich in series.iter(f"{C}rich") if (words := _text(rich))]
        labels += [label for cells in series.iter(f"{_LABELS}dlblRangeCache") for label in _cached(cells)]
        if labels:
            lines.append(f"{name}, labels: {_listed(labels)}")
    names = [name.text for name in root.iter(f"{_EXTENDED}v") if name.text]
    lines += [f"series: {_listed(names)}"] if names else []
    lines += [f"values: {words}" for element in root.iter(f"{_EXTENDED}lvl") if (words := _levels(element))]
    return lines


def smart_art(root: Element) -> list[str]:
    """The texts of a diagram's data part, in their order; presentation points repeat them and are left out."""
    points = [point for point in root.iter(f"{DGM}pt") if point.get("type", "node") in ("node", "asst", "doc")]
    return [text for point in points if (text := _text(point.find(f"{DGM}t")))]


def _is_plot(element: Element) -> bool:
    return isinstance(element.tag, str) and element.tag.startswith(C) and element.tag.endswith(("Chart", "Chart3D"))


def _text(element: Element | None) -> str:
    if element is None:
        return ""
    paragraphs = ("".join(run.text or "" for run in descendants(p, f"{A}t")) for p in descendants(element, f"{A}p"))
    return "\n".join(filter(None, (paragraph.strip() for paragraph in paragraphs)))


def _title(element: Element | None) -> str:
    """Written, or taken from a cell."""
    return _text(element) or ("" if element is None else " ".join(_cached(element)))


def _points(series: Element, *names: str) -> list[str]:
    """Cached values of a reference or a literal, in order; gaps stay empty."""
    holder = next((found for name in names if (found := series.find(f"{C}{name}")) is not None), None)
    if holder is None:
        return []
    if (literal := holder.find(f"{C}v")) is not None:
        return [literal.text or ""]
    if levels := list(holder.iter(f"{C}lvl")):
        rows = [_cached(level) for level in levels]
        length = max(map(len, rows), default=0)
        return [
            " / ".join(filter(None, (row[n] if n < len(row) else "" for row in reversed(rows)))) for n in range(length)
        ]
    return _cached(holder)


def _cached(holder: Element) -> list[str]:
    found = {}
    for point in holder.iter(f"{C}pt"):
        index = point.get("idx", "")
        if index.isdecimal() and int(index) < 100_000:
            found[int(index)] = point.findtext(f"{C}v") or ""
    return [found.get(n, "") for n in range(max(found, default=-1) + 1)]


def _levels(level: Element) -> str:
    return _listed([point.text or "" for point in level.iter(f"{_EXTENDED}pt")])


def _listed(values: list[str]) -> str:
    more = f" … ({len(values) - POINTS} more)" if len(values) > POINTS else ""
    return "; ".join(values[:POINTS]) + more
