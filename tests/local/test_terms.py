"""SPEC 11 `local`: what counts as the same number, date or word."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.local.terms import Figure, normalise, scan, stem


def figure(text: str) -> Figure:
    [found] = [token.figure for token in scan(normalise(text)) if token.figure]
    return found


def keys(text: str, kind: str) -> list[str]:
    return [token.key for token in scan(normalise(text)) if token.kind == kind]


@pytest.mark.parametrize(
    "spelling",
    [
        "1,250,000",
        "1250000",
        "1.25 million",
        "1.25M",
        "$1.25m",
        "125万",
        "125 万元",
        "１２５万",
        "1\u202f250\u202f000",
        "0.0125亿",
    ],
)
def test_one_number_in_its_spellings(spelling: str) -> None:
    assert figure("1,250,000").agrees(figure(spelling))
    assert figure(spelling).value == 1_250_000


@pytest.mark.parametrize("spelling", ["12.5%", "12.5 %", "12.5 percent", "12.5 per cent", "12.5％"])
def test_one_percentage_in_its_spellings(spelling: str) -> None:
    assert figure("12.5%") == figure(spelling)


@pytest.mark.parametrize(
    ("spelling", "value"), [("百分之十二", 12), ("百分之五", 5), ("百分之二十", 20), ("百分之12.5", 12.5)]
)
def test_chinese_percentages(spelling: str, value: float) -> None:
    assert (figure(spelling).value, figure(spelling).percent) == (pytest.approx(value), True)


@pytest.mark.parametrize(
    ("wanted", "found", "agrees"),
    [
        ("12.3 %", "12.34 %", True),
        ("12.3 %", "12.4 %", False),
        ("12.34 %", "12.3 %", False),
        ("1.25 million", "1,248,300", True),
        ("1.25 million", "1,243,000", False),
        ("400", "400.4", True),
        ("400", "401", False),
        ("12 %", "12", False),
        ("-10.1 %", "+10.1 %", False),
        ("-10.1 %", "10.1 %", True),
    ],
)
def test_a_found_number_may_be_more_precise_than_the_row_never_less(wanted: str, found: str, agrees: bool) -> None:
    assert figure(wanted).agrees(figure(found)) is agrees


def test_exact_agreement_does_not_round() -> None:
    assert not figure("411").agrees(figure("411.27"), exact=True)
    assert figure("411").agrees(figure("411.0"), exact=True)


@pytest.mark.parametrize(
    "spelling",
    [
        "2026-03-05",
        "2026/3/5",
        "5 March 2026",
        "5th of March 2026",
        "March 5, 2026",
        "Mar 5 2026",
        "2026年3月5日",
        "2026 年 3 月 5 号",
    ],
)
def test_one_date_in_its_spellings(spelling: str) -> None:
    assert keys(spelling, "date") == ["2026-3-5"]


def test_a_year_may_be_left_out_a_day_may_not() -> None:
    dates = {
        text: next(t.date for t in scan(text) if t.date)
        for text in ("5 March 2026", "5 March", "March 2026", "5 March 2025")
    }
    wanted = dates["5 March 2026"]
    assert wanted.agrees(dates["5 March"])
    assert not wanted.agrees(dates["March 2026"])
    assert not wanted.agrees(dates["5 March 2025"])
    assert dates["March 2026"].agrees(wanted)


def test_numbers_and_dates_right_after_other_text_are_whole() -> None:
    assert keys("due 2026-06-23.", "date") == ["2026-6-23"]
    assert keys("共 36 台，金额 962.0 万元。", "figure") == ["36", "9620000"]
    assert keys("revenue: 10-12 units", "figure") == ["10", "12"]


def test_codes_files_and_addresses_are_one_unit() -> None:
    assert keys("invoice INV-2291 in Q2, budget_eur, \\boxed{7}, a.b@c.example", "code") == [
        "inv-2291",
        "q2",
        "budget_eur",
        "\\boxed",
        "a.b@c.example",
    ]
    assert keys("see `output/Report.md` and 月报.csv.", "file") == ["output/report.md", "月报.csv"]


@pytest.mark.parametrize(
    "family",
    [
        ("recommend", "recommends", "recommended", "recommending", "recommendation", "recommendations"),
        ("invoice", "invoices", "invoiced", "invoicing"),
        ("company", "companies"),
        ("deliver", "delivers", "delivered"),
    ],
)
def test_word_forms_share_a_stem(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_short_words_keep_their_ending() -> None:
    assert [stem(word) for word in ("red", "use", "bus", "is")] == ["red", "use", "bus", "is"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=300))
def test_any_text_is_scanned_in_order(text: str) -> None:
    text = normalise(text)
    starts = [token.start for token in scan(text)]
    assert starts == sorted(starts)


@pytest.mark.parametrize(
    "piece", ["a", "-", "/", ".", "9", "1,", "a-", "a@", "Q", "年", "1 月", "a.", "_", "９", "$", "("]
)
def test_time_is_linear_in_the_text(piece: str) -> None:
    start = time.process_time()
    sum(1 for _ in scan(normalise(piece * (100_000 // len(piece)))))
    assert time.process_time() - start < 5
