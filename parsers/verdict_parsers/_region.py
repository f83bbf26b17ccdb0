"""Candidates, and which level of trust each one has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from verdict_parsers._chars import SKIP
from verdict_parsers._rows import Cut, Row

_LEAD = re.compile(rf"{SKIP}(?:(?:`++|~{{3,}}+)[ \t]*+[\w+.\-]*+{SKIP})?(?:json\w*+{SKIP})?", re.IGNORECASE)
_TAIL = re.compile(rf"{SKIP}(?:(?:`++|~{{3,}}+){SKIP})?")


@dataclass(frozen=True, slots=True)
class Region:
    """One candidate: a JSON container, an XML row, a table, or the bare beginning ("stub") of an answer.

    `sound`: finished, and nothing of it a guess. `lone`: the object or element is itself a row. `quoted`: the prose
    says so. `uncertain`: it stands behind broken text. Regions of one `group` stand in the same container. `level` as
    in `recovered_by`. `alone`: the whole reply, or its only fenced block. `doubt_from`: where text starts that could
    not be read, or a string without end.
    """

    kind: str
    start: int
    end: int
    rows: tuple[Row, ...] = ()
    cuts: tuple[Cut, ...] = ()
    sound: bool = True
    lone: bool = False
    quoted: bool = False
    uncertain: bool = False
    group: int = -1
    level: str = "rows"
    alone: bool = False
    doubt_from: int | None = None

    @property
    def ids(self) -> list[str]:
        """What its rows answer, and what breaks off in it, as often as it does."""
        return [name for row in self.rows for name in row.ids] + [name for cut in self.cuts for name in cut.ids]


@dataclass(slots=True)
class Fence:
    """A fenced block: its marks, whether it opens a line, its info word, and where its body starts and ends."""

    marks: str
    opens_line: bool
    info: str
    start: int
    end: int = -1


def label(regions: Sequence[Region], fences: Sequence[Fence], flat: str, visible: int) -> list[Region]:
    """Find the region that is `alone`, and the one that is "whole"; `visible` is where the reply starts."""
    if len(regions) == 1:
        only = regions[0]
        if _LEAD.fullmatch(flat, visible, only.start) and _TAIL.fullmatch(flat, only.end):
            return [replace(only, alone=True, level="whole" if only.level == "scan" else only.level)]
    blocks = [fence for fence in fences if fence.opens_line]
    if len(blocks) != 1 or blocks[0].end < 0:
        return list(regions)
    start, end = blocks[0].start, blocks[0].end
    inside = [n for n, region in enumerate(regions) if start <= region.start and region.end <= end]
    labelled = list(regions)
    if len(inside) == 1:
        only = regions[inside[0]]
        fills = not (flat[start : only.start] + flat[only.end : end]).strip()
        labelled[inside[0]] = replace(only, alone=fills)
    return labelled
