"""harbor-wle: everyday tasks, in chat or with files, judged by a rubric (README.md describes the arguments)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rubric_env.classic import Family, build_environment

SYSTEM_PROMPT = """You help people with what comes up in everyday life, in the language in which they write.

If there are input files, look at them first: they may contradict each other, or what the person believes. Where the \
facts do not tell, say so, or ask. Files that the task asks for belong into the folder output/, under the names that \
it gives; then close with a short message. Otherwise your last message is the answer. \
Either comes without a tool call."""

FAMILY = Family(
    env_id="harbor-wle",
    instances=Path(__file__).parent / "instances",
    system_prompt=SYSTEM_PROMPT,
    # What one has at home: texts, letters, tables. `tools` adds others, such as run_python.
    tools=(
        *("list_files", "read_file", "search_files", "write_file", "edit_file"),
        *("make_docx", "edit_docx", "make_xlsx", "edit_xlsx"),
    ),
    max_turns=16,
)


def load_environment(instances: str | Sequence[str] | None = None, **arguments: Any) -> Any:
    """The classic environment over the shipped instances, or over those of `instances` (a folder, or several)."""
    return build_environment(FAMILY, instances, **arguments)
