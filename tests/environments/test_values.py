"""Every number that a rubric asks for, worked out again from the input files."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from math import ceil, sqrt
from pathlib import Path
from statistics import mean, pstdev, stdev
from typing import Any

import pytest
from docx import Document
from openpyxl import load_workbook

from rubric_env.harbor import Instance
from tests.environments.shipped import ENVIRONMENTS, recording, written_files

INSTANCES = ENVIRONMENTS["harbor_gdp"]


def table(name: str, file: str) -> list[dict[str, str]]:
    with (INSTANCES / name / "environment/inputs" / file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(line for line in stream if not line.startswith("#")))


def text(name: str, file: str) -> str:
    return (INSTANCES / name / "environment/inputs" / file).read_text("utf-8")


def row(name: str, identity: str) -> str:
    """A row's text with its levels, without thousands separators."""
    found = Instance.load(INSTANCES / name).spec[identity]
    return re.sub(r"(?<=\d),(?=\d{3})", "", " ".join([found.description, *(found.levels or {}).values()]))


def rounded(value: Any, places: str = "0.1") -> Decimal:
    return Decimal(str(value)).quantize(Decimal(places), ROUND_HALF_UP)


def test_budget_variance_memo() -> None:
    name = "budget-variance-memo"
    *lines, total = table(name, "q2_export.csv")
    budget: dict[str, int] = {}
    actual: dict[str, int] = {}
    for line in lines:
        budget[line["department"]] = budget.get(line["department"], 0) + int(line["budget_eur"])
        actual[line["department"]] = actual.get(line["department"], 0) + int(line["actual_eur"])
    assert total["department"] == "TOTAL"
    assert int(total["budget_eur"]) == sum(budget.values()) == 1_367_000
    support_june = next(int(x["actual_eur"]) for x in lines if (x["department"], x["month"]) == ("Support", "2026-06"))
    assert int(total["actual_eur"]) == sum(actual.values()) - support_june
    assert f"{total['actual_eur']}" in row(name, "R04") and f"{support_june}" in row(name, "R04")
    assert total["actual_eur"] in row(name, "R13")

    assert "EUR 18,400" in text(name, "controller_notes.md") and "18400" in row(name, "R03")
    actual["Marketing"] -= 18_400
    spent, variance = sum(actual.values()), sum(actual.values()) - sum(budget.values())
    assert f"EUR {spent}" in row(name, "R01")
    assert f"EUR {variance} ({rounded(100 * variance / sum(budget.values()))} % of budget)" in row(name, "R02")
    off = {department: actual[department] - budget[department] for department in budget}
    share = {department: 100 * off[department] / budget[department] for department in budget}
    for department in budget:
        assert f"{department} {off[department]:+} ({rounded(share[department])} %" in row(name, "R05")
    material = [d for d in off if abs(share[d]) > 5 and abs(off[d]) > 10_000]
    assert material == ["Marketing", "Support"]
    assert abs(share["Engineering"]) < 5 and abs(off["Facilities"]) < 10_000


def test_supplier_comparison() -> None:
    name = "supplier-comparison"
    quillmoor, zephyrine, oakentide = table(name, "quotes.csv")
    units, usd = 1200, Decimal("1.10")
    assert "1 EUR = 1.10 USD" in text(name, "requirements.md") and "USD 6.50 a unit" in text(name, "emails.txt")
    cost = {
        "quillmoor": units * Decimal(quillmoor["unit_price"]) * Decimal("0.96") + 2400,
        "zephyrine": (units * (Decimal(zephyrine["unit_price"]) + Decimal("6.50")) + 4100) / usd,
        "oakentide": units * (Decimal(oakentide["unit_price"]) + Decimal("1.50")),
    }
    for supplier, amount in cost.items():
        assert f"EUR {rounded(amount, '1')}" in row(name, f"cost-{supplier}")
    assert f"USD {rounded(cost['zephyrine'] * usd, '1')}" in row(name, "cost-zephyrine")
    assert f"EUR {190_000 - rounded(cost['quillmoor'], '1')}" in row(name, "headroom")

    order = date(2026, 8, 3)
    unit = {"days": 1, "weeks": 7}
    days = [int(q["lead_time"]) * unit[q["lead_time_unit"]] for q in (quillmoor, zephyrine, oakentide)]
    arrivals = [order + timedelta(n) for n in days]
    for supplier, day in zip(("Quillmoor", "Zephyrine", "Oakentide"), arrivals, strict=True):
        assert f"{day.day} {day:%B %Y} for {supplier}" in row(name, "arrival")
    assert [day <= date(2026, 9, 30) for day in arrivals] == [True, True, False]
    assert date.fromisoformat(quillmoor["quote_valid_until"]) == date(2026, 7, 31) < order
    assert date.fromisoformat(zephyrine["quote_valid_until"]) > order


def test_monthly_sales_report() -> None:
    name = "monthly-sales-report-zh"
    net: dict[tuple[str, str, str], Decimal] = {}
    returned: dict[tuple[str, str, str], Decimal] = {}
    missing = []
    for line in table(name, "销售明细.csv"):
        key = (line["月份"], line["区域"], line["产品线"])
        if not line["销售额"]:
            missing.append((*key, line["销量_台"]))
            continue
        unit = {"元": Decimal(1), "万元": Decimal(10_000)}[line["单位"]]
        sales, back = Decimal(line["销售额"]) * unit, Decimal(line["退货额"]) * unit
        net[key], returned[key] = sales - back, back / sales
    assert missing == [("2026-06", "西南", "商用", "36")]

    def total(month: str, region: str = "") -> Decimal:
        confirmed = {key: value for key, value in net.items() if key[1:] != ("西南", "商用")}
        return sum((v for (m, r, _), v in confirmed.items() if m == month and region in ("", r)), Decimal())

    june = total("2026-06")
    assert f"{rounded(june / 10_000)} 万元" in row(name, "R01")
    change = [100 * (june / total(month) - 1) for month in ("2026-05", "2025-06")]
    assert f"环比为 {rounded(change[0]):+}%，同比为 {rounded(change[1]):+}%" in row(name, "R02")
    for region, label in {"华东": "华东", "华南": "华南", "华北": "华北", "西南": "西南家用"}.items():
        assert f"{label} {rounded(total('2026-06', region) / 10_000)} 万元" in row(name, "R05")
    for line in table(name, "区域目标.csv"):
        reached = 100 * total("2026-06", line["区域"]) / Decimal(line["净销售额目标_元"])
        assert (f"{line['区域']} {rounded(reached)}%" in row(name, "R06")) == (line["区域"] != "西南")
    south = rounded(100 * (total("2026-06", "华南") / total("2026-05", "华南") - 1))
    before, now = (rounded(100 * returned[month, "华南", "家用"]) for month in ("2026-05", "2026-06"))
    assert f"环比 {south}%，家用退货率从 {before}% 升到 {now}%" in row(name, "R07")
    whole_may = sum(v for (m, r, _), v in net.items() if (m, r) == ("2026-05", "西南"))
    assert f"环比 {rounded(100 * (total('2026-06', '西南') / whole_may - 1))}%" in row(name, "R12")
    assert f"完成率 {rounded(100 * total('2026-06', '西南') / 1_350_000)}%" in row(name, "R12")


def test_meeting_action_list() -> None:
    name = "meeting-action-list"
    meeting = date(2026, 6, 9)
    assert f"{meeting:%A}, 9 June 2026" in text(name, "minutes.txt")
    thursday, friday = (meeting + timedelta(n) for n in (2, 3))
    assert (f"{thursday:%A}", f"{friday:%A}") == ("Thursday", "Friday")
    due = {
        "A1": meeting,
        "A2": thursday,
        "A3": friday,
        "A4": meeting + timedelta(weeks=2),
        "A5": meeting + timedelta(2),
        "A6": date(2026, 6, 30),
    }
    for identity, day in due.items():
        assert f"due {day}." in row(name, identity)
    assert "Saturday 4 July 2026" in row(name, "D1") and f"{date(2026, 7, 4):%A}" == "Saturday"


def test_contract_summary() -> None:
    name = "contract-summary-zh"
    contract = text(name, "仓储服务合同.md")
    terms = ["每月人民币 38,000 元", "上调 4%", "合计人民币 1,368,000 元", "至 2029 年 2 月 28 日", "至少 90 日"]
    for term in [*terms, "每日万分之五"]:
        assert term in contract
    years = [12 * 38_000 * Decimal("1.04") ** year for year in range(3)]
    assert f"{sum(years).normalize()} 元" in row(name, "R01")
    assert f"{36 * 38_000}" in row(name, "R02") and 36 * 38_000 == 1_368_000
    last = date(2029, 2, 28) - timedelta(90)
    assert f"{last.year} 年 {last.month} 月 {last.day} 日" in row(name, "R03")
    assert f"{38_000 * Decimal('0.0005') * 20:.0f} 元" in row(name, "R04")


def test_incident_postmortem() -> None:
    name = "incident-postmortem"
    events = re.findall(r"^(\S+Z) (\w+) +(.*)$", text(name, "service.log"), re.MULTILINE)
    times = [(datetime.fromisoformat(stamp), kind, what) for stamp, kind, what in events]
    first = next(when for when, kind, _ in times if kind == "error")
    page = next(when for when, kind, _ in times if kind == "alert")
    end = next(when for when, _, what in times if what.startswith("queue empty"))
    length, wait = (round((moment - first) / timedelta(minutes=1)) for moment in (end, page))
    assert f"{length} minutes, from {first:%H:%M} to {end:%H:%M} UTC" in row(name, "length")
    assert f"{wait} minutes" in row(name, "detection")
    spans = [line for line in table(name, "requests.csv") if "09:10" <= line["interval_start_utc"][11:16] <= "10:20"]
    failed, asked = (sum(int(line[key]) for line in spans) for key in ("failed", "requests"))
    assert f"{failed} failed requests of {asked} are given, {rounded(100 * failed / asked)} %" in row(name, "requests")
    chat = text(name, "chat.txt")
    [heard] = re.findall(r"at about (\d\d:\d\d)", chat)
    complaints = datetime.strptime(heard, "%H:%M") - timedelta(hours=1)
    assert f"about {complaints:%H:%M} UTC, before the page at {page:%H:%M}" in row(name, "complaints-first")
    assert f"{complaints:%H:%M}" < f"{page:%H:%M}"


COUNTRIES = {
    "germany": "DE",
    "deutschland": "DE",
    "united kingdom": "GB",
    "uk": "GB",
    "france": "FR",
    "switzerland": "CH",
    "ch": "CH",
}
DIALLING = {"DE": "49", "GB": "44", "FR": "33", "CH": "41"}


def clean_contacts() -> tuple[list[dict[str, str]], dict[int, str]]:
    """The rules of contact-cleanup, once more."""
    kept: dict[str, dict[str, str]] = {}
    rejected: dict[int, str] = {}
    for raw in table("contact-cleanup", "contacts_raw.csv"):
        contact = {key: value.strip() for key, value in raw.items()}
        number = int(contact["row"])
        contact["email"] = contact["email"].lower()
        if not re.fullmatch(r"[^@\s]+@[^@\s]*\.[^@\s]*", contact["email"]):
            rejected[number] = "invalid email"
            continue
        contact["country"] = COUNTRIES[contact["country"].lower()]
        code, digits = DIALLING[contact["country"]], contact["phone"].replace(" ", "")
        contact["phone"] = digits if digits.startswith("+") else f"+{code}{digits.removeprefix('0')}"
        day, month, year = map(int, contact["joined"].split("/"))
        try:
            contact["joined"] = date(year, month, day).isoformat()
        except ValueError:
            rejected[number] = "invalid date"
            continue
        other = kept.get(contact["email"])
        if other and other["updated"] > contact["updated"]:
            rejected[number] = "duplicate"
            continue
        if other:
            rejected[int(other["row"])] = "duplicate"
        kept[contact["email"]] = contact
    return [kept[email] for email in sorted(kept)], dict(sorted(rejected.items()))


def as_csv(header: str, lines: Iterator[list[str]]) -> str:
    return "\n".join([header, *(",".join(line) for line in lines)]) + "\n"


def test_contact_cleanup() -> None:
    name = "contact-cleanup"
    kept, rejected = clean_contacts()
    header = "name,email,phone,country,joined,updated"
    expected = {
        "contacts_clean.csv": as_csv(header, ([contact[key] for key in header.split(",")] for contact in kept)),
        "rejected.csv": as_csv("row,reason", ([str(number), reason] for number, reason in rejected.items())),
    }
    good = written_files(INSTANCES / name / "recordings/good.json")
    for file, content in expected.items():
        assert (INSTANCES / name / "tests/expected_output" / file).read_text("utf-8") == content
        assert good[f"output/{file}"] == content
    assert header in row(name, "R01") and "exactly eight contacts" in row(name, "R01") and len(kept) == 8
    by_email = {contact["email"].split("@")[0]: contact for contact in kept}
    buy, desk = by_email["buy"], by_email["desk"]
    assert f"{buy['name']} for {buy['email']} (updated {buy['updated']})" in row(name, "R02")
    assert f"{desk['name']} for {desk['email']} with the phone {desk['phone']}" in row(name, "R03")
    assert f"(updated {desk['updated']})" in row(name, "R03")
    for who in ("accounts", "buy", "export", "reception"):
        assert f"{by_email[who]['phone']} for {who}" in row(name, "R04")
    for who in ("desk", "reception"):
        assert f"{by_email[who]['joined']} for {by_email[who]['email']}" in row(name, "R05")
    assert by_email["night"]["country"] == "DE"
    assert [number for number, reason in rejected.items() if reason == "invalid email"] == [4, 6, 12]
    assert [number for number, reason in rejected.items() if reason == "duplicate"] == [2, 7]
    assert rejected[10] == "invalid date"
    assert f"14 rows read, {len(kept)} kept and {len(rejected)} rejected" in row(name, "R10")


def test_refund_answer_chat() -> None:
    name = "refund-answer-chat"
    order = json.loads(text(name, "order.json"))
    kettle, pillow, frame, lamp = order["items"]
    delivered, announced = (date.fromisoformat(order[key]) for key in ("delivered_on", "return_announced_on"))
    assert f"{(announced - delivered).days} days since the delivery on 2 May, 30 are allowed" in row(name, "R05")
    assert (announced - date.fromisoformat(order["ordered_on"])).days > 30 > (announced - delivered).days
    withheld = rounded(Decimal(str(kettle["price_eur"])) * Decimal("0.15"), "0.01")
    assert f"EUR {rounded(kettle['price_eur'], '0.01') - withheld}" in row(name, "R01")
    assert f"15 % (EUR {withheld})" in row(name, "R02")
    assert frame["sale"] and f"EUR {rounded(frame['price_eur'], '0.01')}" in row(name, "R03")
    assert pillow["state"] == "seal broken" and not lamp["return"]
    assert sum(item["price_eur"] for item in order["items"]) >= 100
    assert f"EUR {rounded(order['shipping_fee_eur'], '0.01')}" in row(name, "R07")


def test_reorder_point() -> None:
    name = "reorder-point-zh"
    parameters = json.loads(text(name, "参数.json"))
    weeks = table(name, "周出库.csv")
    demand = [int(week["出库量_箱"]) for week in weeks if not week["备注"]]
    assert [week["周次"] for week in weeks if week["备注"] == "门店促销"] == ["6"] and len(demand) == 11

    def point(deviation: Callable[[list[int]], float]) -> float:
        lead = parameters["提前期_周"]
        return mean(demand) * lead + parameters["服务系数_z"] * deviation(demand) * sqrt(lead)

    exact = point(stdev)
    assert f"{ceil(exact)} 箱（{rounded(exact, '0.01')} 向上取整）" in row(name, "R01")
    assert str(ceil(exact)) == Instance.load(INSTANCES / name).answer != str(ceil(point(pstdev)))
    assert f"{rounded(mean(demand), '0.01')} 箱（{sum(demand)} ÷ 11）" in row(name, "R03")
    stock = parameters["服务系数_z"] * stdev(demand) * sqrt(parameters["提前期_周"])
    assert f"{rounded(stdev(demand), '0.01')}，安全库存为 {rounded(stock, '0.01')} 箱" in row(name, "R04")
    position = parameters["现有库存_箱"] + parameters["在途_箱"]
    assert f"{position} 箱" in row(name, "R05") and position < exact
    multiple = parameters["订货倍数_箱"]
    wanted = max(parameters["目标库存_箱"] - position, parameters["最小订货量_箱"])
    assert f"下单量为 {ceil(wanted / multiple) * multiple} 箱" in row(name, "R06")


@pytest.mark.parametrize(("quality", "right"), [("good", True), ("medium", False), ("poor", False)])
def test_the_boxed_answer_is_right_in_the_good_recording_only(quality: str, right: bool) -> None:
    path: Path = INSTANCES / "reorder-point-zh" / "recordings" / f"{quality}.json"
    [boxed] = re.findall(r"\\boxed\{(\d+)\}", recording(path)["turns"][-1]["content"])
    assert (boxed == Instance.load(path.parents[1]).answer) == right


def test_cash_forecast_repair() -> None:
    name = "cash-forecast-repair"
    book = load_workbook(INSTANCES / name / "environment/inputs/forecast.xlsx")
    assumed, sheet = {row[0].value: row[1].value for row in book["Assumptions"].iter_rows()}, book["Forecast"]
    assert sheet["E9"].value == "=SUM(E4:E7)" and sheet["F9"].value == "=SUM(F4:F8)"
    assert sheet["G3"].value == 95000 and sheet["F3"].value == "=E3*(1+Assumptions!$B$3)"
    assert sheet["E7"].value * 1000 == 29900
    assert "EUR 6,200 to EUR 6,600 a month from 1 April" in text(name, "notes.md")
    cash, receipts = float(assumed["Opening cash, EUR"]), float(sheet["B3"].value)
    closing = {}
    for column in "BCDEFG":
        rent, vat = (6600 if column in "EFG" else 6200), 29900 if column == "E" else sheet[f"{column}7"].value
        paid = sheet[f"{column}4"].value + rent + receipts * assumed["Suppliers, share of receipts"] + vat
        cash += receipts - paid - sheet[f"{column}8"].value
        closing[sheet[f"{column}1"].value] = cash
        receipts *= 1 + assumed["Growth of receipts a month"]
    month = min(closing, key=lambda month: closing[month])
    assert month == "Apr 2027" and f"EUR {rounded(closing[month], '0.01')}" in row(name, "R07")
    minimum = assumed["Agreed minimum, EUR"]
    assert [month for month in closing if closing[month] < minimum] == ["Apr 2027"] and f"EUR {minimum}" in row(
        name, "R08"
    )


def test_travel_policy_revision() -> None:
    name = "travel-policy-revision"
    document = Document(str(INSTANCES / name / "environment/inputs/travel_policy.docx"))
    policy = "\n".join(paragraph.text for paragraph in document.paragraphs)
    decided = text(name, "decisions.md")
    limits = {cells[0].text: cells[1].text for cells in (line.cells for line in document.tables[0].rows)}
    assert limits["Hotel night"] == "120" and policy.count("EUR 120") == 1 and policy.count("14 days") == 2
    assert f"three full days earn EUR {3 * int(limits['Daily allowance, full day'])}" in policy
    assert "full day is EUR 32" in decided and f"EUR {3 * 32}" in row(name, "R05")
    assert "decision 4 is withdrawn" in decided and "EUR 0.45" in row(name, "R11")
    assert "Zurich" in decided and not re.search(r"Zurich[^.]*\d", decided)


def test_meeting_notice() -> None:
    name = "meeting-notice-zh"
    _, *people = load_workbook(INSTANCES / name / "environment/inputs/参会名单.xlsx")["名单"].iter_rows(
        values_only=True
    )
    coming = {person: (room, meal) for person, room, _, meal, remark in people if remark not in ("请假", "已离职")}
    rooms, meals = Counter(room for room, _ in coming.values()), Counter(meal for _, meal in coming.values())
    assert f"{len(coming)}人" in row(name, "R03")
    assert all(f"{room}{number}人" in row(name, "R08") for room, number in rooms.items())
    assert all(f"{meal}{number}份" in row(name, "R09") for meal, number in meals.items())
    wanted = Document(str(INSTANCES / name / "environment/inputs/会议要求.docx"))
    assert "2027年3月18日（星期三）" in "".join(paragraph.text for paragraph in wanted.paragraphs)
    assert date(2027, 3, 18).isoweekday() == 4 and "星期四" in row(name, "R10")
