"""make_xlsx and edit_xlsx: typed values, formulas that are right, and edits after which everything refers as before."""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Font
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table

from rubric_env.classic.tools import Workspace
from rubric_env.classic.tools._xlsx import edit_xlsx, make_xlsx
from rubric_env.evidence import _soffice
from tests.classic.tools.office import pages, read, refusal
from tests.evidence.office import changed, saved

SERIES = {"column": ["B1:B3", "C1:C3"], "bar": ["B1:B3"], "line": ["D1:D3"], "area": ["B1:B3"], "pie": ["B1:B3"]}
SALES: dict[str, Any] = {
    "name": "Sales 2025",
    "rows": [
        ["Month", "North", "South", "Sum", "Day"],
        ["Jan", 100, 80.5, "=B2+C2", "2025-01-31"],
        ["Feb", 110, 70, "=B3+C3", "2025-02-28 18:30"],
        ["Total", "=SUM(B2:B3)", "=SUM(C2:C3)", "=SUM(D2:D3)"],
    ],
    "formats": [{"range": "B2:D4", "number_format": "#,##0.00"}, {"range": "A4:E4", "bold": True, "fill": "F2F2F2"}],
    "charts": [
        {"kind": kind, "at": f"G{1 + 18 * n}", "labels": "A2:A3", "values": values, "title": kind}
        for n, (kind, values) in enumerate(SERIES.items())
    ],
}
NOTES: dict[str, Any] = {
    "name": "Notes",
    "header_rows": 0,
    "rows": [
        ["'=not a formula"],
        ["='Sales 2025'!D4"],
        [True],
        [None, "说"],
        [12345678901234567890],
        ["a\nb"],
        ["007"],
    ],
}


async def made(workspace: Workspace, *sheets: dict[str, Any]) -> Path:
    await make_xlsx(workspace, "output/a.xlsx", [*sheets] or [SALES, NOTES])
    return workspace.root / "output/a.xlsx"


async def edited(workspace: Workspace, *edits: dict[str, Any]) -> Any:
    await edit_xlsx(workspace, "output/a.xlsx", [*edits])  # type: ignore[list-item]
    return openpyxl.load_workbook(workspace.root / "output/a.xlsx")


# --- make -------------------------------------------------------------------------------------------------------------


async def test_values_have_types_and_formulas_are_formulas(workspace: Workspace) -> None:
    book = openpyxl.load_workbook(await made(workspace))
    sales, notes = book["Sales 2025"], book["Notes"]
    assert [cell.value for cell in sales[2]] == ["Jan", 100, 80.5, "=B2+C2", datetime.datetime(2025, 1, 31)]
    assert sales["E2"].number_format == "yyyy-mm-dd"
    assert sales["E3"].value == datetime.datetime(2025, 2, 28, 18, 30)
    assert (notes["A1"].value, notes["A1"].data_type) == ("=not a formula", "s")
    assert (notes["A2"].data_type, notes["A3"].value) == ("f", True)
    assert notes["A5"].value == "12345678901234567890"
    assert (notes["A6"].value, notes["A6"].alignment.wrap_text) == ("a\nb", True)
    assert notes["A7"].value == "007"


async def test_a_sheet_looks_made_by_a_professional(workspace: Workspace) -> None:
    sheet = openpyxl.load_workbook(await made(workspace))["Sales 2025"]
    assert sheet["A1"].font.bold
    assert sheet["B1"].alignment.horizontal == "right"
    assert sheet.freeze_panes == "A2"
    assert sheet.print_title_rows == "$1:$1"
    assert sheet["B3"].number_format == "#,##0.00"
    assert sheet["A4"].font.bold and sheet["A4"].fill.start_color.rgb.endswith("F2F2F2")
    assert 8 <= sheet.column_dimensions["A"].width <= 20
    assert [type(chart).__name__ for chart in sheet._charts] == [
        *("BarChart", "BarChart", "LineChart", "AreaChart", "PieChart")
    ]


async def test_a_judge_reads_it_and_libreoffice_draws_and_calculates_it(workspace: Workspace) -> None:
    path = await made(workspace)
    assert pages(path) >= 2
    units = read(path)
    assert units["Sales 2025!A2:E2"] == "A: Jan | B: 100.00 | C: 80.50 | D: 180.50 (=B2+C2) | E: 2025-01-31"
    assert units["Notes!A1"] == "A: =not a formula"
    assert units["Sales 2025!drawing 1"].startswith("chart (bar): column")


async def test_equal_arguments_make_equal_bytes(workspace: Workspace) -> None:
    first = (await made(workspace)).read_bytes()
    await asyncio.sleep(2.1)
    assert (await made(workspace)).read_bytes() == first


async def test_newer_functions_get_the_prefix_without_which_excel_knows_no_name(workspace: Workspace) -> None:
    path = await made(workspace, {"name": "A", "rows": [["=IFS(1>0,XLOOKUP(1,B1:B2,C1:C2))", "=SUM(STDEV.S(B3:B4))"]]})
    sheet = openpyxl.load_workbook(path)["A"]
    assert sheet["A1"].value == "=_xlfn.IFS(1>0,_xlfn.XLOOKUP(1,B1:B2,C1:C2))"
    assert sheet["B1"].value == "=SUM(_xlfn.STDEV.S(B3:B4))"


async def test_all_that_is_wrong_is_said_at_once_and_nothing_is_written(workspace: Workspace) -> None:
    told = await refusal(
        make_xlsx(
            workspace,
            "output/a.xlsx",
            [
                {"name": "A/B", "rows": []},
                {"name": "X", "rows": [["=Nope!A1", "=SUM(A1", "=FILTER(A1:A2,1)"], ["x" * 40_000]]},
                {"name": "x", "rows": []},
                {
                    "name": "Y",
                    "rows": [["a", "b"]],
                    "formats": [{"range": "A1:B1", "merge": True}, {"range": "?"}, {"range": "A1", "fill": "red"}],
                    "charts": [{"kind": "pie", "at": "Z1", "labels": "A1:A2", "values": ["A1:B2"]}],
                    "header_rows": 99,
                },
                {
                    "name": "Z",
                    "rows": [["a", "b"]],
                    "formats": [{"range": "A1:B1", "merge": True}, {"range": "?"}, {"range": "A1", "fill": "red"}],
                    "charts": [{"kind": "pie", "at": "Z1", "labels": "A1:A2", "values": ["A1:B2"]}],
                },
            ],  # type: ignore[list-item]
        )
    )
    for problem in (
        "sheet 1: name 'A/B': 1 to 31 characters",
        "sheet 3: name 'x': there is such a sheet already",
        "X!A1: the formula names the sheet 'Nope'; there are X, Y, Z",
        "X!B1: '=SUM(A1' is no formula",
        "X!C1: FILTER fills several cells",
        "X!A2: 40,000 characters",
        "Y: header_rows is from 0 to 20",
        "Z, format of A1:B1: merge would lose B1",
        "Z, format of ?: '?' is no range",
        "Z, format of A1: colour 'red'",
        "Z, chart 1: chart: 'A1:B2' has several rows and columns",
    ):
        assert problem in told
    assert not (workspace.root / "output/a.xlsx").exists()
    nothing: list[Any] = []
    assert "at least one sheet" in await refusal(make_xlsx(workspace, "output/a.xlsx", nothing))


# --- edit -------------------------------------------------------------------------------------------------------------


def model() -> Any:
    """A workbook with all that refers to cells."""
    book = openpyxl.Workbook()
    data = book.active
    data.title = "Data"
    for row in [
        ["k", "v", "w"],
        ["a", 1, "=B2*2"],
        ["b", 2, "=B3*2"],
        ["c", 3, "=B4*2"],
        ["sum", "=SUM(B2:B4)", "=C2"],
    ]:
        data.append(row)
    data["B3"].font = Font(bold=True)
    data["B4"].comment = Comment("checked", "A")
    data["A4"].hyperlink = "https://example.com"
    data.merge_cells("A7:C7")
    data["A7"] = "merged"
    data.conditional_formatting.add("B2:B4", CellIsRule(operator="greaterThan", formula=["$B$4"], font=Font(bold=True)))
    rule = DataValidation(type="list", formula1="$A$2:$A$4")
    rule.add("E2:E4")
    data.add_data_validation(rule)
    data.auto_filter.ref = "A1:C5"
    data.row_dimensions[4].height = 40
    data.column_dimensions["C"].width = 33
    chart = BarChart()
    chart.add_data(Reference(data, 2, 1, 2, 4), titles_from_data=True)
    data.add_chart(chart, "G10")
    other = book.create_sheet("Other")
    other["A1"] = "=Data!B4+SUM(Data!$B$2:B3)+B4"
    other["A2"] = "=total"
    book.defined_names["total"] = DefinedName("total", attr_text="Data!$B$5")
    return book


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


@pytest.fixture
def book(workspace: Workspace) -> Path:
    path = workspace.root / "output/a.xlsx"
    model().save(path)
    return path


async def test_a_cell_at_the_address_that_is_read_is_the_one_that_changes(
    workspace: Workspace, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_soffice, "soffice", lambda: None)  # else whatever is calculated from it changes too
    before = read(book)
    after = await edited(workspace, {"action": "replace", "at": "Data!B3", "values": [[9, "=B3+1"]]})
    assert (after["Data"]["B3"].value, after["Data"]["C3"].value) == (9, "=B3+1")
    assert after["Data"]["B3"].font.bold
    now = read(book)
    changed = {label for label in before.keys() | now.keys() if before.get(label) != now.get(label)}
    assert changed == {"Data!A3:C3"}


async def test_everything_follows_rows_that_are_inserted(workspace: Workspace, book: Path) -> None:
    after = await edited(
        workspace,
        {"action": "insert_after", "at": "Data!3", "values": [["x", 5, "=B4*2"], ["y", 6, "=B5*2"]]},
        {"action": "replace", "at": "Data!A2", "values": [["first"]]},
    )
    data = after["Data"]
    assert [data.cell(row, 1).value for row in range(1, 8)] == ["k", "first", "b", "x", "y", "c", "sum"]
    assert [data.cell(row, 3).value for row in range(2, 8)] == ["=B2*2", "=B3*2", "=B4*2", "=B5*2", "=B6*2", "=C2"]
    assert data["B7"].value == "=SUM(B2:B6)"
    assert data["B4"].font.bold  # like the row before
    assert data["B6"].comment.text == "checked"
    assert data["A6"].hyperlink.ref == "A6"
    assert [str(one) for one in data.merged_cells.ranges] == ["A9:C9"]
    formatted = next(iter(data.conditional_formatting))
    assert (str(formatted.sqref), formatted.rules[0].formula) == ("B2:B6", ["$B$6"])
    rule = data.data_validations.dataValidation[0]
    assert (str(rule.sqref), rule.formula1) == ("E2:E6", "$A$2:$A$6")
    assert data.auto_filter.ref == "A1:C7"
    assert data.row_dimensions[6].height == 40
    assert data._charts[0].series[0].val.numRef.f == "'Data'!$B$2:$B$6"
    assert data._charts[0].anchor._from.row == 11
    assert after["Other"]["A1"].value == "=Data!B6+SUM(Data!$B$2:B3)+B4"
    assert after.defined_names["total"].attr_text == "Data!$B$7"


async def test_everything_follows_rows_and_columns_that_are_deleted(workspace: Workspace, book: Path) -> None:
    after = await edited(workspace, {"action": "delete", "at": "Data!2:3"}, {"action": "delete", "at": "Data!A:A"})
    data = after["Data"]
    assert [data.cell(row, 1).value for row in (1, 2, 3)] == ["v", 3, "=SUM(A2:A2)"]
    assert (data["B2"].value, data["B3"].value) == ("=A2*2", "=#REF!")
    assert data.column_dimensions["B"].width == 33
    assert after["Other"]["A1"].value == "=Data!A2+SUM(Data!#REF!)+B4"
    assert after.defined_names["total"].attr_text == "Data!$A$3"


async def test_columns_are_inserted_with_their_values_from_top_to_bottom(workspace: Workspace, book: Path) -> None:
    after = await edited(workspace, {"action": "insert_before", "at": "Data!C", "values": [["new", "=B2+1", "=B3+1"]]})
    data = after["Data"]
    assert [data.cell(row, 3).value for row in (1, 2, 3)] == ["new", "=B2+1", "=B3+1"]
    assert (data["D2"].value, data["D5"].value) == ("=B2*2", "=D2")


async def test_sheets_are_added_renamed_and_deleted(workspace: Workspace, book: Path) -> None:
    after = await edited(
        workspace,
        {"action": "insert_after", "at": "Data", "sheet": {"name": "New", "rows": [["a"], ["=Data!B5"]]}},
        {"action": "insert_before", "at": "Data", "sheet": {"name": "Cover", "rows": [["Title"]]}},
    )
    assert after.sheetnames == ["Cover", "Data", "New", "Other"]
    after = await edited(workspace, {"action": "replace", "at": "Data", "text": "My Data"})
    assert after["Other"]["A1"].value == "='My Data'!B4+SUM('My Data'!$B$2:B3)+B4"
    assert after.defined_names["total"].attr_text == "'My Data'!$B$5"
    assert "use the sheet 'My Data'" in await refusal(
        edit_xlsx(workspace, "output/a.xlsx", [{"action": "delete", "at": "My Data"}])  # type: ignore[list-item]
    )
    after = await edited(workspace, {"action": "delete", "at": "Cover"})
    assert after.sheetnames == ["My Data", "New", "Other"]


async def test_words_are_found_in_texts_and_formulas(workspace: Workspace, book: Path) -> None:
    after = await edited(workspace, {"action": "replace", "find": "SUM", "text": "MAX"})
    assert after["Data"]["B5"].value == "=MAX(B2:B4)"
    after = await edited(workspace, {"action": "replace", "at": "Data!A1:A5", "find": "sum", "text": "=total"})
    assert (after["Data"]["A5"].value, after["Data"]["A5"].data_type) == ("=total", "s")


async def test_cells_are_cleared_formatted_and_charted(workspace: Workspace, book: Path) -> None:
    chart = {"kind": "line", "at": "G30", "labels": "A2:A4", "values": ["B1:B4"]}
    after = await edited(
        workspace,
        {"action": "delete", "at": "Data!A2:A3"},
        {"action": "replace", "at": "Data", "format": {"range": "B2:B4", "number_format": "0.0%", "align": "center"}},
        {"action": "replace", "at": "Data", "chart": chart},
    )
    data = after["Data"]
    assert (data["A2"].value, data["A3"].value, data["A4"].value) == (None, None, "c")
    assert (data["B3"].number_format, data["B3"].font.bold) == ("0.0%", True)
    assert len(data._charts) == 2


async def test_all_problems_of_edits_are_named_and_the_file_stays(workspace: Workspace, book: Path) -> None:
    before = bytes_of(book)
    edits: list[Any] = [
        {"action": "replace", "at": "Data!B2", "values": [[5]]},
        {"action": "replace", "at": "Nope!B2", "values": [[5]]},
        {"action": "replace", "at": "Data!B2"},
        {"action": "insert_after", "at": "Data!2"},
        {"action": "replace", "at": "Data!B7", "values": [["x"]]},
        {"action": "replace", "find": "nowhere", "text": "x"},
        {"action": "replace", "at": "Data!A1", "values": [["=Gone!A1"]]},
        {"action": "insert_after", "at": "Data"},
    ]
    told = await refusal(edit_xlsx(workspace, "output/a.xlsx", edits))
    for problem in (
        "edit 2: 'Nope!B2' names no sheet of this workbook; there are Data, Other",
        "edit 3: replace needs `values`, `format` or `chart`",
        "edit 4: an insert needs `values`",
        "Data!B7: a merged cell covers it",
        "edit 6: 'nowhere' does not occur",
        "Data!A1: the formula names the sheet 'Gone'",
        "edit 8: beside a whole sheet goes a `sheet`",
    ):
        assert problem in told
    assert bytes_of(book) == before


async def test_what_the_library_would_lose_is_not_touched(workspace: Workspace, book: Path) -> None:
    for part, what in (("xl/threadedComments/a.xml", "comment threads"), ("xl/slicers/slicer1.xml", "slicers")):
        data = changed(saved(model()), {part: "<a/>"})
        (workspace.root / "output/a.xlsx").write_bytes(data)
        told = await refusal(
            edit_xlsx(workspace, "output/a.xlsx", [{"action": "delete", "at": "Data!A1"}])  # type: ignore[list-item]
        )
        assert what in told
        assert bytes_of(book) == data


async def test_a_table_is_not_cut(workspace: Workspace, book: Path) -> None:
    workbook = model()
    workbook["Data"].auto_filter.ref = None
    workbook["Data"].add_table(Table(displayName="Keys", ref="A1:B5"))
    workbook.save(book)
    told = await refusal(
        edit_xlsx(workspace, "output/a.xlsx", [{"action": "delete", "at": "Data!1"}])  # type: ignore[list-item]
    )
    assert "it would cut the table Keys (A1:B5)" in told
    after = await edited(workspace, {"action": "insert_after", "at": "Data!2", "values": [["n", 1]]})
    assert after["Data"].tables["Keys"].ref == "A1:B6"
