"""Reading verdicts out of judge replies: how many are right, wrong and lost, and how fast, beside what else there is.

    python benchmarks/parser.py [--quick] [--json]

Every reader gets the same cases (tests/data) and the same kindness: what it finds as JSON is read with the keys and
words below, rows under `verdicts`, in a list, or keyed by id. They differ in how they find it.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from verdict_parsers import parse_verdicts

DATA = Path(__file__).parent.parent / "tests" / "data"
FILES = (DATA / "vectors" / "parsing.jsonl", DATA / "parsing_own.jsonl")
KEYS = ("hit", "met", "criteria_met", "is_criteria_true", "verdict", "satisfied", "passed", "result", "score", "命中")
WORDS = {
    **dict.fromkeys(("true", "yes", "pass", "met", "satisfied", "是", "满足"), True),
    **dict.fromkeys(("false", "no", "fail", "not met", "unmet", "否", "未满足", "不满足"), False),
}
Case = dict[str, Any]
Reader = Callable[[Case], dict[str, bool]]


def ours(case: Case) -> dict[str, bool]:
    parsed = parse_verdicts(case["text"], case["ids"], case.get("texts"), case.get("marker"))
    return {name: verdict.hit for name, verdict in parsed.verdicts.items() if verdict.hit is not None}


def json_repair_alone(case: Case) -> dict[str, bool]:
    """Repair the whole text, believe what comes out."""
    import json_repair

    return verdicts_in(json_repair.loads(case["text"]), case["ids"])


def autorubric_style(case: Case) -> dict[str, bool]:
    """The reply is JSON or nothing (autorubric 1.6.1: a fence or a word of prose is a parse error)."""
    return verdicts_in(_loads(case["text"]), case["ids"])


_FENCE = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)
_OUTERMOST = re.compile(r"\{.*\}", re.DOTALL)


def rewardkit_style(case: Case) -> dict[str, bool]:
    """The text of a fence, else what lies between the first and the last brace (harbor-rewardkit 0.2.3)."""
    found = _FENCE.search(case["text"])
    text = found[1] if found else case["text"]
    braces = _OUTERMOST.search(text)
    return verdicts_in(_loads(braces[0] if braces else text), case["ids"])


def first_verdicts_object_reader() -> Reader | None:
    """verifiers v1's own reader; None where that verifiers is not installed."""
    try:
        from verifiers.v1.judges.rubric import first_verdicts_object
    except ImportError:
        return None
    return lambda case: verdicts_in(first_verdicts_object(case["text"]), case["ids"])


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def verdicts_in(value: Any, ids: Sequence[str]) -> dict[str, bool]:
    """Rows of a parsed answer, the last one of an id winning."""
    if isinstance(value, dict) and "verdicts" in value:
        value = value["verdicts"]
    if isinstance(value, dict):
        value = [{"id": key, **row} if isinstance(row, dict) else {"id": key, "hit": row} for key, row in value.items()]
    found: dict[str, bool] = {}
    for row in value if isinstance(value, list) else []:
        name = row.get("id") if isinstance(row, dict) else None
        if isinstance(name, str) and name in ids:
            word = next((row[key] for key in KEYS if key in row), None)
            hit = word if isinstance(word, bool) else WORDS.get(str(word).strip().lower())
            if hit is not None:
                found[name] = hit
    return found


@dataclass
class Count:
    """Over all rows of all cases. `lost`: unjudged although the text says it. `raised` counts cases."""

    correct: int = 0
    wrong: int = 0
    lost: int = 0
    silent: int = 0
    raised: int = 0


def count(reader: Reader, cases: Sequence[Case]) -> Count:
    total = Count()
    for case in cases:
        try:
            found = reader(case)
        except Exception:  # a reader that raises has read nothing: that is one of the things measured here
            total.raised += 1
            found = {}
        for name in case["ids"]:
            expected, got = case["expected"].get(name), found.get(name)
            if got is not None:
                total.correct += got == expected
                total.wrong += got != expected
            else:
                total.silent += expected is None
                total.lost += expected is not None
    return total


def replies() -> dict[str, Case]:
    """Replies of the size and the kinds that judges send."""
    ids = [f"R{n:02}" for n in range(8)]
    reason = "Sheet 2, cell B7 holds 1,204.50 EUR and the memo repeats it on page 3. " * 5
    rows = [
        {"id": name, "reason": reason, "evidence": "output/report.md#¶3", "hit": n % 3 > 0}
        for n, name in enumerate(ids)
    ]
    clean = json.dumps({"verdicts": rows})
    pretty = json.dumps({"verdicts": rows}, indent=2)
    stray = clean.replace("the memo", 'the "memo"')
    texts = {
        "JSON": clean,
        "fence and prose": f"I checked every row.\n\n```json\n{pretty}\n```\nDone.",
        "Python literals": repr({"verdicts": rows}),
        "stray quotes": stray,
        "cut": clean[: len(clean) * 3 // 4],
    }
    return {kind: {"text": text, "ids": ids} for kind, text in texts.items()}


def speed(reader: Reader, case: Case, seconds: float) -> float:
    """MB/s."""
    size, done = len(case["text"].encode()), 0
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds or not done:
        reader(case)
        done += size
    return done / 1e6 / spent if spent else float("inf")


WORST = (
    "[",
    "{",
    '"',
    "\\",
    "`",
    "|",
    "<think>",
    "</think>",
    '{"',
    "[{",
    '{"a":',
    '{"a" b}',
    '"{\\"',
    "\n",
    "|-|-|\n",
    "{a:1},",
)


def worst() -> tuple[str, float]:
    """The repetition, 256 kB long, that takes ours longest, and its CPU seconds."""
    timings = {}
    for unit in WORST:
        text = unit * (256_000 // len(unit))
        start = time.process_time()
        parse_verdicts(text, ["R1", "R2"])
        timings[unit] = time.process_time() - start
    slowest = max(timings, key=lambda unit: timings[unit])
    return slowest, timings[slowest]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="end within a minute")
    options.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    arguments = options.parse_args()

    cases = [json.loads(line) for file in FILES for line in file.read_text("utf-8").splitlines()]
    readers: dict[str, Reader | None] = {
        "verdict_parsers": ours,
        "json_repair alone": json_repair_alone,
        "verifiers v1 first_verdicts_object": first_verdicts_object_reader(),
        "autorubric-style": autorubric_style,
        "rewardkit-style": rewardkit_style,
    }
    samples = replies()
    figures: dict[str, Any] = {"cases": len(cases), "rows": sum(len(case["ids"]) for case in cases), "readers": {}}
    for name, reader in readers.items():
        if reader is not None:
            rates = {kind: speed(reader, case, 0.1 if arguments.quick else 1.0) for kind, case in samples.items()}
            figures["readers"][name] = {**vars(count(reader, cases)), "mb_per_s": rates}
    unit, seconds = worst()
    figures["worst_256_kb"] = {"unit": unit, "cpu_seconds": seconds}
    figures["missing"] = [name for name, reader in readers.items() if reader is None]
    if arguments.json:
        print(json.dumps(figures, ensure_ascii=False))
    else:
        show(figures, list(samples))


def show(figures: dict[str, Any], kinds: Sequence[str]) -> None:
    console = Console()
    counts = {"correct": "correct", "wrong": "wrong", "lost": "lost", "silent": "rightly silent", "raised": "raised"}
    verdicts = Table("reader", *counts.values(), title=f"{figures['rows']} rows in {figures['cases']} cases")
    rates = Table("reader", *kinds, title="MB/s, replies of 8 rows, about 4 kB")
    for name, row in figures["readers"].items():
        verdicts.add_row(name, *(str(row[key]) for key in counts))
        rates.add_row(name, *(f"{row['mb_per_s'][kind]:.1f}" for kind in kinds))
    console.print(verdicts, rates)
    slowest = figures["worst_256_kb"]
    console.print(
        f"256 kB of one thing: {slowest['unit']!r} takes ours longest, {slowest['cpu_seconds']:.2f} s of CPU."
    )
    for name in figures["missing"]:
        console.print(f"{name}: not installed here, left out.")


if __name__ == "__main__":
    main()
