"""Every figure that harbor-ppt's rubrics ask for, worked out again from the input files."""

from __future__ import annotations

import csv
import re
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from rubric_env.harbor import Instance
from tests.environments.shipped import ENVIRONMENTS

INSTANCES = ENVIRONMENTS["harbor_ppt"]


def table(name: str, file: str) -> list[dict[str, str]]:
    with (INSTANCES / name / "environment/inputs" / file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def sheet(name: str, file: str, title: str) -> list[tuple[Any, ...]]:
    openpyxl = pytest.importorskip("openpyxl", reason="the office extra is not installed")
    book = openpyxl.load_workbook(INSTANCES / name / "environment/inputs" / file)
    return list(book[title].iter_rows(min_row=2, values_only=True))


def text(name: str, file: str) -> str:
    return " ".join((INSTANCES / name / "environment/inputs" / file).read_text("utf-8").split())


def row(name: str, identity: str) -> str:
    """A row's text with its levels, without thousands separators."""
    found = Instance.load(INSTANCES / name).spec[identity]
    return re.sub(r"(?<=\d),(?=\d{3})", "", " ".join([found.description, *(found.levels or {}).values()]))


def rounded(value: Any, places: str = "0.1") -> Decimal:
    return Decimal(str(value)).quantize(Decimal(places), ROUND_HALF_UP)


def test_board_update() -> None:
    name = "board-update"
    *lines, total = table(name, "sales_export.csv")
    factor = {"EUR": 1, "kEUR": 1000}
    batches = {line["batch"]: line for line in lines}
    assert len(lines) - len(batches) == 1 and lines[-2]["batch"] == "A-402"
    revenue: dict[str, Decimal] = {}
    for line in batches.values():
        amount = Decimal(line["revenue"]) * factor[line["unit"]] / 1000
        revenue[line["region"]] = revenue.get(line["region"], Decimal()) + amount
    plan = {line["region"]: Decimal(line["plan_eur"]) / 1000 for line in table(name, "plan.csv")}
    reached, planned = sum(revenue.values()), sum(plan.values())
    share = rounded(100 * (reached / planned - 1))
    assert f"EUR {reached:.0f} thousand against a plan of EUR {planned:.0f} thousand, that is {share:+} %" in row(
        name, "R01"
    )
    for region, amount in revenue.items():
        assert f"{region} {amount:.0f}" in row(name, "R02")
    for figures in (revenue, plan):
        assert ", ".join(f"{amount:.0f}" for amount in figures.values()) in row(name, "R04")
    below = plan["South"] - revenue["South"]
    assert f"EUR {below:.0f} thousand, or {rounded(100 * below / plan['South'])} %, below plan" in row(name, "R03")
    twice = reached + Decimal(batches["A-402"]["revenue"]) / 1000
    assert sum(Decimal(line["revenue"]) for line in lines) == Decimal(total["revenue"]) != reached
    assert f"{rounded(twice, '1')} or {total['revenue']}" in row(name, "R11")
    assert rounded(Decimal(total["revenue"]) / 1000, "1") == 1103
    assert "2 % under plan" in text(name, "cfo_notes.md") and "2 % under plan" in row(name, "R12")


def test_sales_pitch() -> None:
    name = "sales-pitch"
    energy: dict[tuple[str, str], Decimal] = {}
    for line in table(name, "pilot.csv"):
        scale = {"kWh": Decimal("0.001"), "MWh": Decimal(1)}[line["unit"]]
        energy[line["school"], line["season"]] = Decimal(line["heating_energy"]) * scale
    schools = list(dict.fromkeys(school for school, _ in energy))
    before, after = ([energy[school, season] for school in schools] for season in ("before", "after"))
    saved = sum(before) - sum(after)
    assert (
        f"{rounded(100 * saved / sum(before))} % of their heating energy ({saved.normalize()} MWh of 270 MWh)"
        in row(name, "saving")
    )
    for school, old, new in zip(schools, before, after, strict=True):
        assert f"{school} {rounded(100 * (1 - new / old))} %" in row(name, "schools")
    assert ", ".join(f"{value:.0f}" for value in before) + " before" in row(name, "chart")
    assert all(f"{rounded(value)}".removesuffix(".0") in row(name, "chart") for value in after)

    prices = {item: Decimal(price) for item, price, _ in sheet(name, "prices.xlsx", "List")}
    controllers = 12 * prices["Tideline controller"] * Decimal("0.92")
    total = controllers + 12 * prices["Installation, per controller"]
    assert f"EUR {total:.0f}" in row(name, "offer")
    school = 1000 * saved / 3
    euros = 12 * school * Decimal("0.14")
    assert f"{rounded(total / euros)} heating seasons" in row(name, "payback") and f"{euros:.0f}" in row(
        name, "payback"
    )
    assert f"{school:.0f} kWh a school" in row(name, "notes-calculation")
    [(_, floor), _] = sheet(name, "prices.xlsx", "Internal")
    assert f"EUR {floor}" in row(name, "floor")


def test_policy_training() -> None:
    name = "policy-training"
    docx = pytest.importorskip("docx", reason="the tools extra is not installed")
    policy = docx.Document(str(INSTANCES / name / "environment/inputs/travel_policy.docx"))
    said = " ".join(paragraph.text for paragraph in policy.paragraphs)
    for amount in (
        "EUR 150",
        "EUR 180",
        "EUR 130",
        "EUR 28",
        "EUR 56",
        "EUR 5.60",
        "EUR 25",
        "EUR 75",
        "8 %",
        "1 May 2026",
    ):
        assert amount in said
    hotel, days, breakfasts = 2 * Decimal(172), (28, 56, 28), 2 * Decimal("5.60")
    assert Decimal(172) <= 180
    assert f"EUR {hotel + sum(days) - breakfasts:.2f}" in row(name, "R4")
    assert (
        f"EUR {hotel:.2f}, the allowances of the three days (28, 56, 28) and the deduction of EUR {breakfasts:.2f}"
        in row(name, "R5")
    )


def test_deck_repair() -> None:
    name = "deck-repair"
    months = table(name, "ledger.csv")
    calls, trapped = (sum(int(month[key]) for month in months) for key in ("call_outs", "people_trapped"))
    february = int(months[1]["call_outs"])
    assert f"{february} call-outs for February, and totals of {calls} call-outs and {trapped} people" in row(
        name, "figures"
    )
    first, *_, last = (int(month["mean_response_minutes"]) for month in months)
    assert f"from {first} to {last} minutes, by {rounded(Decimal(100 * (first - last)) / first)} %" in row(
        name, "percent"
    )
    assert f"{calls} call-outs was changed to {calls - february + 187}" in row(name, "total")

    pptx = pytest.importorskip("pptx", reason="the tools extra is not installed")
    slides = list(pptx.Presentation(str(INSTANCES / name / "environment/inputs/service_review.pptx")).slides)
    cells = [[cell.text for cell in one.cells] for one in next(s.table for s in slides[2].shapes if s.has_table).rows]
    assert cells[2] == ["February", "187", "2"] and cells[-1] == ["Total", str(calls), str(trapped - 1)]
    chart = next(shape.chart for shape in slides[3].shapes if shape.has_chart)
    assert [*chart.plots[0].series[0].values] == [int(month["mean_response_minutes"]) for month in months]
    assert "48,000" in slides[3].notes_slide.notes_text_frame.text and slides[-1]._element.get("show") == "0"


def test_kickoff_deck() -> None:
    name = "kickoff-deck"
    lines = table(name, "budget.csv")
    total = sum(int(line["eur"]) for line in lines)
    asked = row(name, "k2").lower()
    assert all(f"{line['item'].lower()} {line['eur']}" in asked for line in lines) and f"eur {total}" in asked
    assert "approved 240,000" in text(name, "notes.txt") and f"EUR {total - 240_000} above the EUR 240000" in row(
        name, "k3"
    )
    team = [line["name"] for line in table(name, "team.csv")]
    assert all(person in row(name, "k5") for person in team) and "Anneke Vos" in team
    assert "Anneke Voss" in text(name, "notes.txt")
    assert "27 November" in text(name, "notes.txt") and "4 December 2026" in row(name, "k1")
    assert "a week late" in text(name, "notes.txt") and date(2026, 12, 4) - date(2026, 11, 27) == timedelta(weeks=1)


def test_midyear_review() -> None:
    name = "midyear-review-zh"
    *months, total = sheet(name, "工作台账.xlsx", "月度台账")
    orders, on_time = sum(month[1] for month in months), sum(month[2] for month in months)
    assert (orders, on_time) == total[1:3]
    rates = [rounded(Decimal(100 * month[2]) / month[1]) for month in months]
    assert f"{rounded(Decimal(100 * on_time) / orders)}%" in row(name, "R01")
    assert "、".join(str(rate) for rate in rates) in row(name, "R03")
    assert min(rates) == rates[1] and f"{rates[1]}%" in row(name, "R04")
    mean = sum(Decimal(100 * month[2]) / month[1] for month in months) / 6
    assert f"97.5% 或 {rounded(mean)}%" in row(name, "R11") and "97.5%" in text(name, "述职要求.md")
    paid = [Decimal(str(month[3])) / {"万元": 1, "元": 10_000}[month[4]] for month in months]
    assert "、".join(str(rounded(value)) for value in paid) + " 万元" in row(name, "R05")
    [_, (_, goal, last_year, _)] = sheet(name, "工作台账.xlsx", "目标")
    drop = rounded(100 * (1 - sum(paid) / last_year))
    assert f"{rounded(sum(paid))} 万元，低于目标 {goal} 万元，比去年同期 {rounded(last_year)} 万元下降 {drop}%" in row(
        name, "R02"
    )
    assert sum(Decimal(str(month[3])) for month in months) == Decimal(str(total[3]))
    assert f"{total[3]}" in row(name, "R09")
    names = [line["组长"] for line in table(name, "组织名单.csv")]
    assert "、".join(names) in row(name, "R07") and "许嘉宁" in text(name, "述职要求.md") and "许嘉宁" not in names


def test_density_lesson() -> None:
    name = "density-lesson-zh"
    used, left_out = [], []
    for line in table(name, "实验数据.csv"):
        mass = Decimal(line["质量"]) * {"g": 1, "kg": 1000}[line["质量单位"]]
        (left_out if line["备注"] else used).append((Decimal(line["体积"]), mass))
    densities = [mass / volume for volume, mass in used]
    mean = rounded(sum(densities) / len(densities), "0.01")
    assert f"{mean} g/cm³" in row(name, "c1") and f"{1000 * mean:.0f} kg/m³" in row(name, "c2")
    assert "、".join(str(rounded(density, "0.01")) for density in densities) in row(name, "c3")
    assert "、".join(f"{volume:.0f}" for volume, _ in used) in row(name, "c6")
    assert "、".join(f"{mass.normalize():f}" for _, mass in used) in row(name, "c6")
    [(volume, mass)] = left_out
    everything = (sum(densities) + mass / volume) / 5
    assert f"{rounded(everything, '0.01')} g/cm³" in row(name, "c11") and "2.7×10² kg/m³" in text(name, "教案.md")
    assert f"{25 * mean:.1f} g" in row(name, "c9") and f"空心，{Decimal(54) / 25:.2f} g/cm³" in row(name, "c9")


def test_clinic_poster() -> None:
    name = "clinic-poster-zh"
    assert f"{date(2026, 10, 17):%A}" == "Saturday" and "10 月 17 日（周日）9:00—11:30" in text(name, "活动方案.md")
    assert "8:30 开始，结束时间不变" in text(name, "修改通知.txt") and "8:30 到 11:30" in row(name, "p1")
    for doctor in table(name, "医生排班.csv"):
        there = f"{doctor['科室']}{doctor['医生']}" in row(name, "p3")
        assert there == (doctor["状态"] == "到诊") and there != (doctor["医生"] in row(name, "p11"))
    assert "0577-0000-1180" in text(name, "活动方案.md") and "0577-0000-1180" in row(name, "p6")
