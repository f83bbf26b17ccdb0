"""A judge endpoint that costs next to nothing: raw asyncio, in its own process, on loopback.

It answers right in the shape that a contender's prompts ask for (`peers.NAME.message`), after a latency, with the
troubles that it is told to make.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import multiprocessing
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from peers.job import Verdict, report, verdicts

from tests.servers.fault_matrix import Trouble
from tests.servers.scenarios import SCENARIOS, Scenario

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Plan:
    """How calls are answered. The n-th call takes the n-th latency, round and round, whoever makes it."""

    contender: str = "ours"
    latencies: Sequence[float] = (0.2,)
    trouble: Trouble | None = None
    mix: Sequence[Scenario] = ()
    share: float = 0.0
    """So many of all calls get one of `mix`, drawn with `seed`."""
    seed: int = 1
    policy: bool = False
    """It judges nothing: it writes a report a call, numbered as they come."""


@dataclass
class Endpoint:
    base_url: str
    _number: int
    _pipe: Connection

    def figures(self) -> dict[str, float]:
        """Since the last time: calls, those that something befell (`struck`), most in flight, connections, mean in
        flight (`busy`, from the first call to the last one's arrival), megabytes of requests and of what is answered,
        seconds from the first call to the last answer (`span_s`), CPU seconds of serving.
        """
        self._pipe.send(self._number)
        return self._pipe.recv()  # type: ignore[no-any-return]


@contextmanager
def endpoints(plans: Sequence[Plan]) -> Iterator[list[Endpoint]]:
    """One for each plan, all in one process, while the block runs."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(plans, there), daemon=True)
    process.start()
    try:
        yield [Endpoint(f"http://127.0.0.1:{port}/v1", n, here) for n, port in enumerate(here.recv())]
    finally:
        process.terminate()
        process.join()


def _serve(plans: Sequence[Plan], pipe: Connection) -> None:
    asyncio.run(_main(plans, pipe))


async def _main(plans: Sequence[Plan], pipe: Connection) -> None:
    loop = asyncio.get_running_loop()
    desks = [_Desk(plan) for plan in plans]
    servers = [await loop.create_server(partial(_Connection, desk), "127.0.0.1", 0, backlog=1024) for desk in desks]

    def report() -> None:
        pipe.send(desks[pipe.recv()].take())

    loop.add_reader(pipe.fileno(), report)
    pipe.send([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.gather(*(server.serve_forever() for server in servers))


@dataclass
class _Figures:
    calls: int = 0
    struck: int = 0
    connections: int = 0
    max_in_flight: int = 0
    request_mb: float = 0.0
    message_mb: float = 0.0
    slot_seconds: float = 0.0
    until: float = 0.0
    first: float = 0.0
    last: float = 0.0
    last_slot_seconds: float = 0.0
    cpu: float = field(default_factory=time.process_time)


class _Desk:
    """Decides what becomes of each call, and counts."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._message = importlib.import_module(f"peers.{plan.contender}").message
        self._dice = random.Random(plan.seed)
        self._asked: set[tuple[int, ...]] = set()
        self._reports: Counter[int] = Counter()
        self._number = 0
        self._in_flight = 0
        self._figures = _Figures()

    def came(self, body: bytes) -> tuple[float, Scenario, bytes]:
        """The latency of a call, what happens to it, and the HTTP body of the answer."""
        number, self._number = self._number, self._number + 1
        self._count(1)
        figures = self._figures
        figures.calls += 1
        figures.max_in_flight = max(figures.max_in_flight, self._in_flight)
        figures.request_mb += len(body) / 1e6
        figures.last, figures.last_slot_seconds = figures.until, figures.slot_seconds
        figures.first = figures.first or figures.until
        request = json.loads(body)
        rollout, right = verdicts(_texts(request["messages"]))
        scenario = self._choose(rollout, right)
        latency = self._plan.latencies[number % len(self._plan.latencies)]
        request["size"] = len(body)
        figures.message_mb += len(self._message(right).get("content") or "") / 1e6 if right else 0.0
        answer = _body(SCENARIOS["ok"], self._message, right, request)
        if scenario is not SCENARIOS["ok"]:
            wrong = _body(scenario, self._message, right, request)
            figures.struck += scenario.wire != "whole" or wrong != answer
            answer = wrong
        return latency + scenario.latency, scenario, answer

    def left(self) -> None:
        self._count(-1)

    def take(self) -> dict[str, float]:
        done, self._figures = self._figures, _Figures()
        return {
            "calls": done.calls,
            "struck": done.struck,
            "busy": done.last_slot_seconds / max(done.last - done.first, 1e-9),
            "max_in_flight": done.max_in_flight,
            "connections": done.connections,
            "request_mb": done.request_mb,
            "message_mb": done.message_mb,
            "span_s": done.until - done.first,
            "endpoint_cpu_s": time.process_time() - done.cpu,
        }

    def connected(self) -> None:
        self._figures.connections += 1

    def _count(self, change: int) -> None:
        figures, now = self._figures, time.monotonic()
        if figures.until:
            figures.slot_seconds += self._in_flight * (now - figures.until)
        figures.until = now
        self._in_flight += change

    def _choose(self, rollout: int, right: Sequence[Verdict]) -> Scenario:
        plan = self._plan
        if plan.policy:
            return Scenario("report", content=report(self._number))
        if plan.mix and self._dice.random() < plan.share:
            return self._dice.choice(plan.mix)
        question = (rollout, *(verdict.row for verdict in right))
        repeated = question in self._asked
        self._asked.add(question)
        if plan.trouble is None or not plan.trouble.strikes(question[1:], repeated):
            return SCENARIOS["ok"]
        return plan.trouble.scenario


class _Connection(asyncio.Protocol):
    def __init__(self, desk: _Desk) -> None:
        self._desk = desk
        self._parts: list[bytes] = []
        self._missing = 0
        self._waiting: asyncio.TimerHandle | None = None
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._desk.connected()

    def connection_lost(self, exc: Exception | None) -> None:
        self._done()

    def data_received(self, data: bytes) -> None:
        if not self._parts:
            head, _, body = data.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            self._missing = int(length.group(1)) if length else 0
            data = body
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing <= 0:
            latency, scenario, body = self._desk.came(b"".join(self._parts))
            self._parts = []
            self._busy = True
            if scenario.wire != "hang":
                loop = asyncio.get_running_loop()
                self._waiting = loop.call_later(latency, self._answer, scenario, body)

    def _answer(self, scenario: Scenario, body: bytes) -> None:
        self._done()
        if scenario.wire == "drop":
            self._transport.close()
            return
        kind = "text/event-stream" if body.startswith(b"data: ") else "application/json"
        head = {"content-type": kind, **scenario.headers, "content-length": str(len(body))}
        lines = [f"HTTP/1.1 {scenario.status} Scripted", *(f"{name}: {value}" for name, value in head.items())]
        self._transport.write("\r\n".join([*lines, "", ""]).encode() + body)

    def _done(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._busy:
            self._busy = False
            self._desk.left()


def _texts(messages: Sequence[Mapping[str, Any]]) -> str:
    """All of a prompt's words, parts of a message included."""
    texts: list[str] = []
    for message in messages:
        content = message.get("content") or ""
        texts += [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return "\n".join(texts)


def _body(scenario: Scenario, right_message: Any, right: Sequence[Verdict], request: Mapping[str, Any]) -> bytes:
    if scenario.body is not None:
        return scenario.body
    answered = right[:-1] if scenario.answer == "missing_row" else right
    message = {"content": "yes"} if not right else right_message(answered)
    content = message.get("content")
    if scenario.content is not None:
        message = {"content": scenario.content}
    elif scenario.answer == "prose":
        message = {"content": "I have read all of it, and on the whole the work is good."}
    elif scenario.answer == "fenced" and content is not None:
        message = {"content": f"Here is my judgement.\n```json\n{content}\n```\nDone."}
    message = {"role": "assistant", **message, **scenario.message}
    finish = "tool_calls" if message.get("tool_calls") else scenario.finish
    tokens = request["size"] // 4
    usage = {"prompt_tokens": tokens, "completion_tokens": 100, "total_tokens": tokens + 100}
    answer = {"id": "x", "created": 0, "model": request["model"], "usage": usage}
    if request.get("stream"):
        delta = {"index": 0, "delta": message, "finish_reason": finish}
        event = {**answer, "object": "chat.completion.chunk", "choices": [delta]}
        return f"data: {json.dumps(event, ensure_ascii=False)}\n\ndata: [DONE]\n\n".encode()
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({**answer, "object": "chat.completion", "choices": [choice]}, ensure_ascii=False).encode()
