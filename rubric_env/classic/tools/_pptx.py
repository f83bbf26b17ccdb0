"""Tools that make and edit decks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from rubric_env.classic.tools._office import checked, edit, from_text, make
from rubric_env.classic.tools._workspace import Workspace
from rubric_env.office import PptxEdit, Slide


async def make_pptx(workspace: Workspace, path: str, slides: Annotated[list[Slide], BeforeValidator(from_text)]) -> str:
    """Make a PowerPoint deck, 16:9: each slide has a title and bullets, columns, a table, a chart or a picture (bullets
    go beside a table, chart or picture), and notes for the speaker. Letters get as large as there is room; what does
    not fit is refused.

    Example of slides: [{"title": "Annual review", "subtitle": "Board, March 2025"}, {"title": "Revenue grew by 12 %",
    "bullets": ["Two new shops", "  Old Quay: 1,200 a day"], "chart": {"kind": "column", "categories": ["2024", "2025"],
    "series": [{"name": "Revenue", "values": [3.1, 3.5]}]}, "notes": "Say why."}]

    Args:
        path: the file, for example output/deck.pptx; one that is there is replaced
        slides: the slides in their order
    """
    return await make(workspace, "make_pptx", path, checked("slides", slides, Slide))


async def edit_pptx(
    workspace: Workspace,
    path: str,
    edits: Annotated[list[PptxEdit], BeforeValidator(from_text)],
    save_as: str | None = None,
) -> str:
    """Change a deck and leave everything else in it as it is. All edits are done, or none. Addresses are those that
    read_file shows before the call, also when edits insert or delete.

    Examples: {"action": "replace", "at": "slide 2/title", "text": "New title"},
    {"action": "replace", "find": "2024", "text": "2025"}, {"action": "delete", "at": "slide 4"},
    {"action": "insert_after", "at": "slide 3", "slide": {"title": "Risks", "bullets": ["First", "Second"]}},
    {"action": "replace", "at": "slide 5/shape 2/row 3", "text": "Q2 | 4,200"}

    Args:
        path: the file
        edits: the changes
        save_as: where the changed file goes, for example output/deck.pptx; the file at `path` then stays as it is
    """
    return await edit(workspace, "edit_pptx", path, checked("edits", edits, PptxEdit), save_as)
