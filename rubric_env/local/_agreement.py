"""How far the lexical judge agrees with labels on recorded answers: `python -m rubric_env.local DIR`.

DIR holds instances in Harbor layout; each `recordings/*.json` has a policy's `turns` and `labels` {row: {hit, level?}}.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rubric_env.evidence import build_pack
from rubric_env.local.lexical import WIRING_NOTICE, judge_row
from rubric_env.rubric import RubricSpec
from rubric_env.rubric import judge_row as shown_row
from rubric_env.submission import Submission, read_submission, reply_text

SAMPLES_NOTE = (
    "The rule was written with five of these instances in view; on the next four, seen for the first time, it was "
    "right on 82 % of 146 rows (kappa 0.64)."
)
"""To stand beside every agreement on the shipped samples: what it says of new answers."""

EVIDENCE_TOKENS = 100_000

PLAYED = frozenset({"list_files", "read_file", "search_files", "write_file", "search_corpus", "open_document"})
"""Tools whose effect on what is delivered is known here; a recording that uses another needs its environment."""
_KINDS = ("positive", "negative", "hurdle", "graded")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One row of one answer: what its label says and what was judged. Levels on graded rows only."""

    kind: str
    label: bool
    hit: bool
    label_level: float | None = None
    level: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Agreement on the hits of `rows` rows. `kappa` is Cohen's, None where label or verdict never varies.

    `levels` is the share of equal levels on graded rows, None without any.
    """

    name: str
    rows: int
    accuracy: float
    kappa: float | None
    levels: float | None

    @classmethod
    def of(cls, name: str, rows: Sequence[Labelled]) -> Group:
        labelled, said = _mean(row.label for row in rows), _mean(row.hit for row in rows)
        accuracy = _mean(row.label == row.hit for row in rows)
        chance = labelled * said + (1 - labelled) * (1 - said)
        varies = 0 < labelled < 1 and 0 < said < 1
        levels = [row.label_level == row.level for row in rows if row.label_level is not None]
        return cls(
            name,
            rows=len(rows),
            accuracy=accuracy,
            kappa=(accuracy - chance) / (1 - chance) if varies else None,
            levels=_mean(levels) if levels else None,
        )


def _mean(values: Iterable[bool]) -> float:
    values = list(values)
    return sum(values) / len(values)


@dataclass(frozen=True, slots=True)
class Agreement:
    """All rows together, then by kind of row and by instance."""

    answers: int
    total: Group
    kinds: tuple[Group, ...]
    instances: tuple[Group, ...]

    @classmethod
    def of(cls, answers: Mapping[tuple[str, str], Sequence[Labelled]]) -> Agreement:
        """Of the rows of each answer, by its instance and its name. Raises ValueError without any row."""
        by_instance: dict[str, list[Labelled]] = {}
        for (instance, _), rows in answers.items():
            by_instance.setdefault(instance, []).extend(rows)
        everything = [row for rows in by_instance.values() for row in rows]
        if not everything:
            raise ValueError("no labelled answers")
        kinds = {kind: [row for row in everything if row.kind == kind] for kind in _KINDS}
        judged = sum(bool(rows) for rows in answers.values())
        return cls(judged, Group.of("all", everything), _groups(kinds), _groups(by_instance))

    def __str__(self) -> str:
        kinds = ", ".join(f"{group.name} {_shown(group.kappa)}" for group in self.kinds)
        return (
            f"right on {self.total.accuracy:.0%} of {self.total.rows} rows in {self.answers} answers, "
            f"Cohen's kappa {_shown(self.total.kappa)} ({kinds})"
        )


def _shown(kappa: float | None) -> str:
    return "undefined" if kappa is None else f"{kappa:.2f}"


def agreement(instances: str | Path) -> Agreement:
    """Judge every recorded answer under `instances` by the lexical rule, those aside that use tools not `PLAYED` here.

    Raises ValueError when there is no labelled answer or one cannot be read (RubricError for a broken rubric).
    """
    answers: dict[tuple[str, str], list[Labelled]] = {}
    for file in sorted(Path(instances).glob("*/recordings/*.json")):
        try:
            rows = list(_judged(file.parent.parent, json.loads(file.read_text("utf-8"))))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError) as error:
            raise ValueError(f"{file}: no recording with `turns` and `labels`: {error!r}") from None
        answers[file.parent.parent.name, file.stem] = rows
    try:
        return Agreement.of(answers)
    except ValueError:
        wanted = "INSTANCE/recordings/*.json with `turns` and `labels`"
        raise ValueError(f"{instances}: no labelled recordings ({wanted})") from None


def compared(spec: RubricSpec, labels: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Labelled]:
    """Each row that has both a label and a verdict, both {"hit": bool, "level": float?}."""
    for row in spec:
        label, verdict = labels.get(row.id), said.get(row.id)
        if label is not None and verdict is not None:
            kind = "graded" if row.graded else "hurdle" if row.hurdle else row.polarity
            yield Labelled(kind, bool(label["hit"]), verdict["hit"], label.get("level"), verdict.get("level"))


def _groups(rows: Mapping[str, Sequence[Labelled]]) -> tuple[Group, ...]:
    return tuple(Group.of(name, some) for name, some in rows.items() if some)


def _judged(instance: Path, recording: Mapping[str, Any]) -> Iterator[Labelled]:
    """Nothing for an answer that delivered nothing: such a rollout is settled without a judge (SPEC 6)."""
    calls = (call["name"] for turn in recording["turns"] for call in turn.get("tool_calls") or ())
    if not PLAYED.issuperset(calls):
        return
    spec = RubricSpec.parse(instance / "tests" / "rubric.json")
    with tempfile.TemporaryDirectory() as folder:
        submission = _played(recording["turns"], Path(folder))
        if submission.missing:
            return
        evidence = build_pack(submission, budget_tokens=EVIDENCE_TOKENS).text("agreement")
    verdicts = {row.id: judge_row(shown_row(row), evidence) for row in spec if row.id in recording["labels"]}
    said = {name: {"hit": verdict.hit, "level": verdict.level} for name, verdict in verdicts.items()}
    yield from compared(spec, recording["labels"], said)


def _played(turns: Iterable[Mapping[str, Any]], workspace: Path) -> Submission:
    """What a recording delivers: the files of its `write_file` calls, and its reply."""
    messages = []
    for turn in turns:
        calls = turn.get("tool_calls") or []
        for call in calls:
            path = (workspace / str(call["arguments"].get("path", ""))).resolve()
            if call["name"] == "write_file" and path.is_relative_to(workspace.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(call["arguments"]["content"], "utf-8")
        messages.append({"role": "assistant", "content": turn.get("content") or "", "tool_calls": calls})
    return read_submission(workspace, reply_text(messages), output_dir="output")


def _table(found: Agreement) -> str:
    lines = [f"{'rows of':28} {'rows':>5} {'right':>6} {'kappa':>10} {'levels':>7}"]
    for group in (found.total, *found.kinds, *found.instances):
        levels = "" if group.levels is None else f"{group.levels:.0%}"
        lines.append(f"{group.name:28} {group.rows:5} {group.accuracy:6.0%} {_shown(group.kappa):>10} {levels:>7}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """`DIR [--json]`: a table, or the figures as a JSON object. Returns 1 with nothing to compare, 2 on usage."""
    folders = [argument for argument in arguments if argument != "--json"]
    if len(folders) != 1 or folders[0].startswith("-"):
        sys.stderr.write("usage: python -m rubric_env.local DIR [--json]\n")
        return 2
    try:
        found = agreement(folders[0])
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    text = json.dumps(asdict(found)) if "--json" in arguments else f"{_table(found)}\n\n{WIRING_NOTICE}"
    sys.stdout.write(f"{text}\n")
    return 0
