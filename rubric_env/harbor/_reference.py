"""The expected output of an instance as one text that a judge can be shown."""

from __future__ import annotations

from pathlib import Path

from rubric_env.rubric import decode_text

TEXT_LIMIT = 256_000
"""Bytes of one file. A longer one is named only: at three bytes a token it would fill most of a judge's context."""

TEXT_SUFFIXES = frozenset({"", ".csv", ".html", ".json", ".jsonl", ".md", ".tsv", ".txt", ".xml", ".yaml", ".yml"})
"""Text in any encoding. Another file is shown only if it is UTF-8, as sources are and office files are not."""


def read_reference(folder: Path, remarks: list[str]) -> str:
    """The files below `folder`, each under a line with its name; "" without one. Raises OSError."""
    if not folder.is_dir():
        return ""
    return "\n\n".join(
        f"--- {folder.name}/{path.relative_to(folder).as_posix()} ---\n{_read(path, remarks)}"
        for path in sorted(path for path in folder.rglob("*") if path.is_file())
    )


def _read(path: Path, remarks: list[str]) -> str:
    size = path.stat().st_size
    if size > TEXT_LIMIT:
        return f"(not shown: {size:,} bytes)"
    data = path.read_bytes()
    if b"\0" in data or (path.suffix.lower() not in TEXT_SUFFIXES and not _is_utf8(data)):
        return f"(not shown: not a text file, {size:,} bytes)"
    text, warning = decode_text(data, path)
    if warning:
        remarks.append(warning)
    return text


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
