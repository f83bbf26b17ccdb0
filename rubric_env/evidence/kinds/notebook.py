"""Jupyter notebooks by cells, with what running them printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rubric_env.evidence._decode import clean, decode
from rubric_env.evidence._extract import Kind, Unit, Unreadable
from rubric_env.evidence._reading import Reading

BYTES = 64 * 2**20
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def units(reading: Reading) -> Iterator[Unit]:
    """Each cell, then its outputs. Outputs are what the file holds; nothing is run."""
    data = reading.path.read_bytes()
    if len(data) > BYTES:
        raise Unreadable(f"it is larger than {BYTES // 2**20} MB")
    text, notes = decode(data)
    for note in notes:
        reading.note(note)
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it does not parse as JSON ({error})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict) and isinstance(notebook.get("worksheets"), list):
        cells = [cell for sheet in notebook["worksheets"] for cell in sheet.get("cells", [])]  # version 3
    if not isinstance(cells, list):
        raise Unreadable("it is JSON, but no notebook: there are no cells")
    for number, cell in enumerate(cells, 1):
        try:
            yield from _cell(cell, f"cell {number}")
        except (AttributeError, TypeError, KeyError) as error:
            reading.lost(f"cell {number}", f"it is damaged ({type(error).__name__})")
    code = [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    run = sum(cell.get("execution_count") is not None or bool(cell.get("outputs")) for cell in code)
    reading.note(f"{len(cells)} cells, {len(code)} of code, {run} of them were run")


def _cell(cell: Any, address: str) -> Iterator[Unit]:
    kind = str(cell.get("cell_type", "cell"))
    count = cell.get("execution_count") or cell.get("prompt_number")
    if source := _text(cell.get("source", cell.get("input"))).strip("\n"):
        yield Unit(address, source, f"{kind}, run {count}" if count else kind)
    for number, output in enumerate(cell.get("outputs") or [], 1):
        words, mark = _output(output)
        if words.strip():
            yield Unit(f"{address}/output {number}", words.strip("\n"), mark)


def _output(output: Any) -> tuple[str, str]:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{output.get('ename', 'error')}: {output.get('evalue', '')}", "error"
    if "text" in output and "data" not in output:
        return _text(output["text"]), str(output.get("name") or output.get("stream") or "output")
    data = output.get("data") or {}
    pictures = sorted(kind for kind in data if kind.startswith("image/"))
    words = _text(data.get("text/markdown") or data.get("text/plain") or data.get("text/html") or "")
    if pictures:
        return f"{words} [{', '.join(pictures)}, not shown]", "picture"
    return words, "output"


def _text(source: Any) -> str:
    joined = "".join(map(str, source)) if isinstance(source, list) else str(source or "")
    return clean(_COLOURS.sub("", joined))


KINDS = (Kind("notebook", (".ipynb",), units=units),)
