"""What one delivered file looks like to a judge: addressed units of text, cut to a budget without hiding the cut."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rubric_env.evidence._tokens import estimate_tokens

if TYPE_CHECKING:
    from rubric_env.evidence._reading import Units

Status = Literal["read", "cut", "same", "unsupported", "unreadable", "empty"]

PIECE = 1500
"""Characters of a unit that are kept or cut as one; a longer unit is shown in several pieces under the same address."""

FILE_BYTES = 8 * 1024 * 1024
"""Read of one file: twenty times what the default budget of 100,000 tokens can show."""

HEAD_SHARE = 2 / 3
"""Of what fits, so much comes from the start and the rest from the end, where conclusions stand."""


ENCODED = 2000
"""Characters of base64 or hex without a break that no one reads: they are shortened."""

# From the start of a run only: searched for at each of its characters, a run that is too short costs its square.
_ENCODED_DATA = re.compile(rf"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{{{ENCODED},}}")


class Unreadable(Exception):
    """A file that cannot be read as what it claims to be; the message says why, for a judge."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one file may cost: bytes read from its start, and estimated tokens kept."""

    tokens: int
    file_bytes: int = FILE_BYTES


class Unit(NamedTuple):
    """A passage that a verdict cites as `name#label`: paragraph `¶3`, table `row 7`, line `L7`, JSON value `$.a[2]`.

    `mark` says what a reader of the file itself would see at once: "hidden", "notes", "comment by A", "alt text".
    """

    label: str
    text: str
    mark: str = ""

    @property
    def shown(self) -> str:
        mark = f" ({self.mark})" if self.mark else ""
        # No line of the content may begin like an address of ours.
        return f"[{self.label}]{mark} {self.text}".replace("\n[", "\n [")


@dataclass(frozen=True, slots=True)
class Extract:
    """One source of evidence.

    `head` and `tail` are the units shown; between them `omitted` units were left out. `note` is a sentence for the
    judge. `ours` marks a failure or cut of ours, so that a judge may answer null; what nobody can open is the policy's.
    `size` is in bytes. `same_as` names the source of the same bytes that is shown in its place.
    """

    name: str = ""
    kind: str = ""
    status: Status = "read"
    note: str = ""
    ours: bool = False
    size: int = 0
    head: tuple[Unit, ...] = ()
    tail: tuple[Unit, ...] = ()
    omitted: int = 0
    omitted_tokens: int = 0
    same_as: str = ""

    @property
    def units(self) -> tuple[Unit, ...]:
        return self.head + self.tail

    @property
    def gap(self) -> str:
        """How much was left out between head and tail, in words; empty when nothing was."""
        if not self.omitted:
            return ""
        return f"{self.omitted:,} passages, about {self.omitted_tokens:,} tokens, cut by the budget"

    @property
    def text(self) -> str:
        """The units as a judge sees them, each after its address in brackets."""
        gap = [f"({self.gap})"] if self.omitted else []
        return "\n".join([unit.shown for unit in self.head] + gap + [unit.shown for unit in self.tail])

    @classmethod
    def of(cls, units: Iterable[Unit], limits: Limits, *, notes: Iterable[object] = (), cut: bool = False) -> Extract:
        """Keep what fits into `limits.tokens`; shorten runs of base64 or hex, such as embedded pictures.

        `cut` says that something was already left out of `units`. `notes` are turned into text after the last unit was
        read, so that one of them may count as the units pass.
        """
        shortened = 0

        def short(units: Iterable[Unit]) -> Iterator[Unit]:
            nonlocal shortened
            for unit in units:
                if len(unit.text) < ENCODED:
                    yield unit
                else:
                    text, runs = _ENCODED_DATA.subn(_shortened, unit.text)
                    shortened += runs
                    yield unit._replace(text=text)

        head, tail, omitted, omitted_tokens = _keep(_pieces(short(units), limits.tokens), limits.tokens)
        if shortened:
            notes = [*notes, f"encoded data shortened in {shortened:,} places"]
        cut = cut or shortened > 0 or omitted > 0
        return cls(
            status="cut" if cut else "read" if head else "empty",
            note="; ".join(map(str, notes)),
            ours=cut,
            head=head,
            tail=tail,
            omitted=omitted,
            omitted_tokens=omitted_tokens,
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """How files of one kind are recognised and read.

    `suffixes` are in lower case with their dot, `magic` are first bytes. `read` gets an absolute path, opens it through
    `open_regular`, and returns an Extract without name, kind and size; it raises Unreadable or OSError. A kind whose
    parser is worth attacking has `units` instead, which runs in a worker process; `contains` are beginnings of names of
    members of a container (zip, or a binary office file) that tell this kind from others.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, Limits], Extract] | None = None
    magic: tuple[bytes, ...] = ()
    units: Units | None = None
    contains: tuple[str, ...] = ()


def _shortened(run: re.Match[str]) -> str:
    text = run.group()
    return f"{text[:60]}[… {len(text) - 80:,} characters of encoded data …]{text[-20:]}"


def _pieces(units: Iterable[Unit], tokens: int) -> Iterator[Unit]:
    # Two pieces fit into any budget, at a token a character.
    size = max(40, min(PIECE, tokens // 3))
    for unit in units:
        text = unit.text
        start = 0
        while len(text) - start > size:
            middle, end = start + size // 2, start + size
            end = max(text.rfind("\n", middle, end), text.rfind(" ", middle, end)) + 1 or end
            yield unit._replace(text=text[start:end])
            start = end
        yield unit._replace(text=text[start:]) if start else unit


def _cost(unit: Unit) -> int:
    return estimate_tokens(f"{unit.shown}\n")


def _keep(units: Iterator[Unit], budget: int) -> tuple[tuple[Unit, ...], tuple[Unit, ...], int, int]:
    """Head, tail, and what lies between in units and (roughly) tokens. Only what may be kept is held and measured."""
    head: list[Unit] = []
    spent = 0
    # No unit costs less than two tokens, and no token has more than four characters: the tail cannot be longer.
    waiting: deque[Unit] = deque(maxlen=budget // 2 + 1)
    held = seen = characters = 0
    for unit in units:
        if not seen:
            cost = _cost(unit)
            if spent + cost <= HEAD_SHARE * budget:
                head.append(unit)
                spent += cost
                continue
        if len(waiting) == waiting.maxlen:
            held -= len(waiting[0].text)
        waiting.append(unit)
        held += len(unit.text)
        while held - len(waiting[0].text) > 4 * budget:
            held -= len(waiting.popleft().text)
        seen += 1
        characters += len(unit.text)
    tail: deque[Unit] = deque()
    tail_tokens = 0
    while waiting:
        cost = _cost(waiting[-1])
        if spent + tail_tokens + cost > budget:
            break
        tail.appendleft(waiting.pop())
        tail_tokens += cost
    if len(tail) == seen:
        return (*head, *tail), (), 0, 0
    omitted_characters = characters - sum(len(unit.text) for unit in tail)
    sample = "".join(unit.text for unit in [*head, *tail, *islice(waiting, 100)])
    return tuple(head), tuple(tail), seen - len(tail), omitted_characters * estimate_tokens(sample) // len(sample)
