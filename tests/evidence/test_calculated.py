"""Formulas whose values a workbook does not hold: a judge is shown what a person sees who opens it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter

from rubric_env.evidence import EvidenceStore, Passages, _soffice, _store, read_passages
from rubric_env.evidence._soffice import NotRendered
from tests.evidence.office import changed, saved

WHY = "not all formulas without a value were calculated: "


@pytest.fixture(autouse=True)
def _office() -> None:
    if _soffice.soffice() is None:
        if os.environ.get("RUBRIC_ENV_REQUIRE_OFFICE") == "1":
            pytest.fail("LibreOffice is not installed, and this run requires it")
        pytest.skip("LibreOffice is not installed")


@pytest.fixture
def passages_of(tmp_path: Path) -> Callable[..., Passages]:
    """Of a file with this content; each is read by a store of its own unless one is given."""

    def read(content: bytes, name: str = "book.xlsx", store: EvidenceStore | None = None) -> Passages:
        (tmp_path / name).write_bytes(content)
        return read_passages(tmp_path / name, store or EvidenceStore(tmp_path / "store"))

    return read


def cells(passages: Passages) -> dict[str, str]:
    """What is shown at each address; an address is that of a whole row."""
    return {unit.label: unit.text for unit in passages.units() if not unit.label.startswith("metadata/")}


def book(*formulas: str, **formats: str) -> bytes:
    """Numbers in A1 to A3, and a row for each formula in column B; `formats` are those of its cells."""
    made = openpyxl.Workbook()
    sheet = made.active
    for number, value in enumerate((100.5, 200, 300.25), 1):
        sheet[f"A{number}"] = value
    for number, formula in enumerate(formulas, 10):
        sheet[f"B{number}"] = formula
        sheet[f"B{number}"].number_format = formats.get(f"B{number}", "General")
    return saved(made)


def written(write: Callable[[Any], None]) -> bytes:
    """By a program that stores 0 for each formula, and says that values are to be calculated on opening."""
    buffer = io.BytesIO()
    made = xlsxwriter.Workbook(buffer)
    write(made.add_worksheet())
    made.close()
    return buffer.getvalue()


def test_values_are_shown_as_their_cells_show_them(passages_of: Any) -> None:
    expected = {
        ("=SUM(A1:A3)", "#,##0.00"): "600.75",
        ("=A1/SUM(A1:A3)", "0.0%"): "16.7%",
        ("=DATE(2024,3,1)", "yyyy-mm-dd"): "2024-03-01",
        ('=IF(A1>1,"large","small")', "General"): "large",
        ("=A1>A2", "General"): "FALSE",
        ("=A1/0", "General"): "#DIV/0!",
        ('=VLOOKUP("none",A1:B3,2,FALSE)', "General"): "#N/A",
        ("=SUMM(A1)", "General"): "#NAME?",
        ("=0", "General"): "0",
        ('=_xlfn.IFS(A1>1,"yes")', "General"): "yes",
        ("=SUMPRODUCT((A1:A3>150)*A1:A3)", "General"): "500.25",
        ('=TEXT(A1,"0.0")&" €"', "General"): "100.5 €",
    }
    formats = {f"B{row}": code for row, (_, code) in enumerate(expected, 10)}
    shown = cells(passages_of(book(*(formula for formula, _ in expected), **formats)))
    for row, ((formula, _), value) in enumerate(expected.items(), 10):
        assert shown[f"Sheet!B{row}"] == f"B: {value} ({formula})"


def test_other_sheets_names_and_hidden_ones_are_followed(passages_of: Any) -> None:
    made = openpyxl.Workbook()
    made.active.title = "Summary 2025"
    other = made.create_sheet("Costs & more")
    other.sheet_state = "hidden"
    other["A1"], other["A2"], other["A3"] = 20, 22, "=SUM(A1:A2)"
    made.defined_names["Total"] = openpyxl.workbook.defined_name.DefinedName("Total", attr_text="'Costs & more'!$A$3")
    made.active["A1"], made.active["A2"] = "=Total*2", "='Costs & more'!A1"
    passages = passages_of(saved(made))
    assert cells(passages)["Summary 2025!A1"] == "A: 84 (=Total*2)"
    assert cells(passages)["Summary 2025!A2"] == "A: 20 (='Costs & more'!A1)"
    assert cells(passages)["Costs & more!A3"] == "A: 42 (=SUM(A1:A2))"
    (note,) = passages.notes
    assert "2 formulas, 2 of them without a value in the file, calculated here" in note


def test_a_zero_that_stands_for_a_value_not_known_is_none(passages_of: Any) -> None:
    def write(sheet: Any) -> None:
        sheet.write_row("A1", [5, 7])
        sheet.write_formula("A2", "=A1*B1")
        sheet.write_formula("A3", "=A1-5")
        sheet.write_formula("A4", "=A1+B1", None, 12)

    shown = cells(passages_of(written(write)))
    assert [shown[f"Sheet1!A{row}"] for row in (2, 3, 4)] == ["A: 35 (=A1*B1)", "A: 0 (=A1-5)", "A: 12 (=A1+B1)"]


def test_values_that_the_file_holds_are_believed_and_nothing_is_calculated(
    passages_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_store, "calculate", lambda *_: pytest.fail("it was calculated"))

    def write(sheet: Any) -> None:
        sheet.write_formula("A1", "=1+1", None, 2)

    assert cells(passages_of(written(write)))["Sheet1!A1"] == "A: 2 (=1+1)"
    assert cells(passages_of(book(), "plain.xlsx"))["Sheet!A1"] == "A: 100.5"


def test_what_depends_on_a_function_that_is_not_known_here_is_not_calculated(passages_of: Any) -> None:
    passages = passages_of(
        book(
            "=SUM(A1:A3)",
            "=_xlfn.XLOOKUP(200,A1:A3,A1:A3)",
            '=IFERROR(B11,"none")',
            "=COUNT(B12:B20)",
            "=_xlfn._xlws.SORT(A1:A3)",
            "=B10*2",
            "=SUM(B:B)",
            '=INDIRECT("A1")',
            "=LOG10(A1*10-5)",
        )
    )
    shown = cells(passages)
    doubtful = [row for row in range(10, 19) if "not calculated" in shown[f"Sheet!B{row}"]]
    assert doubtful == [11, 12, 13, 14, 16, 17]
    assert shown["Sheet!B10"] == "B: 600.75 (=SUM(A1:A3))"
    assert shown["Sheet!B15"] == "B: 1201.5 (=B10*2)"
    assert shown["Sheet!B18"] == "B: 3 (=LOG10(A1*10-5))"
    assert passages.notes[0] == f"{WHY}the function XLOOKUP is not known here; the function SORT is not known here"


def test_cells_that_an_array_formula_fills_are_part_of_it(passages_of: Any) -> None:
    def write(sheet: Any) -> None:
        sheet.write_column("A1", [5, 7, 0])
        sheet.write_array_formula("B1:B3", "{=A1:A3*2}")
        sheet.write_dynamic_array_formula("C1:C3", "=SORT(A1:A3)")

    assert [text for label, text in cells(passages_of(written(write))).items() if "!" in label] == [
        "A: 5 | B: 10 (=A1:A3*2) | C: (=_xlfn._xlws.SORT(A1:A3), not calculated)",
        "A: 7 | B: 14 | C: (of an array formula, not calculated)",
        "A: 0 | B: 0 | C: (of an array formula, not calculated)",
    ]


def test_what_differs_at_every_opening_is_not_shown_as_a_fact(passages_of: Any) -> None:
    shown = cells(passages_of(book("=ROUND(RAND()*10,0)", "=NOW()", '=CELL("filename")', "=SUM(A1:A3)")))
    assert shown["Sheet!B10"] == "B: (=ROUND(RAND()*10,0), another value whenever the file is opened)"
    assert all("another value" in shown[f"Sheet!B{row}"] for row in (11, 12))
    assert shown["Sheet!B13"] == "B: 600.75 (=SUM(A1:A3))"


def test_nothing_outside_the_file_is_read(passages_of: Any, tmp_path: Path) -> None:
    secret = openpyxl.Workbook()
    secret.active["A1"] = "the secret"
    (tmp_path / "secret.xlsx").write_bytes(saved(secret))
    place = (tmp_path / "secret.xlsx").as_uri()
    passages = passages_of(
        book(f"='{place}'#$Sheet.A1", f"=INDIRECT(\"'{place}'#$Sheet.A1\")", f'=_xlfn.WEBSERVICE("{place}")')
    )
    assert "the secret" not in str([*passages.units(), passages.notes])


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (NotRendered("LibreOffice needed more than 60 s", ours=True, seconds=60), "LibreOffice needed more than 60 s"),
        (OSError(28, "No space left on device"), "no space left on device"),
    ],
)
def test_a_failure_of_ours_leaves_the_formulas_and_lets_a_judge_abstain(
    pack_of: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Exception, why: str
) -> None:
    def fail(*_: object) -> float:
        raise failure

    monkeypatch.setattr(_store, "calculate", fail)
    pack = pack_of({"book.xlsx": book("=SUM(A1:A3)")}, store=EvidenceStore(tmp_path / "store"))
    (extract,) = pack.extracts
    assert "B: (=SUM(A1:A3), not calculated)" in extract.text
    assert extract.note.endswith(WHY + why)
    assert pack.ours


def test_a_file_that_only_we_can_open_is_shown_as_it_is(passages_of: Any) -> None:
    passages = passages_of(changed(book("=SUM(A1:A3)"), {"[Content_Types].xml": lambda _: "<Types/>"}))
    assert cells(passages)["Sheet!B10"] == "B: (=SUM(A1:A3), not calculated)"
    assert passages.notes[-1].startswith(f"{WHY}LibreOffice cannot open it")


def test_on_a_full_disk_it_is_not_the_file_that_failed(pack_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_soffice, "LEAST_FREE", 2**60)
    broken = changed(book("=SUM(A1:A3)"), {"[Content_Types].xml": lambda _: "<Types/>"})
    pack = pack_of({"book.xlsx": broken})
    assert pack.extracts[0].note.endswith(f"{WHY}LibreOffice failed, and the disk is almost full")
    assert pack.ours


def test_it_is_calculated_once_for_each_content(
    passages_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EvidenceStore(tmp_path / "store")
    content = book("=SUM(A1:A3)")
    first = cells(passages_of(content, store=store))
    monkeypatch.setattr(_store, "calculate", lambda *_: pytest.fail("it was calculated again"))
    assert cells(passages_of(content, "other.xlsx", store)) == first


def test_a_workbook_that_needs_more_than_a_first_try_is_calculated_all_the_same(
    passages_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []
    convert = _soffice._convert
    monkeypatch.setattr(_soffice, "_convert", lambda *given: (tries.append(given[3]), convert(*given))[1])
    monkeypatch.setattr(_soffice, "FIRST_TRY", 0.05)
    assert cells(passages_of(book("=SUM(A1:A3)")))["Sheet!B10"] == "B: 600.75 (=SUM(A1:A3))"
    assert tries == [0.05, 60]


def test_the_pictures_show_the_same_values(tmp_path: Path) -> None:
    import pypdfium2

    def write(sheet: Any) -> None:
        sheet.write_row("A1", [5, 7])
        sheet.write_formula("A2", "=A1*B1*1000")

    (tmp_path / "book.xlsx").write_bytes(written(write))
    store = EvidenceStore(tmp_path / "store")
    entry = store.entry(tmp_path / "book.xlsx")
    assert len(store.pictures(entry, 120).pictures) == 1
    page = pypdfium2.PdfDocument(entry.folder / "drawing.pdf")[0]
    assert "35000" in page.get_textpage().get_text_bounded()


def test_a_formula_bomb_ends_in_time_and_its_time_is_booked(
    passages_of: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_store, "CALCULATING", 4)
    bomb = book(*[f"=SUMPRODUCT((ROW($1:$900000)>{n})*(COLUMN(A1)*SIN(ROW($1:$900000))))" for n in range(400)])
    passages = passages_of(bomb)
    assert passages.in_vain == 4
    assert passages.notes[-1] == f"{WHY}LibreOffice needed more than 4 s"
