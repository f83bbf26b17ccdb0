"""What one endpoint can do for one model, found out once in this process and shared by all its judges (SPEC 4)."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum

from rubric_env.scoring.faults import Fault, FaultKind

GRACE = 0.5
"""Seconds that first calls wait for the one that finds out: a refused parameter comes back before any token is made."""

POLL = 0.02
REFUSALS = 5
"""Complaints of pictures in a row after which an endpoint is blind, though it took some, or said that one is bad."""

EMPTIES = 2
"""Calls that structured output left empty and plain text did not, before plain text is remembered."""


class Mode(IntEnum):
    """Structured output, the strictest first."""

    SCHEMA = 0
    LOOSE = 1
    OBJECT = 2
    PLAIN = 3

    @property
    def label(self) -> str:
        return ("json_schema", "json_schema_loose", "json_object", "plain")[self]


class Streaming(IntEnum):
    """How an answer is streamed: with token counts at its end, without, or not at all."""

    COUNTED = 0
    BARE = 1
    NONE = 2


_COMPLAINTS = frozenset({FaultKind.BAD_REQUEST, FaultKind.SERVER, FaultKind.AUTH, FaultKind.UNKNOWN_MODEL})
_COUNTS = re.compile(r"stream_options|include_usage")
_STREAM = re.compile(r"\bstream(?:s|ed|ing)?\b|流式", re.IGNORECASE)
_PICTURES = re.compile(
    r"image|vision|picture|multi-?modal|content (?:must|should) be a? ?string|expected (?:a )?string|"
    r"content.{0,40}(?:str type|valid string)|图片|图像|多模态|视觉",
    re.IGNORECASE,
)
_ODD = re.compile(
    r"invalid (?!content)|corrupt|decod|process|dimension|too (?:large|big|small|many)|exceed|无效|损坏|过大|尺寸",
    re.IGNORECASE,
)
"""What is said of one picture, not of all."""
_MISSING = re.compile(r"support|implement|allow|permit|verif|enabled|available|支持", re.IGNORECASE)


class Ability:
    """Starts at the strictest mode. A lower one is remembered once an answer came in it; it never climbs back.

    Until the first answer one call goes ahead and the others wait for what it learns, `GRACE` seconds at most from the
    last news. Safe in several event loops and threads: nothing here belongs to a loop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mode = Mode.SCHEMA
        self._proven = False
        self._scout: Visit | None = None
        self._news = 0.0
        self._empties = 0
        self._refusals = 0
        self._sighted = False
        self.max_tokens_name = "max_tokens"
        """The name by which the endpoint knows the cap on output tokens."""
        self.streaming = Streaming.COUNTED
        """The most that was not refused."""
        self.blind = False
        """Pictures are refused, whatever they are."""
        self.breaks = False
        """An answer that was to come whole ran out of time, or its connection broke: a stream may save a part."""

    def pictures_refused(self, fault: Fault) -> bool:
        """Did the endpoint complain of pictures? Then it is shown none from now on.

        Not so when it may have complained of one picture: a policy could blind the judge of all others with it.
        """
        if fault.kind not in _COMPLAINTS or not _PICTURES.search(fault.detail):
            return False
        of_one = self._sighted or (_ODD.search(fault.detail) and not _MISSING.search(fault.detail))
        with self._lock:
            self._refusals += 1
            self.blind = self.blind or not of_one or self._refusals >= REFUSALS
        return True

    def pictures_taken(self) -> None:
        """An answer came to a question with pictures."""
        with self._lock:
            self._sighted, self._refusals = True, 0

    def stream_refused(self, sent: Streaming, fault: Fault) -> bool:
        """Did the endpoint complain of how it was asked to stream? Then it is asked for less from now on."""
        if sent is Streaming.NONE or fault.kind not in _COMPLAINTS:
            return False
        if sent is Streaming.COUNTED and _COUNTS.search(fault.detail):
            lower = Streaming.BARE
        elif _STREAM.search(fault.detail) and (fault.kind is FaultKind.BAD_REQUEST or _MISSING.search(fault.detail)):
            lower = Streaming.NONE
        else:
            return False
        self.streaming = max(self.streaming, lower)
        return True

    @asynccontextmanager
    async def visit(self, timeout: float) -> AsyncIterator[Visit]:
        """One call's stay; ends however the call does. It waits for another's news at most a quarter of `timeout`."""
        visit, patience = Visit(self), time.monotonic() + timeout / 4
        with self._lock:
            if not self._proven and self._scout is None:
                self._scout, self._news = visit, time.monotonic()
        # An asyncio.Event would belong to one loop; those who wait may live in several.
        while self._scout not in (None, visit) and time.monotonic() < min(self._news + GRACE, patience):  # noqa: ASYNC110
            await asyncio.sleep(POLL)
        visit.mode = self._mode
        try:
            yield visit
        finally:
            with self._lock:
                if self._scout is visit:
                    self._scout = None

    def _lowered(self, mode: Mode) -> None:
        """A tentative step, for calls that start before anything is proven."""
        with self._lock:
            if not self._proven:
                self._mode = max(self._mode, mode)
                self._news = time.monotonic()

    def _forget(self) -> None:
        with self._lock:
            if not self._proven:
                self._mode = Mode.SCHEMA

    def _answered(self, mode: Mode) -> None:
        with self._lock:
            self._mode = max(self._mode, mode)
            self._proven = True

    def _left_empty(self) -> None:
        with self._lock:
            self._proven = True
            self._empties += 1
            if self._empties >= EMPTIES:
                self._mode = Mode.PLAIN


class Visit:
    """One call's way down. `mode` is what to ask with now."""

    def __init__(self, ability: Ability) -> None:
        self._ability = ability
        self._after_empty = False
        self.mode = Mode.SCHEMA

    def refused(self, *, too_complex: bool) -> bool:
        """The endpoint refused this mode. False when there is nothing lower to try."""
        if self.mode is Mode.PLAIN:
            self._ability._forget()
            return False
        if too_complex and self.mode is Mode.SCHEMA:
            self.mode = Mode.LOOSE
        else:
            self.mode = Mode.OBJECT if self.mode < Mode.OBJECT else Mode.PLAIN
        self._ability._lowered(self.mode)
        return True

    def empty(self) -> bool:
        """Structured output came back empty. False in plain text, where nothing lower is left."""
        if self.mode is Mode.PLAIN:
            return False
        self._after_empty, self.mode = True, Mode.PLAIN
        return True

    def answered(self) -> None:
        """Text came in this mode."""
        if self._after_empty:
            self._ability._left_empty()
        else:
            self._ability._answered(self.mode)


_ABILITIES: dict[tuple[str, str], Ability] = {}


def ability_of(url: str, model: str) -> Ability:
    """The one record of this endpoint, which the wire format is a part of, and model in this process."""
    return _ABILITIES.setdefault((url, model), Ability())
