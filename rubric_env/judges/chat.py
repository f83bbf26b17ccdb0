"""The judge behind an OpenAI-compatible `/chat/completions` (SPEC 4, 7, 11)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rubric_env.judges._ability import Mode, ability_of
from rubric_env.judges._completion import Answer, Tokens, read_completion
from rubric_env.judges.classify import Problem
from rubric_env.judges.credentials import Credentials, NoCredential
from rubric_env.judges.prices import Prices, cost_usd, load_prices
from rubric_env.judges.protocol import CallFault, Prompt, Reply
from rubric_env.scoring.faults import Fault, FaultKind
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import JudgeSettings

_SAMPLING = ("reasoning_effort", "temperature", "seed", "max_tokens")


class ChatJudge:
    """Asks one model. Serves any number of calls at a time, in any number of event loops.

    A call is bounded in wall time and bytes, and makes no retries but three that cannot repeat: less structured output
    where the endpoint refuses it, a fresh key after a 401 or 403, and the other name of `max_tokens`. Each of these
    requests counts as a call in `usage`.
    """

    def __init__(self, settings: JudgeSettings, credentials: Credentials) -> None:
        from rubric_env.judges._wire import Wire

        self.model = settings.model
        self._sampling = {name: value for name in _SAMPLING if (value := getattr(settings, name)) is not None}
        self.identity = " ".join(
            ["chat", credentials.base_url, self.model, *(f"{name}={value}" for name, value in self._sampling.items())]
        )
        self._per_timeout = settings.per_timeout
        self._credentials = credentials
        self._prices = load_prices(settings.prices)
        self._ability = ability_of(credentials.base_url, self.model)
        self._wire = Wire(credentials, settings.max_in_flight, settings.per_timeout)

    async def ask(self, prompt: Prompt, *, timeout: float) -> Reply | CallFault:
        """Judge one block within `timeout` seconds, with as much structured output as the endpoint has."""

        async def work(bill: _Bill) -> Answer | Problem:
            async with self._ability.visit() as visit:
                while True:
                    mode = visit.mode
                    bill.mode, bill.marker = mode.label, prompt.marker if mode is Mode.PLAIN else None
                    outcome = await self._exchange(_messages(prompt, mode), _response_format(prompt, mode), bill)
                    if isinstance(outcome, Answer):
                        visit.answered()
                        return outcome
                    match outcome.remedy:
                        case "lower" | "loosen" if visit.refused(too_complex=outcome.remedy == "loosen"):
                            continue
                        case "plain" if visit.empty():
                            continue
                    return outcome

        return await self._bounded(work, timeout)

    async def complete(self, messages: Sequence[Mapping[str, Any]]) -> Reply | CallFault:
        """A free question: `messages` as they are, the answer as plain text, within the per-call timeout."""
        return await self._bounded(lambda bill: self._exchange(messages, {}, bill), self._per_timeout)

    def client(self) -> Any:
        """The `openai.AsyncOpenAI` of the running loop, for questions of one's own; it makes no retries."""
        return self._wire.client()

    async def aclose(self) -> None:
        """Close the connections of the running loop. The judge can be used again."""
        await self._wire.aclose()

    async def _bounded(self, work: Callable[[_Bill], Awaitable[Answer | Problem]], timeout: float) -> Reply | CallFault:
        bill = _Bill(self.model, self._prices)
        start = time.monotonic()
        outcome: Answer | Problem
        try:
            async with asyncio.timeout(timeout):
                outcome = await work(bill)
        except TimeoutError:
            outcome = Problem(Fault(FaultKind.TIMEOUT, f"no whole answer within {timeout:g} s"))
        seconds = time.monotonic() - start
        if isinstance(outcome, Problem):
            return CallFault(outcome.fault, bill.usage, seconds, outcome.retry_after)
        return Reply(outcome.text, bill.usage, seconds, bill.marker, bill.mode, outcome.truncated)

    async def _exchange(
        self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any], bill: _Bill
    ) -> Answer | Problem:
        """One request, and once more with a fresh key when the first was refused, or with the other name of a field."""
        sendable = [_sendable(message) for message in messages]
        renamed = fresh = False
        try:
            key = await self._credentials.key()
            while True:
                outcome = await self._request(key, {"messages": sendable, **response_format}, bill)
                if isinstance(outcome, Answer):
                    return outcome
                if outcome.fault.kind is FaultKind.AUTH and not fresh:
                    fresh = True
                    key = await self._credentials.refresh()
                elif outcome.remedy == "rename" and "max_tokens" in self._sampling and not renamed:
                    renamed = True
                    self._ability.max_tokens_name = "max_completion_tokens"
                else:
                    return outcome
        except NoCredential as error:
            kind = FaultKind.AUTH if fresh else FaultKind.NO_CREDENTIAL
            return Problem(Fault(kind, str(error)))

    async def _request(self, key: str, question: Mapping[str, Any], bill: _Bill) -> Answer | Problem:
        sampling = {self._ability.max_tokens_name if n == "max_tokens" else n: v for n, v in self._sampling.items()}
        bill.sent()
        reply = await self._wire.post(key, {"model": self.model, **question, **sampling})
        if isinstance(reply, Problem):
            return reply
        outcome, tokens = read_completion(reply.status, reply.headers, reply.body, [key])
        bill.counted(tokens, answered=isinstance(outcome, Answer))
        return outcome


class _Bill:
    """What one call used so far; it outlives a timeout."""

    def __init__(self, model: str, prices: Prices) -> None:
        self._model = model
        self._prices = prices
        self.usage = Usage()
        self.mode = ""
        self.marker: str | None = None

    def sent(self) -> None:
        self.usage += Usage(calls=1)

    def counted(self, tokens: Tokens | None, *, answered: bool) -> None:
        """An answer whose tokens nobody counted has no known cost; a refusal without a count costs nothing."""
        if tokens is not None:
            used = Usage(0, tokens.input, tokens.cached, tokens.output)
            cost = cost_usd(self._model, used, self._prices)
            self.usage += Usage(0, tokens.input, tokens.cached, tokens.output, cost)
        elif answered and cost_usd(self._model, Usage(output_tokens=1), self._prices) != 0:
            self.usage += Usage(cost_usd=None)


def _messages(prompt: Prompt, mode: Mode) -> list[dict[str, str]]:
    contract = prompt.contract_plain if mode is Mode.PLAIN else prompt.contract_json
    question = "\n".join((prompt.shared, prompt.rows, contract))
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": question}]


def _response_format(prompt: Prompt, mode: Mode) -> dict[str, Any]:
    if mode is Mode.PLAIN:
        return {}
    if mode is Mode.OBJECT:
        return {"response_format": {"type": "json_object"}}
    schema = prompt.schema if mode is Mode.SCHEMA else prompt.loose_schema
    wrapped = {"name": "verdicts", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": wrapped}}


def _sendable(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Half a surrogate pair, as a cut JSON text decodes to, cannot be sent as UTF-8."""
    content = message["content"]
    if isinstance(content, str) and not content.isascii():
        return {**message, "content": content.encode("utf-8", "replace").decode()}
    return message
