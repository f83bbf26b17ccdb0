"""A stored number as a spreadsheet shows it, for the formats that people use; in doubt the number as it is stored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

_BY_NUMBER = """1 0|2 0.00|3 #,##0|4 #,##0.00|9 0%|10 0.00%|11 0.00E+00|14 yyyy-mm-dd|15 d-mmm-yy|16 d-mmm|17 mmm-yy
18 h:mm AM/PM|19 h:mm:ss AM/PM|20 h:mm|21 h:mm:ss|22 yyyy-mm-dd h:mm|37 #,##0;-#,##0|38 #,##0;-#,##0
39 #,##0.00;-#,##0.00|40 #,##0.00;-#,##0.00|45 mm:ss|46 [h]:mm:ss|47 mm:ss.0|48 0.0E+0|49 @"""
BUILT_IN: Mapping[int, str] = {
    int(number): code
    for number, _, code in (entry.partition(" ") for entry in _BY_NUMBER.replace("\n", "|").split("|"))
}
"""Formats that files name by number alone (ECMA-376 18.8.30); where they follow the machine's language, ISO dates."""

LARGEST = 300
"""Decimal exponent up to which a number is one that spreadsheets hold."""

_QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.')
_BRACKETED = re.compile(r"\[([^\]]*)\]")
_CURRENCY = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]")
_DATE = re.compile(r"[ymdhs]|AM/PM", re.IGNORECASE)
_NUMBER = re.compile(r"[#0?][#0?,]*(?:\.([#0?]*))?")


def shown(value: str, code: str, *, epoch_1904: bool = False) -> str:
    """The number `value` under the format `code`; dates and times in ISO form."""
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite() or number.adjusted() > LARGEST:
        return value
    sections = code.split(";")
    section = sections[1] if number < 0 and len(sections) > 1 else sections[0]
    if number == 0 and len(sections) > 2:
        section = sections[2]
    kind, before, after, places, grouped, percent = _plan(section)
    if kind == "date":
        return _date(number, section, epoch_1904) or value
    if kind != "number":
        return _general(number, value)
    if percent:
        number *= 100
    if number < 0 and len(sections) > 1:
        number = -number  # a section of its own says how negative numbers look
    try:
        rounded = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    except InvalidOperation:
        return value
    sign = "-" if rounded < 0 else ""
    return f"{sign}{before}{abs(rounded):{',' if grouped else ''}f}{after}"


@lru_cache(1000)
def _plan(section: str) -> tuple[str, str, str, int, bool, bool]:
    """Kind of the section, what stands before and after the number, decimal places, grouping, percent."""
    plain = _BRACKETED.sub(lambda m: "h" if re.fullmatch(r"[hms]+", m[1], re.I) else "", _QUOTED.sub("", section))
    if _DATE.search(plain) and "General" not in plain:
        return "date", "", "", 0, False, False
    found = _NUMBER.search(plain)
    if found is None or "E" in plain or "/" in plain or "@" in plain or found[0].endswith(","):
        return "general", "", "", 0, False, False
    text = _CURRENCY.sub(lambda m: m[1], section)
    text = _QUOTED.sub(lambda m: m[0].strip('"') if m[0][0] == '"' else m[0][1] if m[0][0] == "\\" else "", text)
    text = _BRACKETED.sub("", text)
    start = _NUMBER.search(text)
    before, after = (text[: start.start()].strip(), text[start.end() :].rstrip()) if start else ("", "")
    return "number", before, after, len(found[1] or ""), "," in found[0], "%" in plain


def _general(number: Decimal, value: str) -> str:
    """Eleven digits, as a cell without a format shows them: 0.1 + 0.2 is stored as 0.30000000000000004."""
    if "." not in value and "e" not in value.lower():
        return value
    text = f"{float(number):.11g}"
    return text if "e" not in text else f"{float(number):.6g}"


def _date(number: Decimal, section: str, epoch_1904: bool) -> str | None:
    days = float(number)
    code = _BRACKETED.sub("", _QUOTED.sub("", section)).lower()
    elapsed = re.search(r"\[h+\]", section.lower())
    seconds = round(days * 86400)
    if elapsed:
        return f"{seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    if not 0 <= days < 2_958_466:
        return None
    if not epoch_1904 and days < 60:
        days += 1  # day 60 is 29 February 1900, which there never was
    start = datetime(1904, 1, 1) if epoch_1904 else datetime(1899, 12, 30)
    moment = start + timedelta(seconds=round(days * 86400))
    has_date = bool(re.search(r"[yd]", code)) or ("m" in code and not re.search(r"[hs]", code))
    has_time = bool(re.search(r"[hs]", code))
    time = moment.strftime("%H:%M:%S") if "s" in code else moment.strftime("%H:%M")
    return " ".join(filter(None, (moment.strftime("%Y-%m-%d") if has_date else "", time if has_time else "")))
