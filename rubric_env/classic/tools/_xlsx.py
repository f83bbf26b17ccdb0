"""Tools that make and edit workbooks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from rubric_env.classic.tools._office import checked, edit, from_text, make
from rubric_env.classic.tools._workspace import Workspace
from rubric_env.office import Sheet, XlsxEdit


async def make_xlsx(workspace: Workspace, path: str, sheets: Annotated[list[Sheet], BeforeValidator(from_text)]) -> str:
    """Make an Excel workbook: sheets of typed values and formulas, a bold heading that stays in sight, columns as wide
    as they need, number formats, charts. Excel calculates the formulas when it opens the file.

    Example of a sheet: {"name": "Sales", "rows": [["Shop", "Revenue"], ["Quay", 1200], ["Pier", 900], ["Total",
    "=SUM(B2:B3)"]], "formats": [{"range": "B2:B4", "number_format": "#,##0"}], "charts": [{"kind": "column", "at":
    "D2", "labels": "A2:A3", "values": ["B1:B3"], "title": "Revenue"}]}

    Args:
        path: the file, for example output/model.xlsx; one that is there is replaced
        sheets: the sheets in their order
    """
    return await make(workspace, "make_xlsx", path, checked("sheets", sheets, Sheet))


async def edit_xlsx(
    workspace: Workspace,
    path: str,
    edits: Annotated[list[XlsxEdit], BeforeValidator(from_text)],
    save_as: str | None = None,
) -> str:
    """Change a workbook and leave everything else in it as it is. All edits are done, or none. Addresses are those that
    read_file shows before the call; formulas, charts and names follow rows and columns that are inserted or deleted.
    Formulas in new rows name cells as they lie afterwards.

    Examples: {"action": "replace", "at": "Sales!B7", "values": [[1250]]},
    {"action": "insert_after", "at": "Sales!7", "values": [["July", 900, "=B8*0.2"]]},
    {"action": "delete", "at": "Sales!9:10"},
    {"action": "replace", "at": "Sales", "format": {"range": "B2:B9", "number_format": "0.0%"}},
    {"action": "replace", "find": "2024", "text": "2025"}

    Args:
        path: the file
        edits: the changes
        save_as: where the changed file goes, for example output/model.xlsx; the file at `path` then stays as it is
    """
    return await edit(workspace, "edit_xlsx", path, checked("edits", edits, XlsxEdit), save_as)
