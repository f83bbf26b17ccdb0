"""One JSON-like object or array, read in a single pass over what judges really write.

Read without doubt: trailing commas, missing commas between objects, comments, raw line breaks, unknown escapes, other
quotes, bare keys and words, Python literals, full-width punctuation. A quote that is not escaped inside a string leaves
the end of that string a guess: it is recorded (`Obj.breaks`), and `_repair` decides whether the row may count. Where
not even a guess is possible the reading stops, and everything from `doubt_from` on is uncertain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from verdict_parsers._chars import SKIP
from verdict_parsers._limits import MAX_DEPTH, MAX_TOKENS, Budget, TooMuch
from verdict_parsers._tokens import CLOSING_QUOTE, QUOTES, next_token
from verdict_parsers._values import Bare, Obj, StrictReader, Value, literal, unescape

_KEY = rf"(?:[{QUOTES}][^{QUOTES}\n]{{1,60}}[{QUOTES}]|\w{{1,60}}){SKIP}:"
_NEXT_KEY = re.compile(_KEY)
_LIKELY_END = {
    closing: re.compile(rf"(?<!\\){closing}(?={SKIP}(?:\}}|,{SKIP}{_KEY}))") for closing in set(CLOSING_QUOTE.values())
}
"""Where a string with stray quotes may end: before a brace, or before a comma and a key."""
_PLAIN_KEY = re.compile(r"\w*+")
_PLAIN = re.compile(r"[^\s\"'“”]{0,64}")
"""A string too simple to hide a stray quote."""
_ELLIPSIS = re.compile(r"\.{2,}|…+")


@dataclass(slots=True)
class Container:
    """What was read from `start` to `end`. `broken` are the objects that hold a guess, `open` is where a string starts
    that the text ends in."""

    tree: Obj | list[Value]
    start: int
    end: int
    closed: bool
    doubt_from: int | None
    broken: list[Obj]
    open: int | None = None


class _State(Enum):
    KEY = auto()
    COLON = auto()
    VALUE = auto()
    AFTER = auto()


@dataclass(slots=True)
class _Frame:
    """One open bracket. `suspect` is where the first string starts whose end nothing has confirmed yet; `loose` is
    where the first object inside starts that ends with a string: its text may go on behind it."""

    node: Obj | list[Value]
    start: int
    state: _State
    key: str = ""
    key_start: int = -1
    value: Value = None
    value_start: int = -1
    value_end: int = -1
    suspect: int | None = None
    closing: str = '"'
    loose: int | None = None


@dataclass(slots=True)
class ContainerReader:
    """Reads the containers of one text. All of them together take time linear in its length."""

    text: str
    flat: str
    _stack: list[_Frame] = field(default_factory=list, init=False)
    _broken: list[Obj] = field(default_factory=list, init=False)
    _doubt: int | None = field(default=None, init=False)
    _hopeless: set[str] = field(default_factory=set, init=False)
    """Quotes for which no likely end is left: a search that failed once is not made again."""
    _strict: StrictReader = field(default_factory=StrictReader, init=False)
    _tokens: Budget = field(default_factory=lambda: Budget(MAX_TOKENS, "tokens"), init=False)

    def read(self, start: int) -> Container:
        """Read the object or array whose bracket is at `start`."""
        if strict := self._strict.read(self.text, start):
            return Container(strict[0], start, strict[1], True, None, [])
        self._stack, self._broken, self._doubt = [], [], None
        root = self._open(start)
        position = start + 1
        while self._stack:
            self._tokens.take()
            kind, at, end = next_token(self.text, self.flat, position)
            cut = kind == "open" and self._stack[-1].state in {_State.KEY, _State.VALUE}
            if cut or kind in {"stop", "end"}:
                if cut and self._stack[-1].state is _State.KEY:
                    self._stack[-1].key = self.flat[at + 1 : end]
                self._check_key()
                self._abandon(end if cut else at)
                return Container(root, start, end if cut else at, False, self._doubt, self._broken, at if cut else None)
            if kind == "string":
                fits = self._take_string(at, end)
            elif kind == "bare":
                fits = self._take_bare(at, end)
            else:
                fits = kind == "mark" and self._take_mark(self.flat[at], at)
            position = end if fits else self._recover(at)
            if position < 0:
                self._doubt_from(at)
                self._abandon(at)
                return Container(root, start, at, False, self._doubt, self._broken)
        return Container(root, start, position, True, self._doubt, self._broken)

    def _open(self, at: int) -> Obj | list[Value]:
        if len(self._stack) == MAX_DEPTH:
            raise TooMuch("nesting")
        if self.flat[at] == "{":
            node: Obj | list[Value] = Obj(start=at, closed=False)
            self._stack.append(_Frame(node, at, _State.KEY))
        else:
            node = []
            self._stack.append(_Frame(node, at, _State.VALUE))
        return node

    def _take_mark(self, mark: str, at: int) -> bool:
        frame = self._stack[-1]
        in_object = isinstance(frame.node, Obj)
        if mark in "{[":
            fits = frame.state is _State.VALUE or (
                frame.state is _State.AFTER and not in_object and isinstance(frame.value, Obj | list)
            )
            if fits:
                self._open(at)
            return fits
        if mark == ":":
            if frame.state is not _State.COLON:
                return False
            frame.state, frame.suspect = _State.VALUE, None
            return True
        if in_object:
            return self._take_mark_in_object(mark, at)
        if mark == ",":
            frame.state = _State.VALUE
            return True
        if mark == "}" and not (isinstance(frame.value, Obj | list) and len(self._stack) > 1):
            return False
        self._close(at)
        return mark == "]" or self._take_mark(mark, at)

    def _take_mark_in_object(self, mark: str, at: int) -> bool:
        frame = self._stack[-1]
        if mark == "]":
            return frame.state is _State.AFTER and isinstance(frame.value, list)
        if frame.state is _State.COLON:
            return False
        if frame.state is _State.VALUE:
            self._put(Bare(""), at, at)
        if frame.state is _State.AFTER:
            self._commit(frame)
        if mark == "}":
            self._close(at)
        return True

    def _take_string(self, at: int, end: int) -> bool:
        frame = self._stack[-1]
        value = unescape(self.text[at + 1 : end - 1])
        if frame.state is _State.AFTER and isinstance(frame.node, Obj) and _NEXT_KEY.match(self.flat, at):
            if frame.suspect is not None and not _PLAIN.fullmatch(str(frame.value)):
                self._mark_broken(frame.node, frame.suspect, frame.value_end)
            self._commit(frame)
        if frame.state not in {_State.KEY, _State.VALUE}:
            return False
        if frame.suspect is None:
            frame.suspect = at
        frame.closing = CLOSING_QUOTE[self.text[at]]
        if frame.state is _State.KEY:
            frame.key, frame.key_start, frame.state = value, at, _State.COLON
        else:
            self._put(value, at, end)
        return True

    def _take_bare(self, at: int, end: int) -> bool:
        frame = self._stack[-1]
        word = self.flat[at:end]
        if _ELLIPSIS.fullmatch(word.strip()) and frame.state is not _State.COLON:
            return True
        if frame.state is _State.KEY:
            frame.key, frame.key_start, frame.state = word.strip(), at, _State.COLON
        elif frame.state is _State.VALUE:
            frame.suspect = None if isinstance(frame.node, Obj) else frame.suspect
            self._put(literal(word), at, end)
        else:
            return False
        return True

    def _put(self, value: Value, start: int, end: int) -> None:
        frame = self._stack[-1]
        frame.value, frame.value_start, frame.value_end, frame.state = value, start, end, _State.AFTER
        if isinstance(frame.node, list):
            frame.node.append(value)

    def _commit(self, frame: _Frame) -> None:
        assert isinstance(frame.node, Obj)
        frame.node.pairs.append((frame.key, frame.value))
        frame.node.spans.append((frame.key_start, frame.value_end))
        frame.state = _State.KEY

    def _close(self, at: int) -> None:
        frame = self._stack.pop()
        if isinstance(frame.node, Obj):
            frame.node.end, frame.node.closed = at + 1, True
        if self._stack:
            if isinstance(frame.value, str) and not isinstance(frame.value, Bare) and self._stack[-1].loose is None:
                self._stack[-1].loose = frame.start
            self._put(frame.node, frame.start, at + 1)

    def _recover(self, at: int) -> int:
        """Guess where the suspect string of the innermost object really ends; -1 when there is nothing to guess."""
        frame = self._stack[-1]
        self._check_key(closed=self.flat[at] in ",}")
        if not isinstance(frame.node, Obj) or frame.suspect is None or frame.closing in self._hopeless:
            return -1
        end = _LIKELY_END[frame.closing].search(self.flat, at)
        if end is None:
            self._hopeless.add(frame.closing)
            return -1
        while frame.node.spans and frame.node.spans[-1][1] > frame.suspect:
            frame.node.pairs.pop()
            frame.key, frame.key_start = "", frame.node.spans.pop()[0]
        frame.value, frame.value_end, frame.state = "", end.end(), _State.AFTER
        self._mark_broken(frame.node, frame.suspect, end.end())
        return end.end()

    def _check_key(self, *, closed: bool = False) -> None:
        """A first key without a colon that is no plain word, or is followed by a comma or a brace (`closed`), is the
        rest of a text whose quotes closed and opened on the way here.

        Whatever stands behind the first text that may have gone on like this is uncertain, and so is every guess.
        """
        frame = self._stack[-1]
        no_key = frame.state in {_State.KEY, _State.COLON} and (closed or not _PLAIN_KEY.fullmatch(frame.key))
        if no_key and isinstance(frame.node, Obj) and not frame.node.pairs:
            self._suspect(*(node.breaks[0][0] for node in self._broken[:1]), *(each.loose for each in self._stack))

    def _doubt_from(self, at: int) -> None:
        """Reading failed at `at`. It went wrong in the first string whose end nothing confirms; between two objects, in
        the one just before, whose bracket stood in a string, or where that string began."""
        frame = self._stack[-1]
        self._suspect(at, *(frame.suspect for frame in self._stack))
        if frame.state is _State.AFTER and isinstance(frame.value, Obj | list):
            self._suspect(frame.value_start, frame.loose)
        elif isinstance(frame.node, list) and self.flat[at] != ":":
            self._suspect(frame.loose, *(item.start for item in frame.node[-2:] if isinstance(item, Obj)))
        elif frame.state is _State.KEY:
            self._suspect(*(frame.loose for frame in self._stack))

    def _suspect(self, *places: int | None) -> None:
        self._doubt = min((place for place in (self._doubt, *places) if place is not None), default=None)

    def _mark_broken(self, node: Obj, start: int, end: int) -> None:
        if not node.breaks:
            self._broken.append(node)
        node.breaks.append((start, end))

    def _abandon(self, at: int) -> None:
        """Leave every open bracket as it stands: what was whole in it stays, the pair in work becomes `pending`."""
        while self._stack:
            frame = self._stack.pop()
            if isinstance(frame.node, Obj):
                frame.node.end = at
                if frame.state is _State.AFTER and isinstance(frame.value, Obj | list):
                    self._commit(frame)
                elif frame.state is not _State.KEY:
                    frame.node.pending = [(frame.key, frame.value if frame.state is _State.AFTER else Bare(""))]
            if self._stack:
                self._put(frame.node, frame.start, at)
