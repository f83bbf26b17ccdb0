"""The demo's table: one line a rollout, from vf-eval's own results.jsonl."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from rubric_env.cli._common import cell, console, say

_CALL = re.compile(r"call_(\d+)_\d+_\d+")


@dataclass(frozen=True, slots=True)
class Rollout:
    """`score` is None when unscored; `seconds` of judging; `reused`: an equal answer of its group was asked instead.

    `faults` counts the rows without a verdict by kind; `causes` are their details, or why the rollout never was judged.
    """

    instance: str
    answer: str
    scored: bool
    score: float | None
    advantage: float
    coverage: float
    faults: str
    causes: tuple[str, ...]
    calls: int
    reused: bool
    tokens: int
    seconds: float


def read_rollouts(folder: Path, recordings: Sequence[Mapping[str, Any]]) -> list[Rollout]:
    """Every rollout that vf-eval saved below `folder`, instance by instance, best first."""
    rows = [_rollout(json.loads(line), recordings) for line in _lines(folder)]
    return sorted(rows, key=lambda row: (row.instance, -(row.score if row.score is not None else -1.0)))


def read_verdicts(folder: Path, recordings: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The judge's verdicts by row on each recorded answer that was played, by instance and answer."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in map(json.loads, _lines(folder)):
        result = row.get("judge_result") or {}
        if result.get("extra_fields", {}).get("judge_scored") and not result["extra_fields"]["delivery_missing"]:
            verdicts = {verdict["id"]: verdict for verdict in result["details"]["results"]}
            found.setdefault((_instance(row), _quality(row, recordings)), verdicts)
    return found


def _instance(row: Mapping[str, Any]) -> str:
    info = row.get("info") or {}
    info = json.loads(info) if isinstance(info, str) else info
    return str(info.get("name", row.get("example_id")))


def _lines(folder: Path) -> Iterator[str]:
    for path in folder.glob("**/results.jsonl"):
        # After a full disk or a kill, the last line may be cut: it has no line end yet.
        yield from path.read_text("utf-8", "replace").split("\n")[:-1]


def _rollout(row: Mapping[str, Any], recordings: Sequence[Mapping[str, Any]]) -> Rollout:
    metrics = row.get("metrics") or {}
    scored = bool(metrics.get("judge_scored"))
    rows = [str(item["fault"]) for item in _criteria(row) if item.get("fault")]
    causes = tuple(dict.fromkeys(rows)) or (() if scored else (_reason(row),))
    kinds = Counter(fault.partition(":")[0] for fault in rows)
    return Rollout(
        instance=_instance(row),
        answer=_quality(row, recordings),
        scored=scored,
        score=float(row.get("reward") or 0.0) if scored else None,
        advantage=float(metrics.get("judge_advantage", 0.0)),
        coverage=float(metrics.get("judge_coverage", 0.0)),
        faults=", ".join(f"{n} {kind}" for kind, n in kinds.most_common(2)) or "".join(causes).partition(":")[0],
        causes=causes,
        calls=int(metrics.get("judge_calls", 0)),
        reused=scored and not metrics.get("judge_called") and not metrics.get("delivery_missing"),
        tokens=int(metrics.get("judge_input_tokens", 0) + metrics.get("judge_output_tokens", 0)),
        seconds=float(metrics.get("judge_seconds", 0.0)),
    )


def _criteria(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = ((row.get("judge_result") or {}).get("details") or {}).get("criteria", ())
    return found


def _reason(row: Mapping[str, Any]) -> str:
    """Why a rollout has no row at all: what the judge says of it, else the error that ended it."""
    error = row.get("error") or {}
    judged = (row.get("judge_result") or {}).get("exit_reason")
    return str(judged or f"{error.get('error', 'no error saved')}: {error.get('error_chain_repr', '')}")


def _quality(row: Mapping[str, Any], recordings: Sequence[Mapping[str, Any]]) -> str:
    text = json.dumps(row.get("completion"), ensure_ascii=False)
    if found := _CALL.search(text):
        number = int(found.group(1))
        return str(recordings[number]["quality"]) if number < len(recordings) else ""
    last = next((m.get("content") for m in reversed(row.get("completion") or ()) if m.get("role") == "assistant"), None)
    matches = {str(r["quality"]) for r in recordings if (r["turns"][-1].get("content") or "") == (last or "")}
    return matches.pop() if len(matches) == 1 else ""


def summary(rows: Sequence[Rollout], folder: Path, agreement: str | None) -> dict[str, Any]:
    """The table as JSON."""
    scored = [row.score for row in rows if row.score is not None]
    return {
        "rollouts": [asdict(row) for row in rows],
        "mean_score": sum(scored) / len(scored) if scored else None,
        "unscored": len(rows) - len(scored),
        "results": str(folder),
        "local_judge_agreement": agreement,
    }


FIGURES: Mapping[str, tuple[int, Callable[[Rollout], str]]] = {
    "score": (7, lambda row: "-" if row.score is None else f"{row.score:.3f}"),
    "adv": (8, lambda row: f"{row.advantage:+.3f}"),
    "cover": (7, lambda row: f"{row.coverage:.0%}"),
    "calls": (7, lambda row: str(row.calls)),
    "tokens": (8, lambda row: str(row.tokens)),
    "s": (6, lambda row: f"{row.seconds:.1f}"),
}
"""Columns of the table with their width; a narrow terminal gets as many of them as fit."""
FAULTS_WIDTH = 20
HEAD = "instance and answer"


def print_report(rows: Sequence[Rollout], folder: Path, agreement: str | None, live: bool) -> None:
    """The table for people, on stderr, and what its numbers are worth."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.table import Table

    with_faults = any(row.faults for row in rows)
    name_width = max(cell_len(text) for row in rows for text in (HEAD, row.instance, f"  {row.answer}"))
    room = console().width - name_width - (FAULTS_WIDTH if with_faults else 0)
    widths = accumulate(width for width, _ in FIGURES.values())
    figures = {name: figure for (name, (_, figure)), used in zip(FIGURES.items(), widths, strict=True) if used < room}
    table = Table(
        box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title="Rubric-judged rollouts", title_justify="left"
    )
    table.add_column(HEAD, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    if with_faults:
        table.add_column("worst faults", overflow="fold")
    previous = None
    for row in rows:
        if row.instance != previous:
            table.add_row(cell(row.instance, "bold"))
            previous = row.instance
        faults = [cell(row.faults)] if with_faults else []
        table.add_row(f"  {row.answer or 'rollout'}", *(figure(row) for figure in figures.values()), *faults)
    console().print(table)
    scored = [row.score for row in rows if row.score is not None]
    mean = f"{sum(scored) / len(scored):.3f}" if scored else "none"
    lost = "" if with_faults else "; no row was lost to a fault"
    say(f"mean score {mean} over {len(scored)} scored rollouts, {len(rows) - len(scored)} unscored{lost}")
    if any(row.reused for row in rows):
        say("0 calls: an equal answer to the same task was judged, and its verdicts count")
    for cause, n in Counter(cause for row in rows for cause in row.causes).most_common(3):
        say(f"{n} {'rollout' if n == 1 else 'rollouts'}: {cause}")
    for path in folder.glob("**/results.jsonl"):
        say(f"results: {path} (every verdict with its reason under judge_result)")
    if not live:
        say(
            "The scores above come from the local judge, which matches words, numbers and dates: good for seeing that "
            f"the whole path works, not for judging quality. On the recorded answers' own labels it was {agreement} "
            "A real judge: JUDGE_API_KEY, JUDGE_BASE_URL, JUDGE_MODEL and POLICY_*, then `make demo LIVE=1`.",
            style="yellow",
        )
