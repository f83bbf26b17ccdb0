"""Which tools an environment offers on this machine."""

from __future__ import annotations

import importlib.machinery
import importlib.util

import pytest

from rubric_env.classic.tools import find_tools


def test_tools_whose_libraries_are_absent_are_left_out_in_a_line_that_names_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(name: str, package: str | None = None) -> importlib.machinery.ModuleSpec | None:
        return None if name in ("docx", "lxml", "openpyxl") else importlib.util.find_spec(name, package)

    monkeypatch.setattr("rubric_env.classic.tools.find_spec", without)
    with pytest.warns(UserWarning) as warned:
        tools = find_tools(["make_docx", "read_file", "make_xlsx"])
    assert [tool.__name__ for tool in tools] == ["read_file"]
    assert [str(w.message) for w in warned] == [
        "no make_docx, make_xlsx: install rubric-env[tools], which brings docx, lxml, openpyxl",
        "read_file opens text only: install rubric-env[office] for Word, Excel and others",
    ]


def test_a_sandbox_that_is_required_and_that_nothing_uses_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="run_python, which it is for, is not among the tools"):
        find_tools(["read_file"], "required")
