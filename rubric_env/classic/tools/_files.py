"""Tools that list, read, search and write the files of a workspace."""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterator

from rubric_env._computing import computing
from rubric_env._threads import aside, waiting
from rubric_env.classic.tools._reading import page, passages
from rubric_env.classic.tools._workspace import ENTRIES, ToolRefusal, Workspace
from rubric_env.evidence import Passages, Unreadable, decode
from rubric_env.submission import Walked, label, open_regular, walk

LISTED = 300
"""Entries of a folder that are named."""

HITS = 50
EXCERPT = 240
"""Characters of a line that holds a hit."""

SEARCH_SECONDS = 60.0
"""After which no further file is opened: reading the files of other programs takes time."""

EDITED = 8 * 2**20
"""Bytes of a text file that is edited."""

_OFFICE = {".docx", ".xlsx", ".pptx", ".pdf", ".doc", ".xls", ".ppt", ".odt", ".ods", ".odp", ".png", ".jpg", ".zip"}


async def list_files(workspace: Workspace, path: str = ".") -> str:
    """List the files below a folder of the workspace, one a line with its size in bytes.

    Args:
        path: folder, relative to the workspace; "." is the workspace itself
    """
    return await aside.run(_list, workspace, path)


async def read_file(workspace: Workspace, path: str, offset: int = 0) -> str:
    """Read a file of the workspace as text: plain text as it is; documents, workbooks, slides, PDF, web pages, pictures
    and archives as passages, each after its address in brackets. Long files come in pages; the last line says how to
    go on.

    Args:
        path: file, relative to the workspace
        offset: character of the text at which to begin
    """
    return await waiting.run(_read, workspace, path, offset)


async def search_files(workspace: Workspace, query: str, path: str = ".") -> str:
    """Find the lines that contain a text, in upper or lower case, in all files of a folder or in one file. Documents,
    workbooks, slides and PDF are searched too. Hits come as path#address: line.

    Args:
        query: the text to find, a word or a part of one line; no pattern
        path: folder or file, relative to the workspace
    """
    return await waiting.run(_search, workspace, query, path)


async def write_file(workspace: Workspace, path: str, content: str) -> str:
    """Write a text file into the workspace, replacing it if it exists. Deliverables belong under output/.

    Args:
        path: file, relative to the workspace, for example output/report.md
        content: the whole text of the file
    """
    return await aside.run(_write, workspace, path, content)


async def edit_file(workspace: Workspace, path: str, old: str, new: str) -> str:
    """Replace a passage of a text file by another.

    Args:
        path: file, relative to the workspace
        old: the passage as it stands in the file, with enough around it to occur exactly once
        new: what takes its place; empty to delete it
    """
    return await aside.run(_edit, workspace, path, old, new)


def _list(workspace: Workspace, path: str) -> str:
    folder = workspace.resolve(path)
    if not folder.is_dir():
        raise ToolRefusal(f"{path}: {'a file; read_file reads it' if folder.exists() else 'no such folder'}")
    with workspace.refusing(path):
        found = walk(folder, max_entries=ENTRIES)
    above = folder.relative_to(workspace.root).parts
    lines = sorted(f"{label((*above, *parts))} ({what})" for parts, what in _entries(found))
    left = len(lines) - LISTED
    notes = [f"… and {left:,} more: list a folder of them"] if left > 0 else []
    if not found.complete:
        notes.append(f"… only {ENTRIES:,} entries were looked at")
    return "\n".join([*lines[:LISTED], *notes]) or "(empty)"


def _entries(found: Walked) -> Iterator[tuple[tuple[str, ...], str]]:
    yield from ((parts, f"{size} bytes") for parts, size in found.files)
    yield from ((parts, "0 bytes") for parts in found.empty)
    yield from ((parts, "a link: not followed, not delivered") for parts in found.links)
    yield from ((parts, "no regular file") for parts in found.special)
    yield from ((parts, "cannot be opened") for parts in found.closed)
    yield from ((parts, "a folder too deep to be looked into") for parts in found.deep)


def _read(workspace: Workspace, path: str, offset: int) -> str:
    if offset < 0:
        raise ToolRefusal("offset counts from the start of the text: give 0 or more")
    read = passages(workspace, workspace.resolve(path))
    with computing():
        return page(read, offset)


def _search(workspace: Workspace, query: str, path: str) -> str:
    wanted = query.strip().casefold()
    if not wanted or "\n" in wanted:
        raise ToolRefusal("query: give a text that stands in one line")
    start = workspace.resolve(path)
    if start.is_dir():
        with workspace.refusing(path):
            files = [start.joinpath(*parts) for parts, _ in sorted(walk(start, max_entries=ENTRIES).files)]
    else:
        files = [start]
    hits: list[str] = []
    more = 0
    unread: list[str] = []
    end = time.monotonic() + SEARCH_SECONDS
    for file in files:
        try:
            if time.monotonic() > end:
                raise ToolRefusal(f"{workspace.name(file)}: not searched, time was up")
            read = passages(workspace, file)
            with computing():
                for hit in _hits(workspace.name(file), read, wanted):
                    if len(hits) < HITS:
                        hits.append(hit)
                    else:
                        more += 1
        except ToolRefusal as refusal:
            if start is file:
                raise
            unread.append(str(refusal))
    lines = hits or [f"no line in {len(files) - len(unread):,} files contains it"]
    lines += [f"… and {more:,} more: make the query or the path narrower"] if more else []
    lines += [f"({reason})" for reason in unread[:5]]
    lines += [f"({len(unread) - 5:,} more files were not searched)"] if unread[5:] else []
    return "\n".join(lines)


def _hits(name: str, read: Passages, wanted: str) -> Iterator[str]:
    for unit in read.units():
        for line in unit.text.split("\n"):
            at = line.casefold().find(wanted)
            if at >= 0:
                yield f"{name}#{unit.label}: {_excerpt(line, at)}"


def _excerpt(line: str, at: int) -> str:
    start = max(0, at - EXCERPT // 3) if len(line) > EXCERPT else 0
    text = line[start : start + EXCERPT].strip()
    return f"{'… ' if start else ''}{text}{' …' if start + EXCERPT < len(line) else ''}"


def _write(workspace: Workspace, path: str, content: str) -> str:
    file = workspace.resolve(path)
    data = content.encode("utf-8", "replace")
    workspace.write(file, data)
    told = f"wrote {len(data):,} bytes to {workspace.name(file)}"
    if file.suffix.lower() in _OFFICE:
        told += f" as plain text: no program will open it as {file.suffix.lower()}"
    return told


def _edit(workspace: Workspace, path: str, old: str, new: str) -> str:
    file = workspace.resolve(path)
    name = workspace.name(file)
    with workspace.refusing(name), open_regular(file) as opened:
        data = opened.read(EDITED + 1)
    if len(data) > EDITED:
        raise ToolRefusal(f"{name}: more than {EDITED:,} bytes, which is too much to edit")
    try:
        text, _ = decode(data)
    except Unreadable as error:
        raise ToolRefusal(f"{name}: {error}; only text files are edited") from None
    if "\r\n" in text and "\r\n" not in old:
        # The policy was shown the lines without their carriage returns.
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    times = text.count(old) if old else 0
    if times != 1:
        why = f"occurs {times:,} times: add what stands around it" if times else "does not occur: read the file again"
        raise ToolRefusal(f"{name}: old {why if old else 'is empty'}; nothing was changed")
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    recoded = mark + text.encode("utf-8", "replace") != data
    workspace.write(file, mark + text.replace(old, new).encode("utf-8", "replace"))
    line = text[: text.index(old)].count("\n") + 1
    return f"replaced 1 passage of {name}, at line {line:,}{'; the file is UTF-8 now' if recoded else ''}"
