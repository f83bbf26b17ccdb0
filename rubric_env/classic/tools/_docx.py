"""Tools that make and edit Word documents."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from rubric_env.classic.tools._office import checked, edit, from_text, make
from rubric_env.classic.tools._workspace import Workspace
from rubric_env.office import DocxEdit


async def make_docx(workspace: Workspace, path: str, markdown: str) -> str:
    """Make a Word document from Markdown, with real heading, list and table styles. Headings, **bold**, *italic*,
    ~~struck~~, `code`, links, nested lists, tables, block quotes, code blocks and pictures of the workspace
    (`![what it shows](output/chart.png)`) are understood; a line `\\pagebreak` starts a new page. Lines between two
    `---` at the start may set title, subtitle, author, header, footer, page_numbers (yes or no) and landscape (yes or
    no), as `title: Annual report`.

    Args:
        path: the file, for example output/report.docx; one that is there is replaced
        markdown: the whole text
    """
    return await make(workspace, "make_docx", path, lambda: {"markdown": markdown})


async def edit_docx(
    workspace: Workspace,
    path: str,
    edits: Annotated[list[DocxEdit], BeforeValidator(from_text)],
    save_as: str | None = None,
) -> str:
    """Change a Word document and leave everything else in it as it is. All edits are done, or none. Addresses are those
    that read_file shows before the call, also when edits insert or delete.

    Examples: {"action": "replace", "at": "¶12", "text": "New words of this paragraph"},
    {"action": "insert_after", "at": "¶3", "text": "## A heading\\n\\nAnd its text"}, {"action": "delete", "at": "¶7"},
    {"action": "replace", "at": "table 1/row 3", "text": "Q2 | 4,200 | 9 %"},
    {"action": "replace", "find": "2024", "text": "2025"}

    Args:
        path: the file
        edits: the changes
        save_as: where the changed file goes, for example output/report.docx; the file at `path` then stays as it is
    """
    return await edit(workspace, "edit_docx", path, checked("edits", edits, DocxEdit), save_as)
