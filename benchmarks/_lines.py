"""A line chart as SVG, without a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 360, 70, 40, 40
COLORS = ("#c0392b", "#e69f00", "#0072b2", "#009e73")


def line_chart(title: str, lines: Mapping[str, Sequence[tuple[float, float]]], *, level: float, level_name: str) -> str:
    """Points (x, y) by the name of their line, x in seconds shown as minutes, and one horizontal level."""
    right = max(x for points in lines.values() for x, _ in points)
    top = 1.05 * max(level, *(y for points in lines.values() for _, y in points))

    def at(x: float, y: float) -> str:
        across = LEFT + x / right * (WIDTH - LEFT - 10)
        return f"{across:.1f},{HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM):.1f}"

    def text(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'

    parts = [text(LEFT, 16, title, 'font-weight="bold"')]
    for tenth in range(0, 11, 2):
        x, y = at(right * tenth / 10, top * tenth / 10).split(",")
        parts.append(text(float(x), HEIGHT - 20, f"{right * tenth / 600:.0f}", 'text-anchor="middle"'))
        parts.append(text(LEFT - 6, float(y) + 4, f"{top * tenth / 10:,.0f}", 'text-anchor="end"'))
    parts.append(text(WIDTH / 2, HEIGHT - 4, "minutes", 'text-anchor="middle"'))
    parts.append(f'<polyline points="{at(0, level)} {at(right, level)}" stroke="#555" stroke-dasharray="6 4"/>')
    parts.append(text(WIDTH - 10, float(at(0, level).split(",")[1]) - 5, level_name, 'text-anchor="end"'))
    for number, ((name, points), color) in enumerate(zip(lines.items(), COLORS, strict=False)):
        parts.append(f'<polyline points="{" ".join(at(*point) for point in points)}" stroke="{color}"/>')
        parts.append(text(LEFT + number * 200, 33, name, f'style="fill:{color}"'))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/><g fill="none" stroke-width="1.5">'
        f"{''.join(part for part in parts if part.startswith('<poly'))}</g>"
        f"{''.join(part for part in parts if part.startswith('<text'))}</svg>\n"
    )
