"""Edited files that go elsewhere, and files that another program wrote."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from openpyxl import Workbook

from rubric_env.classic.tools import Workspace
from rubric_env.classic.tools._xlsx import edit_xlsx
from tests.classic.tools.office import read, refusal

EDITS = [{"action": "replace", "at": "Sheet!A1", "values": [[2]]}]

CORE = b"""\
<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<dcterms:created xsi:type="dcterms:W3CDTF">2026-05-04T09:00:00Z</dcterms:created>
</cp:coreProperties>"""


def book(root: Path) -> bytes:
    """As other programs write it: the namespace of a date's type is declared at the root of the part."""
    made = Workbook()
    made.active["A1"] = 1
    plain, result = io.BytesIO(), io.BytesIO()
    made.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(result, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "docProps/core.xml":
                data = CORE
            new.writestr(name, data)
    (root / "model.xlsx").write_bytes(result.getvalue())
    return result.getvalue()


async def test_the_changed_file_goes_where_it_is_wanted_and_the_other_stays(workspace: Workspace) -> None:
    before = book(workspace.root)
    assert "output/model.xlsx" in await edit_xlsx(workspace, "model.xlsx", EDITS, "output/model.xlsx")
    assert (workspace.root / "model.xlsx").read_bytes() == before
    assert read(workspace.root / "output/model.xlsx")["Sheet!A1"] == "A: 2"
    assert "ends in .xlsx" in await refusal(edit_xlsx(workspace, "model.xlsx", EDITS, "output/model.csv"))
    assert "outside" in await refusal(edit_xlsx(workspace, "model.xlsx", EDITS, "../model.xlsx"))


async def test_a_files_own_times_stay_in_xml_that_parses(workspace: Workspace) -> None:
    book(workspace.root)
    await edit_xlsx(workspace, "model.xlsx", EDITS)
    read(workspace.root / "model.xlsx")
    with zipfile.ZipFile(workspace.root / "model.xlsx") as changed:
        assert b"2026-05-04T09:00:00Z" in changed.read("docProps/core.xml")
