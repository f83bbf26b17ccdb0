from __future__ import annotations

import importlib.machinery
import importlib.util

import pytest

from rubric_env.classic.tools import find_tools


def test_tools_whose_libraries_are_absent_are_left_out_in_one_line_that_names_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(name: str, package: str | None = None) -> importlib.machinery.ModuleSpec | None:
        return None if name in ("docx", "lxml", "openpyxl") else importlib.util.find_spec(name, package)

    monkeypatch.setattr("rubric_env.classic.tools.find_spec", without)
    with pytest.warns(UserWarning) as warned:
        tools = find_tools(["make_docx", "read_file", "make_xlsx"])
    assert [tool.__name__ for tool in tools] == ["read_file"]
    assert [str(w.message) for w in warned] == [
        "no make_docx, make_xlsx: install rubric-env[tools], which brings docx, lxml, openpyxl"
    ]
