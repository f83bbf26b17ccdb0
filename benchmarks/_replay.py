"""Endpoints for whole rollouts, each in a process of its own: a policy that replays, a judge that takes its time."""

from __future__ import annotations

import json
import multiprocessing
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from rubric_env.local import ReplayPolicyServer
from rubric_env.local._http import LoopbackServer
from rubric_env.local._wire import ChatRequest, Completion
from rubric_env.local.passages import read_question

REASON = "The delivered file states this in its second section, with the figure that the row asks for. "
LATENCIES = (0.5, 1.0, 2.0)


class PatientJudge(LoopbackServer):
    """Answers every row, after 0.5, 1 and 2 s in turn; each tenth answer has `large` characters."""

    model = "patient"

    def __init__(self, large: int) -> None:
        super().__init__()
        self._large = large
        self._numbers = count()

    def complete(self, request: ChatRequest) -> Completion:
        number = next(self._numbers)
        question = read_question(request.text)
        rows = question.rows if question else ()
        length = self._large // len(rows) if rows and number % 10 == 9 else len(REASON)
        reason = (REASON * (length // len(REASON) + 1))[:length]
        self.stopping.wait(LATENCIES[number % len(LATENCIES)])
        return Completion(json.dumps({"verdicts": [_verdict(row, reason) for row in rows]}))


def _verdict(row: Mapping[str, Any], reason: str) -> dict[str, Any]:
    hit = zlib.crc32(str(row["id"]).encode()) % 4 > 0
    level = {"level": max(row["level_choices"]) if hit else 0.0} if "level_choices" in row else {}
    return {"id": row["id"], "reason": reason, "evidence": "model_response_text.txt#¶1", "hit": hit, **level}


@contextmanager
def replaying(recordings: Sequence[Mapping[str, Any]], large: int = 0) -> Iterator[tuple[str, str]]:
    """The addresses of the policy and of the judge, while the block runs."""
    context = multiprocessing.get_context("spawn")
    started = []
    try:
        for serve, argument in ((_policy, list(recordings)), (_judge, large)):
            here, there = context.Pipe()
            process = context.Process(target=serve, args=(argument, there), daemon=True)
            process.start()
            started.append((process, here))
        policy, judge = (here.recv() for _, here in started)
        yield policy, judge
    finally:
        for process, _ in started:
            process.terminate()
            process.join()


def _policy(recordings: Sequence[Mapping[str, Any]], pipe: Connection) -> None:
    _serve(ReplayPolicyServer(recordings, delay=0.2), pipe)


def _judge(large: int, pipe: Connection) -> None:
    _serve(PatientJudge(large), pipe)


def _serve(server: LoopbackServer, pipe: Connection) -> None:
    with server:
        pipe.send(server.base_url)
        server.stopping.wait()
