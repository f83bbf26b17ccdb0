"""Colours, fills and fonts of a slide, as its theme, master and layout make them."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rubric_env.evidence._ooxml import A, P, children
from rubric_env.evidence._pptx_geometry import number, share

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_SHORT = {"dk": "dark", "lt": "light", "med": "medium"}
_FILLS = ("noFill", "solidFill", "gradFill", "blipFill", "pattFill", "grpFill")


class Colour(NamedTuple):
    """Shares of red, green and blue, and how much it covers."""

    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def __str__(self) -> str:
        return "#" + "".join(f"{round(255 * part):02X}" for part in self[:3])

    @property
    def luminance(self) -> float:
        """As WCAG 2 defines it."""
        red, green, blue = map(_linear, self[:3])
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def over(self, ground: Colour) -> Colour:
        """What is seen when it lies on `ground`."""
        mixed = (self.alpha * top + (1 - self.alpha) * below for top, below in zip(self[:3], ground[:3], strict=True))
        return Colour._make((*mixed, ground.alpha))


WHITE = Colour(1, 1, 1)


class Fill(NamedTuple):
    """`painted` without a colour is a picture or pattern, or a colour that the file does not tell."""

    painted: bool
    colour: Colour | None = None


NOTHING = Fill(False)


def contrast(one: Colour, other: Colour) -> float:
    """The WCAG ratio, from 1 to 21."""
    light, dark = sorted((one.luminance, other.luminance), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class Look:
    """The theme behind one slide master, layout or slide: `mapped` says which of its colours `bg1` or `tx1` is."""

    def __init__(self, theme: Element | None, mapped: Mapping[str, str]) -> None:
        self._theme = theme
        self._mapped = mapped
        scheme = theme.find(f".//{A}clrScheme") if theme is not None else None
        self._scheme = {entry.tag.removeprefix(A): entry for entry in children(scheme)} if scheme is not None else {}

    def mapped_by(self, override: Element | None) -> Look:
        """That of a layout or slide with its own mapping of colours."""
        found = override.find(f"{A}overrideClrMapping") if override is not None else None
        return self if found is None else Look(self._theme, dict(found.attrib))

    def colour(self, holder: Element | None, placeholder: Colour | None = None) -> Colour | None:
        """Of the first colour in `holder`; `placeholder` stands for `phClr`. None when the file does not tell it."""
        for element in children(holder) if holder is not None else ():
            if element.tag.endswith("Clr"):
                base = self._base(element, placeholder)
                return _changed(base, element) if base else None
        return None

    def named(self, name: str) -> Colour | None:
        """A colour of the theme: `hlink`, `accent1`."""
        entry = self._scheme.get(self._mapped.get(name, name))
        inner = next(children(entry), None) if entry is not None else None
        return None if inner is None or inner.tag == f"{A}schemeClr" else self._base(inner, None)

    def fill(self, properties: Element | None, group: Fill = NOTHING) -> Fill | None:
        """What `p:spPr`, `p:bgPr` or `a:tcPr` say themselves; None when they say nothing."""
        for element in children(properties) if properties is not None else ():
            match element.tag.removeprefix(A):
                case "noFill":
                    return NOTHING
                case "solidFill":
                    return Fill(True, self.colour(element))
                case "gradFill":
                    return Fill(True, self._mean(element, None))
                case "grpFill":
                    return group
                case "blipFill" | "pattFill":
                    return Fill(True)
        return None

    def referred(self, reference: Element | None) -> Fill | None:
        """What a style's `fillRef` or a background's `bgRef` lead to."""
        if reference is None:
            return None
        index = int(number(reference.get("idx")))
        if index in (0, 1000):
            return NOTHING
        base = self.colour(reference)
        name, index = ("bgFillStyleLst", index - 1001) if index > 1000 else ("fillStyleLst", index - 1)
        styles = self._theme.find(f".//{A}{name}") if self._theme is not None else None
        style = list(children(styles))[index : index + 1] if styles is not None else []
        if not style:
            return Fill(True, base)
        if style[0].tag == f"{A}solidFill":
            return Fill(True, self.colour(style[0], base))
        return Fill(True, self._mean(style[0], base) if style[0].tag == f"{A}gradFill" else None)

    def font(self, name: str | None) -> str:
        """A typeface; `+mj-lt` is the theme's for headings, `+mn-ea` that for East Asian body text."""
        if not name or not name.startswith("+") or self._theme is None:
            return name or ""
        kind, script = ("majorFont" if name[1:3] == "mj" else "minorFont"), name[4:]
        found = self._theme.find(f".//{A}{kind}/{A}{'latin' if script == 'lt' else script}")
        return (found.get("typeface") or "") if found is not None else ""

    def _base(self, element: Element, placeholder: Colour | None) -> Colour | None:
        value = element.get("val") or ""
        match element.tag.removeprefix(A):
            case "srgbClr":
                return _hex(value)
            case "sysClr":
                default = {"window": "FFFFFF", "windowText": "000000"}.get(value, "")
                return _hex(element.get("lastClr") or default)
            case "schemeClr" if value == "phClr":
                return placeholder
            case "schemeClr":
                return self.named(value)
            case "prstClr":
                return _named(value)
            case "scrgbClr":
                return Colour._make((*(_gamma(share(element.get(part))) for part in "rgb"), 1.0))
            case "hslClr":
                hue = number(element.get("hue")) / 21_600_000 % 1
                light, saturation = (_unit(share(element.get(name))) for name in ("lum", "sat"))
                return Colour._make((*colorsys.hls_to_rgb(hue, light, saturation), 1.0))
        return None

    def _mean(self, gradient: Element, base: Colour | None) -> Colour | None:
        stops = [self.colour(stop, base) for stop in gradient.iter(f"{A}gs")]
        known = [stop for stop in stops if stop is not None]
        if not known or len(known) < len(stops):
            return None
        return Colour._make(sum(parts) / len(known) for parts in zip(*known, strict=True))


def text_fill(properties: Element | None) -> Element | None:
    """The fill of letters that run properties name."""
    if properties is not None:
        for element in children(properties):
            if element.tag.removeprefix(A) in _FILLS:
                return element
    return None


def background(sheets: Iterable[tuple[Element, Look]]) -> Fill:
    """Of a slide, else its layout, else its master, else white."""
    for root, look in sheets:
        holder = root.find(f"{P}cSld/{P}bg")
        if holder is not None:
            own = look.fill(holder.find(f"{P}bgPr")) or look.referred(holder.find(f"{P}bgRef"))
            return own if own and own.painted else Fill(True, WHITE)
    return Fill(True, WHITE)


def _changed(colour: Colour, element: Element) -> Colour:
    for change in children(element):
        value = share(change.get("val"))
        name = change.tag.removeprefix(A)
        red, green, blue, alpha = colour
        match name:
            case "alpha":
                colour = colour._replace(alpha=_unit(value))
            case "shade" | "tint":
                rest = 1 - value if name == "tint" else 0.0
                colour = Colour._make((*(_gamma(_linear(part) * value + rest) for part in colour[:3]), alpha))
            case "inv":
                colour = Colour(1 - red, 1 - green, 1 - blue, alpha)
            case "gray":
                grey = 0.3 * red + 0.59 * green + 0.11 * blue
                colour = Colour(grey, grey, grey, alpha)
            case "lumMod" | "lumOff" | "lum" | "satMod" | "satOff" | "sat":
                hue, light, saturation = colorsys.rgb_to_hls(red, green, blue)
                old = light if name.startswith("lum") else saturation
                new = _unit(old * value if name.endswith("Mod") else old + value if name.endswith("Off") else value)
                light, saturation = (new, saturation) if name.startswith("lum") else (light, new)
                colour = Colour._make((*colorsys.hls_to_rgb(hue, light, saturation), alpha))
    return colour


def _hex(text: str) -> Colour | None:
    try:
        value = int(text, 16)
    except ValueError:
        return None
    return Colour((value >> 16 & 255) / 255, (value >> 8 & 255) / 255, (value & 255) / 255)


def _named(name: str) -> Colour | None:
    from PIL import ImageColor

    for short, long in _SHORT.items():
        if name.startswith(short) and name[len(short) : len(short) + 1].isupper():
            name = long + name[len(short) :]
    try:
        red, green, blue = ImageColor.getrgb(name)[:3]
    except ValueError:
        return None
    return Colour(red / 255, green / 255, blue / 255)


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _gamma(part: float) -> float:
    part = _unit(part)
    return part * 12.92 if part <= 0.0031308 else float(1.055 * part ** (1 / 2.4) - 0.055)
