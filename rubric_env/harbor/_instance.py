"""One instance: a task directory in Harbor layout (docs/instances.md)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rubric_env import rubric
from rubric_env.citations import corpus_problems
from rubric_env.harbor._reference import read_reference
from rubric_env.harbor._task_toml import Metadata, read_metadata
from rubric_env.rubric import JUDGE_INSTRUCTION_FILES, TASK_FILES, Finding, RubricSpec, lint_instance

RUBRIC_FILE = "tests/rubric.json"
INSTRUCTION_FILE = "instruction.md"


class InstanceError(ValueError):
    """An instance that cannot be used. The message names its directory and, for all problems at once, the remedy."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A task and how it is judged. Made by `load`.

    The policy is told `instruction`, the judge `task`. "" stands for an instance without `judge_instruction` (the
    engine has one of its own), without `reference` (the text of the expected output), or without an `answer` that a
    program can check. `output_dir` is relative to the policy's workspace, which starts with what is in `inputs`.
    `kind` says whether files are to be delivered or the reply is the answer, `deliverables` which files the task names
    (`output/memo.docx`). `corpus` holds the documents that a research task may search, outside the workspace.
    """

    path: Path
    name: str
    spec: RubricSpec
    task: str
    instruction: str
    judge_instruction: str
    reference: str
    output_dir: str
    kind: Literal["files", "chat"]
    answer: str
    deliverables: tuple[str, ...]
    inputs: Path | None
    corpus: Path | None
    warnings: tuple[str, ...] = ()

    @classmethod
    def load(cls, directory: str | Path) -> Instance:
        """Read an instance. Raises InstanceError for what is missing or unreadable, RubricError for a broken rubric."""
        root = Path(directory)
        if not root.is_dir():
            raise InstanceError(f"{root}: no such directory: give the directory that holds {RUBRIC_FILE}")
        try:
            return cls._read(root)
        except OSError as error:
            raise InstanceError(f"{error.filename or root}: cannot be read: {error.strerror}") from None

    @classmethod
    def _read(cls, root: Path) -> Instance:
        problems: list[str] = []
        remarks: list[str] = []
        task = _first(root, TASK_FILES, remarks)
        if not task.strip():
            problems.append(f"no task text: write it to {' or '.join(TASK_FILES)}")
        judge_instruction = _first(root, JUDGE_INSTRUCTION_FILES, remarks)
        if not judge_instruction.strip():
            remarks.append(f"{root}: no {JUDGE_INSTRUCTION_FILES[0]}: the built-in instruction is used")
        if not (root / RUBRIC_FILE).is_file():
            problems.append(f"no {RUBRIC_FILE}: write the rows there")
        corpus, metadata = _settings(root, problems, remarks)
        if problems:
            raise InstanceError(f"{root}: {'; '.join(problems)}")
        return cls(
            path=root,
            name=root.resolve().name,
            spec=RubricSpec.parse(root / RUBRIC_FILE),
            task=task,
            instruction=_first(root, [INSTRUCTION_FILE], remarks) or task,
            judge_instruction=judge_instruction,
            reference=read_reference(root / "tests/expected_output", remarks),
            output_dir=metadata.output_dir,
            kind=metadata.kind,
            answer=metadata.answer,
            deliverables=metadata.deliverables,
            inputs=next((path for path in (root / "environment/inputs", root / "environment") if path.is_dir()), None),
            corpus=corpus,
            warnings=tuple(dict.fromkeys(remarks)),
        )


def lint(directory: str | Path) -> list[Finding]:
    """`rubric.lint_instance`, and what is wrong with the instance's task.toml and its corpus."""
    root, problems, remarks = Path(directory), list[str](), list[str]()
    try:
        _settings(root, problems, remarks)
    except OSError as error:
        problems.append(f"{error.filename}: cannot be read: {error.strerror}")
    return [
        *lint_instance(root),
        *(Finding("error", "broken-instance", "", f"{root}: {problem}") for problem in problems),
        *(Finding("warning", "ignored-metadata", "", remark) for remark in remarks),
    ]


def _settings(root: Path, problems: list[str], remarks: list[str]) -> tuple[Path | None, Metadata]:
    """Where the corpus is, if there is one, and what task.toml says."""
    corpus = root / "environment/corpus"
    if corpus.is_dir():
        problems += corpus_problems(corpus)
    return corpus if corpus.is_dir() else None, read_metadata(root / "task.toml", problems, remarks)


def read_text(path: Path) -> str:
    """A text file, byte for byte but for a byte order mark; warns when it is not UTF-8. Raises OSError."""
    text, warning = rubric.read_text(path)
    if warning:
        warnings.warn(warning, stacklevel=2)
    return text


def _first(root: Path, names: Sequence[str], remarks: list[str]) -> str:
    """The text of the first of `names` that exists below `root`, "" when none does."""
    for name in names:
        # To look whether each is there before it is opened would cost as much again in a folder of thousands.
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            text, warning = rubric.read_text(f"{root}/{name}")
            if warning:
                remarks.append(warning)
            return text
    return ""
