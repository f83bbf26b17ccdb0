"""The judge behind an OpenAI-compatible endpoint: `/chat/completions` or `/responses` (SPEC 4, 7, 11)."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rubric_env._loops import PerLoop
from rubric_env.judges._ability import Mode, Streaming, ability_of
from rubric_env.judges._bill import Bill
from rubric_env.judges._completion import Answer
from rubric_env.judges._format import ChatFormat, Format, ResponsesFormat
from rubric_env.judges._hints import is_crowded, rate_hints
from rubric_env.judges._json import shared_json, to_json
from rubric_env.judges._redact import hide
from rubric_env.judges._route import route_to
from rubric_env.judges.classify import Problem
from rubric_env.judges.credentials import Credentials, NoCredential
from rubric_env.judges.prices import load_prices
from rubric_env.judges.protocol import CallFault, Picture, Prompt, RateHints, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.settings import JudgeSettings

LATELY = 300.0
"""Seconds for which an answer shows that the endpoint takes the key."""

NEW_KEYS = 2
"""New keys that a call tries although none of them ever worked; one that did has expired since, and costs nothing."""

_AT_WORK = frozenset({FaultKind.TIMEOUT, FaultKind.CONNECTION, FaultKind.EMPTY, FaultKind.REFUSAL})
"""Faults of an answer that a model had begun: its tokens cost something, whether they are counted or not."""


class ChatJudge:
    """Asks one model. Serves any number of calls at a time, in any number of event loops.

    A call is bounded in wall time and bytes, and makes no retries but a few that cannot repeat: less structured output
    or streaming where the endpoint refuses it, fresh keys after a 401 or 403, and the other name of `max_tokens`. Each
    of these requests counts as a call in `usage`.
    """

    _format: ClassVar[Format] = ChatFormat()

    def __init__(self, settings: JudgeSettings, credentials: Credentials) -> None:
        from rubric_env.judges._wire import Wire

        self.model = settings.model
        self.endpoint = credentials.base_url
        self.quota = f"{credentials.base_url} {self.model} {credentials.fingerprint}"
        self._sampling = self._format.sampling(settings)
        self.identity = " ".join(
            [self._format.name, self.endpoint, self.model, *(f"{name}={v}" for name, v in self._sampling.items())]
        )
        self._per_timeout = settings.per_timeout
        self._stream = settings.stream
        self._vision = settings.vision != "off"
        self._credentials = credentials
        self._prices = load_prices(settings.prices)
        self._ability = ability_of(credentials.base_url + self._format.path, self.model)
        self._route = route_to(credentials.base_url)
        self._wire = Wire(credentials, self._route, settings.max_in_flight)
        self._clients = PerLoop(self._new_client)

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault:
        """Judge one block within `timeout` seconds, with as much structured output as the endpoint has."""

        async def work(call: _Call) -> Answer | Problem:
            refused = False
            async with self._ability.visit(timeout) as visit:
                while True:
                    mode, seen = visit.mode, prompt.pictures if self.sees and not refused else ()
                    call.mode, call.marker = mode.label, prompt.marker if mode is Mode.PLAIN else None
                    if seen:
                        question = await asyncio.to_thread(self._question, prompt, mode, seen)
                    else:
                        question = self._question(prompt, mode)
                    outcome = await self._exchange(question, self._structure(prompt, mode), call)
                    if isinstance(outcome, Answer):
                        visit.answered()
                        if seen:
                            self._ability.pictures_taken()
                        return outcome
                    if seen and self._ability.pictures_refused(outcome.fault):
                        refused = True
                        continue
                    match outcome.remedy:
                        case "lower" | "loosen" if visit.refused(too_complex=outcome.remedy == "loosen"):
                            continue
                        case "plain" if visit.empty():
                            continue
                    return outcome

        return await self._bounded(work, timeout)

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> Reply | CallFault:
        """A free question: `messages` as they are, the answer as plain text, within the per-call timeout."""
        question = self._format.conversation(messages)
        return await self._bounded(lambda call: self._exchange(question, {}, call), self._per_timeout)

    def client(self) -> Any:
        """The `openai.AsyncOpenAI` of the running loop, for questions of one's own; it makes no retries."""
        return self._clients.here()

    async def aclose(self) -> None:
        """Close the connections of the running loop. The judge can be used again."""
        await self._wire.aclose()
        if client := self._clients.take():
            await client.close()

    def _new_client(self) -> Any:
        from rubric_env.judges._client import make_client

        return make_client(self._credentials, self._route, self._per_timeout)

    @property
    def sees(self) -> bool:
        """Whether pictures may be shown: until the endpoint refuses one, or `vision` is off."""
        return self._vision and not self._ability.blind

    def _question(self, prompt: Prompt, mode: Mode, pictures: Sequence[Picture] = ()) -> bytes:
        """What is asked; reads the files of `pictures`."""
        contract = prompt.contract_plain if mode is Mode.PLAIN else prompt.contract_json
        if pictures:
            form = self._format
            parts = [form.text_part(shared_json(prompt.shared))]
            for picture in pictures:
                parts.append(form.text_part(to_json(f"Picture {picture.address}:")))
                parts.append(form.picture_part(b"data:image/png;base64," + b64encode(picture.path.read_bytes())))
            parts.append(form.text_part(to_json(f"{prompt.rows}\n{contract}")))
            return form.question(shared_json(prompt.system), parts)
        # One string of the shared text, which is encoded once a rollout, and the block's own.
        user = shared_json(prompt.shared)[:-1] + to_json(f"\n{prompt.rows}\n{contract}")[1:]
        return self._format.question(shared_json(prompt.system), user)

    def _structure(self, prompt: Prompt, mode: Mode) -> dict[str, Any]:
        match mode:
            case Mode.PLAIN:
                return {}
            case Mode.OBJECT:
                return self._format.structure(None)
            case _:
                return self._format.structure(prompt.schema if mode is Mode.SCHEMA else prompt.loose_schema)

    async def _bounded(self, work: Callable[[_Call], Awaitable[Answer | Problem]], timeout: float) -> Reply | CallFault:
        call = _Call(Bill(self.model, self._prices))
        start = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                outcome = await work(call)
        except TimeoutError:
            outcome = self._out_of_time(call, Fault(FaultKind.TIMEOUT, f"no whole answer within {timeout:g} s"))
        seconds = time.monotonic() - start
        usage = call.bill.usage
        if isinstance(outcome, Answer):
            text = hide(outcome.text, call.reading.secrets if call.reading else ())
            truncated, cut = outcome.truncated, outcome.cut
            return Reply(text, usage, seconds, call.marker, call.mode, truncated, cut, call.hints)
        limit = outcome.context_limit
        return CallFault(outcome.fault, usage, seconds, outcome.retry_after, call.hints, context_limit=limit)

    def _out_of_time(self, call: _Call, fault: Fault) -> Answer | Problem:
        self._ability.breaks = True
        outcome, tokens = call.reading.stopped(fault) if call.reading else (Problem(fault), None)
        call.bill.close(tokens)
        return outcome

    async def _exchange(self, question: bytes, structure: Mapping[str, Any], call: _Call) -> Answer | Problem:
        """One request, and again after a refusal that a fresh key, less streaming or another field name may cure."""
        renamed, refused, key = False, 0, ""
        try:
            key = await self._credentials.key()
            while True:
                streaming = self._streaming()
                outcome = await self._request(key, question, structure, streaming, call)
                if isinstance(outcome, Answer):
                    self._credentials.worked(key)
                    return outcome
                if self._ability.stream_refused(streaming, outcome.fault):
                    continue
                if outcome.remedy == "key":
                    fresh = await self._credentials.refresh(key)
                    refused += fresh == key or not self._credentials.has_worked(key)
                    # The same key again gets a second chance, unless only a page's 403 speaks against it.
                    if refused > (NEW_KEYS if fresh != key else 0 if outcome.blocked else 1):
                        return self._blamed(outcome, key)
                    key = fresh
                elif outcome.remedy == "rename" and "max_tokens" in self._sampling and not renamed:
                    renamed = True
                    self._ability.max_tokens_name = "max_completion_tokens"
                else:
                    return self._blamed(outcome, key)
        except NoCredential as error:
            kind = FaultKind.AUTH if key else FaultKind.NO_CREDENTIAL
            return Problem(Fault(kind, str(error)))

    def _blamed(self, problem: Problem, key: str) -> Problem:
        """A page that refuses the request is about this question where the key was taken lately, else about us all."""
        if not problem.blocked:
            return problem
        kind = FaultKind.CONTENT_FILTER if self._credentials.has_worked(key, within=LATELY) else FaultKind.SERVER
        return replace(problem, fault=replace(problem.fault, kind=kind))

    def _streaming(self) -> Streaming:
        """How the next answer is to be streamed."""
        wanted = self._stream == "on" or (self._stream == "auto" and self._ability.breaks)
        return self._ability.streaming if wanted else Streaming.NONE

    async def _request(
        self, key: str, question: bytes, structure: Mapping[str, Any], streaming: Streaming, call: _Call
    ) -> Answer | Problem:
        from rubric_env.judges._reading import Reading
        from rubric_env.judges._wire import NoReply

        fields = self._format.fields(self._sampling, streaming, self._ability)
        body = b"{%b,%b" % (question, to_json({"model": self.model, **structure, **fields})[1:])
        reading = call.reading = Reading(self._format, [key])
        call.bill.sent()
        try:
            async with self._wire.post(self._format.path, key, body) as incoming:
                call.hints = rate_hints(incoming.headers)
                outcome, tokens = await reading.read(incoming)
        except NoReply as error:
            self._ability.breaks |= error.broke
            call.bill.close(worked=reading.begun)
            return error.problem
        fault = outcome.fault if isinstance(outcome, Problem) else None
        call.bill.close(tokens, worked=fault is None or fault.kind in _AT_WORK)
        if fault is not None and fault.kind is FaultKind.RATE_LIMIT and is_crowded(fault.detail):
            call.hints = replace(call.hints or RateHints(), crowded=True)
        return outcome


class ResponsesJudge(ChatJudge):
    """The same through `/responses`, which has no seed."""

    _format: ClassVar[Format] = ResponsesFormat()


ENDPOINT_JUDGES: Mapping[str, type[ChatJudge]] = {"chat": ChatJudge, "responses": ResponsesJudge}
"""By `settings.backend`."""


class _Call:
    """What is known of a call so far; it outlives a timeout."""

    def __init__(self, bill: Bill) -> None:
        self.bill = bill
        self.mode = ""
        self.marker: str | None = None
        self.hints: RateHints | None = None
        self.reading: Any = None
