"""Everything that is worth saying of a rubric before a judge is paid for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

from rubric_env.rubric._criterion import Criterion
from rubric_env.rubric._rows import read_rows
from rubric_env.rubric._source import RubricError, read_source, read_text
from rubric_env.rubric._wording import describes_achievement, describes_conduct, describes_violation

TASK_FILES = ("tests/task_prompt.md", "instruction.md")
"""Where an instance keeps its task text, first found wins."""

JUDGE_INSTRUCTION_FILES = tuple(
    f"tests/{name}.md" for name in ("judge_instruction", "judge_instructions", "rubric_instruction", "judge_prompt")
)
"""Where an instance keeps the judge's instruction, first found wins (SPEC 4)."""

_OUTPUT_DIRECTORY = re.compile(r"/app/output\b|(?<![\w/.-])output/")


@dataclass(frozen=True, slots=True)
class Finding:
    """An error makes the rubric unusable. `code` is stable, in kebab-case; `row` is an id, "" for the file."""

    severity: Literal["error", "warning"]
    code: str
    row: str
    message: str


def lint(source: Sequence[Any] | Mapping[str, Any] | str | Path) -> list[Finding]:
    """Errors that `RubricSpec.parse` would raise, and softer findings on the rows that can be read."""
    return _lint(source, delivers_files=False)


def lint_instance(directory: str | Path) -> list[Finding]:
    """`lint` of `tests/rubric.json`, and what the directory lacks or holds that rows cannot be judged by."""
    root = Path(directory)
    if not root.is_dir():
        return [Finding("error", "missing-instance", "", f"{root}: no such directory")]
    findings: list[Finding] = []
    task = "\n".join(_first_text(root, [name], findings) for name in TASK_FILES)
    if not task.strip():
        message = f"{root}: no task text: write {' or '.join(TASK_FILES)}"
        findings.append(Finding("error", "missing-task", "", message))
    if not _first_text(root, JUDGE_INSTRUCTION_FILES, findings).strip():
        message = f"{root}: no {JUDGE_INSTRUCTION_FILES[0]}: the built-in instruction will be used"
        findings.append(_warning("missing-judge-instruction", "", message))
    return findings + _lint(root / "tests" / "rubric.json", delivers_files=bool(_OUTPUT_DIRECTORY.search(task)))


def _first_text(root: Path, names: Sequence[str], findings: list[Finding]) -> str:
    path = next((root / name for name in names if (root / name).is_file()), None)
    if path is None:
        return ""
    try:
        text, warning = read_text(path)
    except OSError as error:
        findings.append(Finding("error", "unreadable-file", "", f"{path}: cannot be read: {error.strerror}"))
        return ""
    if warning:
        findings.append(_warning("not-utf8", "", warning))
    return text


def _lint(source: Any, *, delivers_files: bool) -> list[Finding]:
    try:
        read = read_source(source)
    except RubricError as error:
        return [Finding("error", problem.code, "", f"{error.source}: {problem}") for problem in error.problems]
    findings = [_warning("not-utf8", "", read.warning)] if read.warning else []
    rows, problems = read_rows(read.rows)
    findings += [Finding("error", problem.code, problem.id, str(problem)) for problem in problems]
    if not problems:
        findings += _weights(rows)
    known = {problem.id for problem in problems} | {row.id for row in rows}
    findings += _dependencies(rows, known)
    findings += _duplicates(rows)
    checks = [*_ROW_CHECKS, ("conduct-row", _unjudgeable)] if delivers_files else _ROW_CHECKS
    for row in rows:
        findings += [_warning(code, row.id, text) for code, check in checks if (text := check(row))]
    return findings


def _warning(code: str, row: str, message: str) -> Finding:
    return Finding("warning", code, row, message)


def _weights(rows: Sequence[Criterion]) -> Iterator[Finding]:
    heavy = [row for row in rows if row.weight > 0]
    if not heavy and not any(row.hurdle for row in rows) and any(row.weight == 0 for row in rows):
        yield _warning("no-positive-weight", "", "no row has a positive weight: each row of weight 0 counts as 1")
    elif all(row.hurdle for row in heavy):
        text = (
            "no row but a hurdle has a positive weight, so that nothing can be earned: give one to the rows that earn"
        )
        yield Finding("error", "no-positive-weight", "", text)
    else:
        needed = {target for row in rows for target in row.depends_on}
        for row in rows:
            if row.weight == 0 and not row.hurdle and row.id not in needed:
                text = "weight 0, or none, beside weighted rows: it is judged but counts nothing"
                yield _warning("weightless-row", row.id, text)


def _dependencies(rows: Sequence[Criterion], known: set[str]) -> Iterator[Finding]:
    by_id = {row.id: row for row in rows}
    graph: dict[str, set[str]] = {}
    for row in rows:
        if row.depends_on and row.polarity == "negative":
            text = "depends_on is ignored on a row of negative weight or a hurdle: remove it"
            yield _warning("ignored-depends-on", row.id, text)
            continue
        graph[row.id] = {target for target in row.depends_on if target in by_id}
        for target in row.depends_on:
            if target not in known:
                text = f"depends_on names {target!r}, which is no row: this row can never earn anything"
                yield _warning("dangling-depends-on", row.id, text)
            elif target in by_id and by_id[target].polarity == "negative":
                text = f"depends_on names {target!r}, a violation: this row would pay only if the violation occurred"
                yield _warning("depends-on-violation", row.id, text)
    while cycle := _cycle(graph):
        yield _warning("cyclic-depends-on", cycle[0], f"depends_on goes in a circle: {' → '.join(reversed(cycle))}")
        graph[cycle[0]] = set()


def _cycle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def _duplicates(rows: Sequence[Criterion]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for row in rows:
        twin = first.setdefault(" ".join(row.description.casefold().split()), row.id)
        if twin != row.id:
            yield _warning("duplicate-text", row.id, f"the same text as row {twin}: it counts twice")


def _weighted_hurdle(row: Criterion) -> str:
    if not row.hurdle or row.weight == 0:
        return ""
    effect = "only makes the full score unreachable" if row.weight > 0 else "has no effect"
    return f"a hurdle never earns or loses weight; {row.weight:g} {effect}: write weight 0"


def _ignored_table(row: Criterion) -> str:
    if row.graded or row.polarity == "positive" or not _tables(row):
        return ""
    kind = "a hurdle" if row.hurdle else "a row of negative weight"
    return f"{kind} is judged hit or not: {' and '.join(_tables(row))} will be ignored"


def _levels_without_type(row: Criterion) -> str:
    ignored = "levels" in _tables(row) and row.polarity == "positive" and row.raw.get("type") != "gradient"
    return 'levels are ignored without "type": "gradient"' if ignored else ""


def _gradient_without_levels(row: Criterion) -> str:
    missing = row.raw.get("type") == "gradient" and row.polarity == "positive" and not row.graded
    return "type is gradient, but there are no levels: the row is judged hit or not" if missing else ""


def _tables(row: Criterion) -> list[str]:
    """The names of the tables that the row holds; one of nothing but nulls is none."""
    tables = {key: row.raw.get(key) for key in ("levels", "scores")}
    return [key for key, table in tables.items() if (any(table.values()) if isinstance(table, Mapping) else table)]


def _violation_that_earns(row: Criterion) -> str:
    if row.polarity == "negative" or not describes_violation(row.description):
        return ""
    return (
        "worded as a violation, but a hit earns weight: make the weight negative, make it a hurdle, or reword the row"
    )


def _achievement_that_kills(row: Criterion) -> str:
    if not row.hurdle or not describes_achievement(row.description):
        return ""
    return "worded as a success, but a hit on a hurdle makes the score 0: word the row as the violation"


def _unjudgeable(row: Criterion) -> str:
    if not describes_conduct(row.description):
        return ""
    return (
        "about how the work was done, which delivered files do not show: let the judge see the conversation, or drop it"
    )


_ROW_CHECKS: list[tuple[str, Callable[[Criterion], str]]] = [
    ("weighted-hurdle", _weighted_hurdle),
    ("ignored-levels", _ignored_table),
    ("levels-without-type", _levels_without_type),
    ("gradient-without-levels", _gradient_without_levels),
    ("violation-earns", _violation_that_earns),
    ("success-is-hurdle", _achievement_that_kills),
]
