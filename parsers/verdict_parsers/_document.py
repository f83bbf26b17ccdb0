"""One walk over a reply: where candidates stand, and what is thinking, quotation or prose."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from verdict_parsers._chars import END, SKIP, flatten
from verdict_parsers._container import Container, ContainerReader
from verdict_parsers._context import Prose
from verdict_parsers._ids import IdBook
from verdict_parsers._limits import MAX_REGIONS, MAX_REPAIR_BYTES, MAX_REPAIRED_BYTES, MAX_RESCANS, Budget
from verdict_parsers._region import Fence, Region, label
from verdict_parsers._repair import mend
from verdict_parsers._rows import Cut, TreeReader, row_of
from verdict_parsers._spoken import between
from verdict_parsers._table import Table, begins_table, hearsay, table_rows, tables
from verdict_parsers._think import CLOSE, OPEN, end_of_thinking, lone_close
from verdict_parsers._tokens import QUOTES, next_token
from verdict_parsers._values import Obj
from verdict_parsers._words import EVIDENCE_KEYS, OPAQUE_KEYS, REASON_KEYS, names
from verdict_parsers._xml import ROW_TAGS, TAG, read_row, starts_row

_WRAPPER_TAGS = names("verdicts results evaluations judgments judgements assessments answers criteria rows items")
_OPAQUE_TAGS = OPAQUE_KEYS | {"blockquote", "q", "cite"}
_NAMES = "|".join(sorted(ROW_TAGS | _WRAPPER_TAGS | _OPAQUE_TAGS))

_SET = rf"""[{QUOTES}][^{QUOTES}\n]*+[{QUOTES}](?:,{SKIP}[{QUOTES}][^{QUOTES}\n]*+[{QUOTES}])*+{SKIP}\}}"""
_KEY = rf"""(?:(?!{_SET})[{QUOTES}] | [^\W\d][\w\ ]{{0,60}}+["']?(?::|\Z) | \Z | /[/*])"""
"""What the inside of an object starts with. A set of words, a placeholder or a formula in braces is prose."""
_INTEREST = re.compile(
    rf"""(?P<fence>`{{3,}}+|~{{3,}}+)
       | (?P<json>\{{(?={SKIP}{_KEY})|\[(?={SKIP}(?:\Z|\{{{SKIP}{_KEY})))
       | (?P<encoded>"(?=\s{{0,8}}+[\[{{][\s\[{{]{{0,8}}+(?:\\"|\\?\Z))|[\[{{](?=[\s\[{{]{{0,8}}+\\"))
       | (?P<pipe>^[ \t]*+\|[^\n]*+)
       | (?P<unthink>{CLOSE})
       | (?P<think>{OPEN})
       | (?P<comment><!--)
       | (?P<tag>(?<!`)</?(?:{_NAMES})\b)
       | (?P<stub></?\w*+\Z)""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_INDENT = 16
"""Spaces before a fence; a longer look back would be paid at every fence of a long line."""
_INFO = re.compile(r"[ \t]*+([\w+.\-]*+)")
_LEFTOVER = re.compile(
    rf"""[ \t]*+(?:[\]}}][ \t]*+)*+(?:["“”]|'{SKIP}[,:\]}}]|,[ \t]*+[{QUOTES}][^{QUOTES}\n]*+[{QUOTES}]{SKIP}:)
       | {SKIP},{SKIP}\{{{SKIP}[{QUOTES}][^{QUOTES}{{}}]*+[{QUOTES}]{SKIP}[,}}]
       | [\s`~\]}}]*+[^{{}}]{{0,200}}?["”],[ ]?["“]\w{{1,40}}["”]:""",
    re.VERBOSE,
)
"""What cannot follow an object that is really over: its bracket stood in a string with a quote that is not escaped."""
_JOINED = re.compile(rf"{SKIP},{SKIP}")
_QUOTE = re.compile(f"[{QUOTES}]")


@dataclass(frozen=True, slots=True)
class Document:
    """The candidates of a reply, in order. `visible` is where the reply starts: behind the thinking that a lone closing
    tag ended. `spoken` is what is neither candidate nor thinking, comment or quotation."""

    regions: tuple[Region, ...]
    visible: int
    spoken: str


def read_document(text: str, book: IdBook) -> Document:
    """Find every candidate. Takes time linear in the length of the text; raises TooMuch."""
    return _Walk(text, book).run()


class _Walk:
    def __init__(self, text: str, book: IdBook):
        self._text, self._flat, self._book = text, flatten(text), book
        self._containers = ContainerReader(text, self._flat)
        self._trees = TreeReader(book)
        self._prose = Prose(self._flat)
        self._regions: list[Region] = []
        self._skipped: list[tuple[int, int]] = []
        self._fences: list[Fence] = []
        self._visible = 0
        self._group: int | None = None
        self._uncertain = False
        self._guess = False
        self._orphan = -1
        self._repair_left = MAX_REPAIRED_BYTES
        self._budget = Budget(MAX_REGIONS, "candidates")
        self._rescans = Budget(MAX_RESCANS, "broken text")

    def run(self) -> Document:
        flat, position = self._flat, 0
        at: dict[str, Callable[[re.Match[str]], int]] = {
            "fence": self._at_fence,
            "json": self._at_json,
            "encoded": self._at_encoded,
            "pipe": self._at_pipe,
            "unthink": self._at_unthink,
            "think": self._at_think,
            "comment": self._at_comment,
            "tag": self._at_tag,
            "stub": self._at_stub,
        }
        coming = tables(flat)
        table = next(coming, None)
        found = _INTEREST.search(flat)
        while True:
            if found is not None and found.start() < position:
                found = _INTEREST.search(flat, position)
            while table is not None and table.start < position:
                table = next(coming, None)
            if table is not None and (found is None or self._comes_first(table, found)):
                position = self._at_table(table)
            elif found is None:
                break
            else:
                position = at[found.lastgroup or ""](found)
        open_fence = self._fences[-1] if self._fences and self._fences[-1].end < 0 else None
        if self._group is not None:
            self._unfinished(len(flat))
        if open_fence and open_fence.info and not flat[open_fence.start :].strip():
            self._unfinished(open_fence.start)
        regions = label(self._regions, self._fences, flat, self._visible)
        regions = [replace(region, quoted=True) if self._in_reason(region) else region for region in regions]
        if self._guess and not (len(regions) == 1 and regions[0].alone):
            regions = [replace(region, quoted=True) for region in regions]
        return Document(tuple(regions), self._visible, between(flat, self._visible, regions, self._skipped))

    def _in_reason(self, region: Region) -> bool:
        """Whether a reason closes behind this element, and none was open: an earlier one held a closing tag."""
        return region.kind == "xml" and region.start < self._orphan

    @staticmethod
    def _comes_first(table: Table, found: re.Match[str]) -> bool:
        """Whether a table is next: nothing stands before it, and its header is cells and nothing else."""
        return found.start() >= table.body or (found.start() >= table.start and found.lastgroup == "pipe")

    def _add(self, region: Region, quoted: bool | None = None) -> None:
        self._budget.take()
        if quoted is None:
            quoted = self._prose.quotes(region.start, region.end)
        last = self._regions[-1] if self._regions else None
        if last and last.quoted and last.lone and region.lone:
            quoted |= self._group == last.group or not self._flat[last.end : region.start].strip(", \t\r\n")
        fenced = bool(self._fences) and self._fences[-1].end < 0
        level = "rows" if region.kind != "json" or not region.sound else "fence" if fenced else "scan"
        group = region.start if self._group is None else self._group
        self._regions.append(replace(region, quoted=quoted, uncertain=self._uncertain, group=group, level=level))

    def _unfinished(self, start: int) -> int:
        """The text ends in the bare beginning of an answer, or in a section that is never closed."""
        self._add(Region("stub", start, len(self._flat), sound=False))
        return len(self._flat)

    def _at_fence(self, found: re.Match[str]) -> int:
        marks = found[0]
        if self._fences and self._fences[-1].end < 0:
            if marks.startswith(self._fences[-1].marks):
                self._fences[-1].end = found.start()
            return found.end()
        info = _INFO.match(self._flat, found.end())
        assert info is not None
        before = self._flat[max(found.start() - _INDENT, 0) : found.start()]
        opens_line = not before[before.rfind("\n") + 1 :].strip() and ("\n" in before or len(before) < _INDENT)
        self._fences.append(Fence(marks, opens_line, info[1], info.end()))
        return found.end()

    def _at_json(self, found: re.Match[str]) -> int:
        start = found.start()
        container = self._containers.read(start)
        end = max(container.end, start + 1)
        if not container.closed or container.broken:
            thought = lone_close(self._flat, start, end)
            if thought is not None:
                return self._forget(thought, guess=True)
            if container.doubt_from is not None and not _QUOTE.search(self._flat, start, end + 1):
                return start + 1
        doubt = self._doubt(container)
        if not container.closed and container.broken and doubt is not None:
            self._rescans.take()
            end = max(doubt, start) + 1
        quoted = self._prose.quotes(start, end)
        if container.closed and not quoted and _LEFTOVER.match(self._flat, end):
            doubt = start
            self._disown_joined(start)
        rows, cuts = self._trees.rows(container.tree, doubt)
        lone = isinstance(container.tree, Obj) and start in {*(row.start for row in rows), *(cut.start for cut in cuts)}
        sound = container.closed and doubt is None
        unread = container.open if doubt is None else doubt
        self._add(Region("json", start, end, tuple(rows), tuple(cuts), sound, lone, doubt_from=unread), quoted)
        self._uncertain |= doubt is not None or (not container.closed and end < len(self._flat))
        return end

    def _disown_joined(self, start: int) -> None:
        """The objects that stand before `start` with commas between may have been in a string, as the one there was."""
        n = len(self._regions) - 1
        while n >= 0 and not self._regions[n].quoted and _JOINED.fullmatch(self._flat, self._regions[n].end, start):
            self._regions[n] = replace(self._regions[n], quoted=True)
            start = self._regions[n].start
            n -= 1

    def _doubt(self, container: Container) -> int | None:
        """Where the container stops being certain, after the repair of its broken rows."""
        broken = container.broken
        if container.closed and broken:
            size = len(self._text[container.start : container.end].encode("utf-8", "replace"))
            self._repair_left -= size
            if size <= MAX_REPAIR_BYTES and self._repair_left >= 0:
                broken = [node for node in broken if not mend(self._text, self._flat, node, self._book)]
                for node in broken:
                    node.closed = False
        guesses = [node.breaks[0][0] for node in broken]
        return min(guesses if container.doubt_from is None else [*guesses, container.doubt_from], default=None)

    def _at_encoded(self, found: re.Match[str]) -> int:
        """JSON as a string, or with its quotes escaped, that is not the whole reply: an answer that nobody may read."""
        kind, _, end = next_token(self._text, self._flat, found.start())
        if kind == "open":
            return self._unfinished(found.start())
        self._add(Region("stub", found.start(), end, sound=False))
        self._uncertain = True
        return end

    def _at_table(self, table: Table) -> int:
        if answer := table_rows(self._text, self._flat, table, self._book):
            rows, cuts, finished = answer
            self._add(Region("table", table.start, table.end, tuple(rows), tuple(cuts), finished))
            return table.end
        return self._hear(table.start, table.end)

    def _hear(self, start: int, end: int) -> int:
        if rows := hearsay(self._text, self._flat, start, end, self._book):
            self._add(Region("hearsay", start, end, tuple(rows)))
        return end

    def _at_pipe(self, found: re.Match[str]) -> int:
        """A line that begins with a pipe and is in no table: cells all the same, so no place for an answer.

        The last line of the reply may begin a table, or go on with one.
        """
        begins = END.match(self._flat, found.end()) and begins_table(found[0], self._book)
        return self._unfinished(found.start()) if begins else self._hear(*found.span())

    def _at_unthink(self, found: re.Match[str]) -> int:
        return self._forget(found.end(), guess=any(not region.sound for region in self._regions))

    def _forget(self, end: int, guess: bool) -> int:
        """A closing tag alone ends thinking that began at the start: what came before was no answer.

        A `guess` is a tag that may as well stand in a string of a broken answer.
        """
        self._visible = end
        self._regions.clear()
        self._skipped.clear()
        self._fences.clear()
        self._group, self._uncertain, self._guess = None, False, guess
        self._prose = Prose(self._flat, end)
        return end

    def _skip(self, start: int, end: int) -> int:
        self._skipped.append((start, end))
        return end

    def _at_think(self, found: re.Match[str]) -> int:
        if self._uncertain:
            return found.end()
        end = end_of_thinking(self._flat, found.start())
        return self._skip(found.start(), end if end is not None else len(self._flat))

    def _at_comment(self, found: re.Match[str]) -> int:
        if self._uncertain:
            return found.end()
        end = self._flat.find("-->", found.end())
        return self._skip(found.start(), end + 3) if end >= 0 else self._unfinished(found.start())

    def _at_tag(self, found: re.Match[str]) -> int:
        tag = TAG.match(self._flat, found.start())
        assert tag is not None
        name = tag["name"].lower()
        if starts_row(self._flat, tag):
            return self._row(tag)
        if "{" in tag["attributes"]:
            return found.end()
        if not tag["close"]:
            return self._unfinished(tag.start()) if tag.end() == len(self._flat) else found.end()
        if tag["slash"] and name in REASON_KEYS | EVIDENCE_KEYS and not self._uncertain:
            self._orphan = found.start()
        if name in _OPAQUE_TAGS and not self._uncertain and not tag["slash"] and not tag["attributes"].endswith("/"):
            end = self._flat.find(f"</{tag['name']}>", tag.end())
            return self._skip(tag.start(), end + len(name) + 3) if end >= 0 else self._unfinished(tag.start())
        if name in _WRAPPER_TAGS:
            self._group = None if tag["slash"] else tag.start()
        return tag.end()

    def _row(self, tag: re.Match[str]) -> int:
        start = tag.start()
        element = read_row(self._text, self._flat, tag)
        if element.state == "whole":
            row = row_of(element.fields, self._book, start, element.end)
            self._add(Region("xml", start, element.end, (row,) if row else (), lone=True))
        else:
            cut = Cut(self._book.named(element.fields) or (), start, element.end)
            self._add(Region("xml", start, element.end, cuts=(cut,), sound=False, lone=True))
        self._uncertain |= element.state == "broken"
        return max(element.end, start + 1)

    def _at_stub(self, found: re.Match[str]) -> int:
        name = found[0].strip("</").lower()
        if any(known.startswith(name) for known in ROW_TAGS | _WRAPPER_TAGS):
            self._unfinished(found.start())
        return len(self._flat)
