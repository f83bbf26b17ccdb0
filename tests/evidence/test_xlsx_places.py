"""Which cells a formula reads: what may read others too is told from what does not."""

from __future__ import annotations

import pytest

from rubric_env.evidence._xlsx_places import Area, area_of, column_letters, column_number, references


@pytest.mark.parametrize(
    ("formula", "read"),
    [
        ("SUM(B2:B4)+Other!$A$1*2", [Area("S", 2, 2, 2, 4), Area("Other", 1, 1, 1, 1)]),
        ("'Costs & more'!A3", [Area("Costs & more", 1, 3, 1, 3)]),
        ("'It''s'!B2", [Area("It's", 2, 2, 2, 2)]),
        ("数据!A1+1", [Area("数据", 1, 1, 1, 1)]),
        ('IF(B5>1,"A1 and Total",TRUE)', [Area("S", 2, 5, 2, 5)]),
        ("LOG10(AA1)*1.5E3", [Area("S", 27, 1, 27, 1)]),
        ("C9:B7", [Area("S", 2, 7, 3, 9)]),
        ("PI()*2", []),
        *((other, None) for other in ("Total*2", "SUM(A:A)", "SUM(1:1)", 'INDIRECT("B2")', "OFFSET(A1,1,1)")),
        *(
            (other, None)
            for other in ("SUM(T1[x])", "Jan:Mar!A1", "A1#", "SUM(A1:INDEX(B1:B9,3))", "[1]S!A1", "#REF!+A1")
        ),
    ],
)
def test_references(formula: str, read: list[Area] | None) -> None:
    assert references(formula, "S") == read


def test_addresses_and_columns() -> None:
    assert area_of("B7", "S") == Area("S", 2, 7, 2, 7)
    assert area_of("A1:B2", "S") == Area("S", 1, 1, 2, 2)
    assert area_of("Other!A1", "S") is area_of("", "S") is area_of("A", "S") is None
    assert [column_letters(column_number(name)) for name in ("A", "Z", "AA", "XFD")] == ["A", "Z", "AA", "XFD"]
