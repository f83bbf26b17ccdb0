"""What a policy can do in its workspace. A tool is an async function whose parameter `workspace` is filled in.

Its docstring and annotations are what the policy is told, so they speak to the policy. What the policy did wrong is a
`ToolRefusal`, and its message a tool message; every other exception is the machine's failure.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Awaitable, Callable, Iterable
from importlib.util import find_spec
from typing import Literal

from rubric_env.classic.tools._workspace import OUTPUT, ToolRefusal, Workspace, count_files

Tool = Callable[..., Awaitable[str]]

TOOLS = {
    **dict.fromkeys(("list_files", "read_file", "search_files", "write_file", "edit_file"), "_files"),
    **dict.fromkeys(("make_docx", "edit_docx"), "_docx"),
    **dict.fromkeys(("make_xlsx", "edit_xlsx"), "_xlsx"),
    **dict.fromkeys(("make_pptx", "edit_pptx"), "_pptx"),
    "run_python": "_python",
    **dict.fromkeys(("search_corpus", "open_document"), "_corpus"),
}
"""The module of each tool, by the name under which environments and the argument `tools` choose it."""

_NEEDS = {"_docx": ("docx", "markdown_it", "lxml"), "_xlsx": ("openpyxl", "lxml"), "_pptx": ("pptx", "lxml", "PIL")}
"""Libraries of the extra `tools`, by the module that cannot do without."""

__all__ = ["OUTPUT", "TOOLS", "Tool", "ToolRefusal", "Workspace", "count_files", "find_tools"]


def find_tools(names: Iterable[str], sandbox: Literal["auto", "required", "off"] = "auto") -> list[Tool]:
    """The tools of these names; those that this machine cannot offer are left out with a warning.

    `sandbox` "required" raises SandboxUnavailable where Python cannot be run safely, "off" leaves run_python out.
    Raises ValueError for names that nobody knows, and for a sandbox that is required and that no tool uses.
    """
    names = list(dict.fromkeys(names))
    if unknown := [name for name in names if name not in TOOLS]:
        raise ValueError(f"tools: unknown {', '.join(unknown)}; known are {', '.join(TOOLS)}")
    if sandbox == "required" and "run_python" not in names:
        raise ValueError("sandbox = 'required': run_python, which it is for, is not among the tools: add it to tools=")
    lacks = {name: [library for library in _NEEDS.get(TOOLS[name], ()) if find_spec(library) is None] for name in names}
    missing = [name for name in names if lacks[name]]
    if missing:
        libraries = ", ".join(sorted({library for name in missing for library in lacks[name]}))
        warnings.warn(f"no {', '.join(missing)}: install rubric-env[tools], which brings {libraries}", stacklevel=2)
    if {"read_file", "search_files"} & set(names) and find_spec("lxml") is None:
        warnings.warn("read_file opens text only: install rubric-env[office] for Word, Excel and others", stacklevel=2)
    if "run_python" in names and (sandbox == "off" or not _sandboxed(sandbox)):
        missing.append("run_python")
    return [_load(name) for name in names if name not in missing]


def _sandboxed(sandbox: str) -> bool:
    from rubric_env.sandbox import SandboxUnavailable, find_sandbox

    try:
        without = find_sandbox().missing
    except SandboxUnavailable as error:
        if sandbox == "required":
            raise
        warnings.warn(f"no run_python: {error}", stacklevel=3)
        return False
    if without:
        warnings.warn(f"run_python works without {', '.join(without)}: install rubric-env[office,tools]", stacklevel=3)
    return True


def _load(name: str) -> Tool:
    tool: Tool = getattr(importlib.import_module(f"{__name__}.{TOOLS[name]}"), name)
    return tool
