"""harbor-ppt: decks that a policy makes with python-pptx, judged by a rubric (README.md describes the arguments)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rubric_env.classic import Family, build_environment

SYSTEM_PROMPT = """You make slide decks for people who will stand in front of them.

Look at the input files first: their figures, names and dates may contradict each other, and some of what they say may \
not be meant for the audience. Then make the deck, with python-pptx in run_python where you have it, else with \
make_pptx and edit_pptx. Check it before you hand it over: every figure, the notes, titles, sizes of text, overlaps, \
and what lies off the slide. Decks belong in the folder output/, under the names that the task gives. When you are \
done, answer with a short closing message and no tool call."""

FAMILY = Family(
    env_id="harbor-ppt",
    instances=Path(__file__).parent / "instances",
    system_prompt=SYSTEM_PROMPT,
    tools=(
        *("list_files", "read_file", "search_files", "write_file", "edit_file"),
        *("make_pptx", "edit_pptx", "run_python"),
    ),
    # A deck is long evidence, with pictures of its slides: a judge needs more time for it, and fewer calls at once.
    settings={"per_timeout": 240, "concurrency": 8},
)


def load_environment(instances: str | Sequence[str] | None = None, **arguments: Any) -> Any:
    """The classic environment over the shipped instances, or over those of `instances` (a folder, or several)."""
    return build_environment(FAMILY, instances, **arguments)
