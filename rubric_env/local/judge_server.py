"""The lexical judge behind the OpenAI wire: what engine and demo talk to without key and network."""

from __future__ import annotations

import json
import re
import sys
import threading
from typing import Any

from rubric_env.local._http import LoopbackServer
from rubric_env.local._wire import ApiError, ChatRequest, Completion, content_text
from rubric_env.local.lexical import WIRING_NOTICE, answer
from rubric_env.local.llama_server import LlamaServer
from rubric_env.local.passages import QuestionError, read_question

ENGINES = ("lexical", "llama")

_MARKER_LINE = re.compile(r"=== VERDICTS \S+ ===")


class LocalJudgeServer(LoopbackServer):
    """Answers rubric prompts by the rule of `lexical`; anything else with a line that says what it is."""

    model = "local-lexical"
    notice = WIRING_NOTICE

    def complete(self, request: ChatRequest) -> Completion:
        prompts = [content_text(message) for message in request.messages if message["role"] == "user"]
        if not prompts:
            raise ApiError(400, "there is no user message", param="messages")
        try:
            question = read_question(prompts[-1])
        except QuestionError as error:
            raise ApiError(400, str(error), param="messages") from None
        as_json = request.response_format != "text"
        if question is None:
            text = f"{self.notice} It answers prompts that have a `# Rows` section, and nothing else."
            return Completion(json.dumps({"answer": text}) if as_json else text)
        body = answer(question)
        if as_json:
            return Completion(body)
        markers = _MARKER_LINE.findall(prompts[-1])
        return Completion("\n".join([self.notice, markers[-1], body]) if markers else body)

    def health(self) -> dict[str, Any]:
        return {**super().health(), "engine": "lexical", "notice": self.notice}


def local_judge(engine: str = "lexical", host: str = "127.0.0.1", port: int = 0) -> LocalJudgeServer | LlamaServer:
    """The server of that engine, not yet started. Raises ValueError: unknown engine, or a host that is not loopback."""
    if engine == "lexical":
        return LocalJudgeServer(host, port)
    if engine == "llama":
        return LlamaServer(host, port)
    raise ValueError(f"unknown engine {engine!r}: choose from {', '.join(ENGINES)}")


def serve_local_judge(host: str = "127.0.0.1", port: int = 0, engine: str = "lexical") -> None:
    """Serve in the foreground until Ctrl-C; prints the base URL as JSON on stdout and what it is on stderr.

    Raises ValueError (engine, host) and LocalError (port taken; extra or weights missing).
    """
    with local_judge(engine, host, port) as server:
        sys.stderr.write(f"{server.notice}\nStop with Ctrl-C.\n")
        sys.stdout.write(json.dumps({"base_url": server.base_url, "model": server.model, "engine": engine}) + "\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            sys.stderr.write("stopped\n")
