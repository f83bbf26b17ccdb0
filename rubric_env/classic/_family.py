"""What sets one of the environments apart from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SYSTEM_PROMPT = """You are an experienced office professional working in a workspace of files.

Look at the input files first, then do the task. Files that you deliver belong in the folder output/, under the names \
that the task gives. When you are done, answer with a short closing message and no tool call. \
If the task asks for an answer in chat, give that answer as your closing message."""

FILE_TOOLS = ("list_files", "read_file", "search_files", "write_file", "edit_file")
OFFICE_TOOLS = ("make_docx", "edit_docx", "make_xlsx", "edit_xlsx", "make_pptx", "edit_pptx")


@dataclass(frozen=True, slots=True)
class Family:
    """A family of instances, and the defaults under which a policy works on them and a judge judges them.

    `instances` are those that ship with it. `tools` are names of `rubric_env.classic.tools.TOOLS`. `settings` are
    JudgeSettings fields: anything else that says otherwise wins over them. `checks` are rewards of its own, each made
    of a weight; the key is the argument that gives it (`{"citation_weight": CitationRubric}`), 0 unless given.
    """

    env_id: str
    instances: Path
    system_prompt: str = SYSTEM_PROMPT
    tools: tuple[str, ...] = (*FILE_TOOLS, *OFFICE_TOOLS, "run_python")
    max_turns: int = 30
    settings: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, Callable[[float], Any]] = field(default_factory=dict)
