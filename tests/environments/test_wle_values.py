"""Every figure and date that harbor-wle's rubrics ask for, worked out again from the input files and the calendar."""

from __future__ import annotations

import csv
import re
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import permutations
from zoneinfo import ZoneInfo

import pytest

from rubric_env.harbor import Instance
from tests.environments.shipped import ENVIRONMENTS

INSTANCES = ENVIRONMENTS["harbor_wle"]
CENT = Decimal("0.01")


def table(name: str, file: str) -> list[dict[str, str]]:
    with (INSTANCES / name / "environment/inputs" / file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def text(name: str, file: str) -> str:
    return " ".join((INSTANCES / name / "environment/inputs" / file).read_text("utf-8").split())


def row(name: str, identity: str) -> str:
    """A row's text with its levels, without thousands separators."""
    found = Instance.load(INSTANCES / name).spec[identity]
    return re.sub(r"(?<=\d),(?=\d{3})", "", " ".join([found.description, *(found.levels or {}).values()]))


def cents(value: Decimal) -> Decimal:
    return value.quantize(CENT, ROUND_HALF_UP)


def at(day: date, clock: str, zone: str) -> datetime:
    return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=ZoneInfo(zone))


def test_family_call() -> None:
    name = "family-call-chat"
    shown = {date(2026, 3, 22): "R01", date(2026, 3, 29): "R02", date(2026, 4, 5): "R04"}
    for sunday, identity in shown.items():
        assert f"{sunday:%A}" == "Sunday"
        monday = at(sunday + timedelta(1), "07:00", "Australia/Sydney")
        london, toronto = (monday.astimezone(ZoneInfo(zone)) for zone in ("Europe/London", "America/Toronto"))
        assert f"{london:%H:%M} in London" in row(name, identity)
        assert "10:00" <= f"{toronto:%H:%M}" <= "19:00" and london.date() == toronto.date() == sunday
        assert (f"{london:%H:%M}" > "21:30") == (identity == "R04")
        if identity != "R04":
            assert f"{toronto:%H:%M} in Toronto" in row(name, identity)
    way_out = at(date(2026, 4, 5), "21:30", "Europe/London").astimezone(ZoneInfo("Australia/Sydney"))
    assert f"21:30 in London with {way_out:%H:%M} in Sydney" in row(name, "R07")
    offsets = [at(date(2026, 3, day), "12:00", "Europe/London").utcoffset() for day in (28, 29)]
    assert offsets == [timedelta(0), timedelta(hours=1)] and "29 March" in row(name, "R05")
    before, after = (at(date(2026, 4, day), "12:00", "Australia/Sydney").utcoffset() for day in (4, 5))
    assert before and after and before - after == timedelta(hours=1) and "5 April" in row(name, "R06")


def test_medicine_leaflet() -> None:
    name = "medicine-leaflet-chat"
    thursday = date(2026, 5, 7)
    monday = thursday - timedelta(thursday.weekday())
    assert f"{thursday:%A}" == "Thursday" and (thursday - monday).days + 1 == 4
    leaflet = text(name, "leaflet_dolvane.md")
    assert "at most three tablets in 24 hours" in leaflet and "more than three days in a row" in leaflet
    assert "Thursday is the fourth day" in row(name, "R05")


def test_gas_bill() -> None:
    name = "gas-bill-chat"
    factor = Decimal("0.962") * Decimal("11.20")
    start, turn, end = (int(line["reading_m3"]) for line in table(name, "readings.csv"))
    days = (date(2028, 2, 29) - date(2027, 12, 1)).days + 1

    def total(closing: int, days: int) -> tuple[Decimal, Decimal, Decimal]:
        """Net amount and kWh of the second line, and the total."""
        kwh = [(cubic * factor).quantize(Decimal(1), ROUND_HALF_UP) for cubic in (turn - start, closing - turn)]
        lines = [cents(kwh[0] * Decimal("0.098")), cents(kwh[1] * Decimal("0.106")), cents(days * Decimal("0.42"))]
        return kwh[1], lines[1], sum(lines) + cents(sum(lines) * Decimal("0.19"))

    _, _, billed = total(4487, 92)
    kwh, amount, right = total(end, days)
    assert f"Total EUR {billed}" in text(name, "bill.txt")
    assert f"EUR {billed - right} too high: EUR {right} instead of EUR {billed}" in row(name, "R01")
    assert Instance.load(INSTANCES / name).answer == str(billed - right)
    assert f"{4487 - end} m³ too many" in row(name, "R02") and str(end) in row(name, "R02")
    assert f"{days} days" in row(name, "R03")
    assert f"{kwh} kWh and EUR {amount}" in row(name, "R04")
    assert f"EUR {cents(days * Decimal('0.42'))}" in row(name, "R05")
    assert f"EUR {right - 750}" in row(name, "R06")
    assert f"factor {factor.normalize()}" in row(name, "R07")
    assert f"{date(2028, 3, 10) + timedelta(weeks=6):%d %B %Y}" in row(name, "R09")


def minutes(clock: str) -> int:
    hours, rest = clock.split(":")
    return int(hours) * 60 + int(rest)


def clock(value: int) -> str:
    return f"{value // 60:02}:{value % 60:02}"


def test_island_weekend() -> None:
    name = "island-weekend"
    friday = date(2026, 5, 1)
    assert (f"{friday:%A}", friday.day) == ("Friday", 1)
    buses = table(name, "bus_40.csv")
    crossing, behind = 75, 60

    def ferries(port: str) -> list[int]:
        return [minutes(line["departs"]) for line in table(name, "ferry.csv") if line["from"] == port]

    # Out: the first ferry whose gate is reached by a bus that runs on holidays, after the train at 08:25.
    out = [bus for bus in buses if bus["days"].startswith("Sunday") and bus["from"] == "station"]
    ferry, bus = min(
        (ferry, bus["departs"])
        for bus in out
        for ferry in ferries("mainland")
        if bus["departs"] > "08:25" and minutes(bus["arrives"]) + 10 <= ferry - 30
    )
    assert f"bus at {bus} and ferry at {clock(ferry)}" in row(name, "R01")
    assert f"{clock(ferry + crossing - behind)} island time" in row(name, "R03")
    # Back: the last ferry from which a bus gets to the station before 17:20.
    back = [bus for bus in buses if bus["days"] == "Saturday" and bus["from"] == "harbour"]
    ferry, bus, arrival = max(
        (ferry, bus["departs"], bus["arrives"])
        for bus in back
        for ferry in ferries("Hallow")
        if ferry + behind + crossing + 15 <= minutes(bus["departs"]) and bus["arrives"] < "17:20"
    )
    assert f"ferry at {clock(ferry)} island time" in row(name, "R04")
    assert f"{clock(ferry + behind + crossing)} mainland time" in row(name, "R04")
    assert f"bus at {bus}, at the station at {arrival}" in row(name, "R05")
    tours = [start for start in ("11:00", "12:00") if minutes(start) + 45 + 20 <= ferry - 30]
    assert tours == ["11:00"] and "Saturday at 11:00" in row(name, "R06")
    birthday = date(2020, 5, 2)
    assert birthday.replace(year=2026) == friday + timedelta(1) and "turns 6 on that day" in row(name, "R09")
    costs = [2 * 14.0, 2 * 14.0 + 7, 2 * 9.6, 2 * 4.0 + 2, 96 + 2 * 1.5]
    for amount in [*costs, sum(costs)]:
        assert f"EUR {amount:.2f}" in row(name, "R08")
    assert sum(costs) <= 200


def test_deposit_letter() -> None:
    name = "deposit-letter"
    claimed = [int(amount) for amount in re.findall(r": EUR (\d+)", text(name, "landlord_email.txt"))]
    assert claimed == [280, 210, 95, 55]
    assert f"EUR {sum(claimed)}, not EUR 650" in row(name, "R07") and 1450 - 650 == 800
    assert f"EUR {1450 - (45 + 55) - 800}" in row(name, "R01")
    due = date(2026, 1, 31) + timedelta(30)
    assert f"{due.day} {due:%B %Y}" in row(name, "R08")
    easter = date(2026, 4, 5)
    last = date(2026, 3, 20) + timedelta(14)
    while last.weekday() > 4 or last in (easter - timedelta(2), easter + timedelta(1)):
        last += timedelta(1)
    assert f"{last:%A}, {last.day} {last:%B %Y}" in row(name, "R02")
    assert (2026 - 2024) * 12 + 1 - 3 + 1 == 23 and "23 months" in row(name, "R04")


def test_electricity_question() -> None:
    name = "electricity-question-zh"
    bills = table(name, "电费账单.csv")
    days, kwh, price = [], [], []
    for bill in bills:
        days.append((date.fromisoformat(bill["抄表止"]) - date.fromisoformat(bill["抄表起"])).days + 1)
        kwh.append(used := int(bill["用电量_度"]))
        price.append(cents(230 * Decimal("0.52") + (used - 230) * Decimal("0.57")))
        assert str(price[-1]) == bill["电费_元"] and 230 < used <= 400
    assert f"7 月 {days[0]} 天，8 月 {days[1]} 天" in row(name, "R01")
    before, after = (cents(Decimal(used) / length) for used, length in zip(kwh, days, strict=True))
    assert f"从 {before} 度变为 {after} 度" in row(name, "R02") and after < before
    assert f"从 {price[0]} 元到 {price[1]} 元，多 {price[1] - price[0]} 元，主要因为多了 {days[1] - days[0]} 天" in row(
        name, "R03"
    )


def test_used_car_contract() -> None:
    name = "used-car-contract-zh"
    assert date(2026, 5, 16).weekday() == 5
    contract, advert = text(name, "转让协议.md"), text(name, "卖家广告.txt")
    assert "68,000 元" in contract and "定金 20,000 元" in contract and "6.8 万公里" in contract
    cap = 68_000 // 5
    assert f"上限 {cap} 元" in row(name, "R06") and f"{20_000 - cap} 元没有定金效力" in row(name, "R06")
    *_, last = records = table(name, "维保记录.csv")
    assert f"{last['里程_公里']} 公里" in row(name, "R02") and int(last["里程_公里"]) > 68_000
    [crash] = [record["日期"] for record in records if record["项目"].startswith("事故")]
    assert crash == "2024-06-17" and "2024 年 6 月 17 日" in row(name, "R03") and "无事故" in advert


def test_family_dinners() -> None:
    name = "family-dinners-zh"
    goods = {line["食材"]: line for line in table(name, "食材.csv")}
    dishes = table(name, "菜谱.csv")
    purine = {dish["菜名"]: int(dish["嘌呤_毫克每人"]) for dish in dishes}
    parts = {dish["菜名"]: re.findall(r"([^、\d]+?)(?: (\d+) 克)?(?:、|$)", dish["用料（四人份）"]) for dish in dishes}

    def safe(dish: str) -> bool:
        made = " ".join(f"{part} {goods[part]['配料或备注'] if part in goods else ''}" for part, _ in parts[dish])
        return not re.search("花生|乳糖|牛奶", made)

    meats, greens, staples = (
        [d["菜名"] for d in dishes if d["类别"] == kind and safe(d["菜名"]) and purine[d["菜名"]] < 150]
        for kind in ("荤", "素", "主食")
    )
    assert meats == ["番茄炖牛腩", "清蒸鲈鱼", "香菇滑鸡"] and len(greens) == 3 and staples == ["米饭"]
    assert all(meat in row(name, "R01") for meat in meats)
    plans = [dict(zip(meats, order, strict=True)) for order in permutations(greens)]
    fit = [plan for plan in plans if all(purine[m] + purine[g] + purine["米饭"] <= 150 for m, g in plan.items())]
    assert len(fit) == 2 and {plan["清蒸鲈鱼"] for plan in fit} == {"蒜蓉西兰花"}
    assert f"{purine['清蒸鲈鱼'] + purine['蒜蓉西兰花'] + purine['米饭']} 毫克" in row(name, "R04")
    assert date(2026, 6, 3).weekday() == 2 and "周三" in row(name, "R02")

    def cost(part: str, grams: int, kilos: bool = True) -> Decimal:
        unit = 1000 if kilos and goods[part]["计价单位"] == "每公斤" else 500
        return Decimal(goods[part]["单价_元"]) * grams / unit

    basket = [(part, int(g)) for dish in [*meats, *greens, *staples * 3] for part, g in parts[dish] if g]
    total, naive = (sum(cost(part, grams, kilos) for part, grams in basket) for kilos in (True, False))
    assert f"合计 {total:.1f} 元" in row(name, "R05") and total <= 120 < naive
    assert f"{cost('鲈鱼', 700):.1f} 元" in row(name, "R07")
    for part in ("牛腩", "鲈鱼", "鸡腿肉", "大米"):
        assert f"{part} {sum(grams for p, grams in basket if p == part)} 克" in row(name, "R06")


def test_autumn_classes() -> None:
    name = "autumn-classes-zh"
    first, last = date(2026, 9, 19), date(2026, 10, 11)
    days = [first + timedelta(n) for n in range((last - first).days + 1)]
    weekly = {5: "游泳", 6: "围棋", 2: "钢琴"}
    lessons = {day: weekly[day.weekday()] for day in days if day.weekday() in weekly}
    counts = {lesson: list(lessons.values()).count(lesson) for lesson in weekly.values()}
    assert (
        f"{len(lessons)} 节兴趣班：游泳 {counts['游泳']} 节、围棋 {counts['围棋']} 节、钢琴 {counts['钢琴']} 节"
        in row(name, "R11")
    )
    closed = [date(2026, 9, 25), *(date(2026, 10, n) for n in (1, 2, 3))]
    away = [date(2026, 10, n) for n in (2, 3, 4, 5)]
    school = [date(2026, 9, 20), date(2026, 10, 10)]
    missed = [day for day in lessons if day not in closed and day in (*away, *school)]
    assert missed == [date(2026, 9, 20), date(2026, 10, 4), date(2026, 10, 10)]
    assert [day for day in lessons if day in closed] == [date(2026, 10, 3)]
    for day, begins in zip(missed, ("14:00", "14:00", "9:00"), strict=True):
        ask = day - timedelta(2)
        while ask in closed:
            ask, begins = ask - timedelta(1), "20:00"
        assert f"{day.month} 月 {day.day} 日的课最晚 {ask.month} 月 {ask.day} 日 {begins}" in row(name, "R04")
    assert [date(2026, 10, n).weekday() for n in (5, 6, 7)] == [0, 1, 2] and "上周一的课，16:30" in row(name, "R05")


def test_household_ledger() -> None:
    name = "household-ledger-zh"
    entries = {int(line["序号"]): line for line in table(name, "流水.csv")}
    yuan = {n: Decimal(e["金额"]) / (100 if e["单位"] == "分" else 1) for n, e in entries.items()}
    left_out = {3, 9, 10, 13, 15}
    with pytest.raises(ValueError):
        date.fromisoformat(entries[13]["日期"])
    assert entries[15]["日期"] > "2026-09-30" and yuan[3] == yuan[2] and "已报销" in entries[10]["备注"]
    budget = {line["类别"]: int(line["九月预算_元"]) for line in table(name, "预算.csv")}
    spent = {kind: Decimal(0) for kind in budget}
    for number, entry in entries.items():
        if number not in left_out:
            spent[entry["类别"]] += yuan[number]
    total, allowed = sum(spent.values()), sum(budget.values())
    assert f"{total:.2f} 元" in row(name, "R01")
    assert f"比预算 {allowed} 元少 {allowed - total:.2f} 元" in row(name, "R02")
    changed = total + yuan[13]
    assert f"合计为 {changed:.2f} 元，反而超预算 {changed - allowed:.2f} 元" in row(name, "R04")
    for kind, amount in spent.items():
        shown = f"{amount:.2f}".removesuffix(".00")
        assert f"{kind} {shown}" in row(name, "R07")
        over = f"{amount - budget[kind]:.2f}".removesuffix(".00")
        assert (f"{kind}超 {over} 元" in row(name, "R08")) == (amount > budget[kind])
