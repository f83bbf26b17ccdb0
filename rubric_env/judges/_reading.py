"""Reads one reply as it comes, whole or streamed, and tells what it says, or said before it stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping

from verdict_parsers._think import sections

from rubric_env.judges._assembly import Assembly
from rubric_env.judges._completion import Answer, Tokens, read_completion, read_tokens, read_value
from rubric_env.judges._format import Format
from rubric_env.judges._sse import SNIFF, EventDecoder, is_stream
from rubric_env.judges._wire import MAX_BODY, Incoming, NoReply, too_large
from rubric_env.judges.classify import Problem, classify_response
from rubric_env.scoring.faults import Fault, FaultKind

STALL = 30.0
"""Seconds without news after which an answer that had begun is given up. Before its first words a model may think."""

AFTERWORD = 5.0
"""Seconds for the token counts that follow a whole answer."""

LINGER = 0.25
"""Seconds for the end of a stream that has said its last word, so that its connection can be used again."""

REFUSAL = 5.0
"""Seconds for the words of a refusal, whose status says enough without them."""

_BROKEN_OFF = frozenset({FaultKind.SERVER, FaultKind.TIMEOUT})

Outcome = tuple[Answer | Problem, Tokens | None]


class Reading:
    """Of one reply."""

    def __init__(self, form: Format, secrets: Iterable[str]) -> None:
        self._form = form
        self.secrets = list(secrets)
        self._assembly: Assembly | None = None
        self._status = 0
        self._headers: Mapping[str, str] = {}

    async def read(self, incoming: Incoming) -> Outcome:
        """Until its end. Raises NoReply when there is none and nothing can be made of what came."""
        self._status, self._headers = incoming.status, incoming.headers
        if not self.begun:
            words = await _words(incoming)
            return classify_response(self._status, self._headers, words, self.secrets), None
        head, size = b"", 0
        while len(head) < SNIFF and (chunk := await incoming.chunk()):
            # Some endpoints send white space while their model is at work.
            head = (head + chunk).lstrip()
            size += len(chunk)
            if size > MAX_BODY:
                raise too_large()
        if is_stream(head):
            return await self._read_stream(incoming, head)
        body = await incoming.rest(head)
        return read_completion(self._status, self._headers, body, self.secrets, self._form.completion)

    @property
    def begun(self) -> bool:
        """A model's answer was on its way."""
        return 200 <= self._status < 300

    def stopped(self, fault: Fault) -> Outcome:
        """What came until the reading was stopped: a part of an answer, or else `fault`."""
        assembly = self._assembly
        if assembly is None:
            return Problem(fault), None
        if not assembly.whole:
            return _part(assembly, Problem(fault)), read_tokens(assembly.usage)
        value = assembly.completion()
        outcome, tokens = read_value(value, self._status, self._headers, self.secrets, spoken=assembly.spoken)
        if isinstance(outcome, Problem) and outcome.fault.kind in _BROKEN_OFF:
            outcome = _part(assembly, outcome)
        return outcome, tokens

    async def _read_stream(self, incoming: Incoming, head: bytes) -> Outcome:
        assembly = self._assembly = self._form.assembly()
        try:
            await _follow(incoming, head, assembly)
        except TimeoutError:
            return self.stopped(Fault(FaultKind.TIMEOUT, f"the answer stalled: nothing new for {STALL:g} s"))
        except NoReply as error:
            if not assembly.begun:
                raise
            return self.stopped(error.problem.fault)
        return self.stopped(Fault(FaultKind.CONNECTION, "the stream ended before the answer did"))


async def _words(incoming: Incoming) -> bytes:
    """As much of a refusal as comes."""
    words = b""
    with contextlib.suppress(NoReply, TimeoutError):
        async with asyncio.timeout(REFUSAL):
            while len(words) < MAX_BODY and (chunk := await incoming.chunk()):
                words += chunk
    return words


async def _follow(incoming: Incoming, chunk: bytes, assembly: Assembly) -> None:
    """Until nothing more comes, or is worth waiting for. Raises NoReply, and TimeoutError for an answer that stalls."""
    events = EventDecoder()
    clock = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(None) as patience:
            while chunk and not assembly.done:
                news = [assembly.add(event) for event in events.feed(chunk)]
                if events.pending + assembly.size > MAX_BODY:
                    raise too_large()
                if any(news) and (assembly.begun or assembly.whole):
                    patience.reschedule(clock() + (AFTERWORD if assembly.whole else STALL))
                if not assembly.done:
                    chunk = await incoming.chunk()
            for event in events.end():
                assembly.add(event)
            patience.reschedule(clock() + LINGER)
            while chunk:
                chunk = await incoming.chunk()
    except (TimeoutError, NoReply):
        if not assembly.whole:
            raise


def _part(assembly: Assembly, problem: Problem) -> Answer | Problem:
    """What came of an answer that stopped early, unless it is thinking alone."""
    text = assembly.text
    ends = [0, *(at for section in sections(text) for at in section), len(text)]
    if not any(text[start:end].strip() for start, end in zip(ends[::2], ends[1::2], strict=True)):
        return problem
    kind = FaultKind.TIMEOUT if problem.fault.kind is FaultKind.TIMEOUT else FaultKind.CONNECTION
    return Answer(text, False, Fault(kind, problem.fault.detail))
