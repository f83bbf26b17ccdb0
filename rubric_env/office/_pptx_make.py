"""A deck from what its slides say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rubric_env.evidence._pptx_deck import counted
from rubric_env.evidence._reading import Reading
from rubric_env.evidence.kinds.pptx import units
from rubric_env.office._package import MADE, settle
from rubric_env.office._pptx_slides import Slides
from rubric_env.office._pptx_template import new_deck
from rubric_env.office._problems import Problems

if TYPE_CHECKING:
    from rubric_env.office._run import Task

SLIDES = 100
_FACTS = 10


def make(task: Task) -> str:
    """Raises Refused with everything that is wrong."""
    problems = Problems()
    deck = new_deck()
    wanted = task.arguments["slides"]
    if not 1 <= len(wanted) <= SLIDES:
        problems.add("slides", f"a deck made here has 1 to {SLIDES} slides, not {len(wanted)}")
    slides = Slides(deck, task.root, problems, ours=True)
    for number, one in enumerate(wanted[:SLIDES], 1):
        slides.add(one, f"slide {number}", first=number == 1)
    problems.raise_any()
    core = deck.core_properties
    core.author, core.comments, core.last_modified_by, core.revision = "", "", "", 1
    core.title, core.created, core.modified = wanted[0]["title"], MADE, MADE
    deck.save(task.target)
    settle(Path(task.target))
    return f"{counted(len(wanted), 'slides')}{layout_facts(Path(task.target))}"


def layout_facts(path: Path) -> str:
    """What a judge is told of the layout, where there is something to say."""
    reading = Reading(path, path.parent / "read")
    found = [unit for unit in units(reading) if unit.label.startswith("slide ") and unit.label.endswith("/layout")]
    lines = [f"{unit.label.removesuffix('/layout')}: {unit.text}" for unit in found[:_FACTS]]
    lines += [f"and {len(found) - _FACTS} more slides"] if len(found) > _FACTS else []
    return "\nlayout to look at:\n" + "\n".join(lines) if lines else ""
