"""Recorded policy turns, played over chat completions: a policy for demos and tests that costs nothing."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from rubric_env.local._http import LoopbackServer
from rubric_env.local._wire import ApiError, ChatRequest, Completion, content_text

_CALL_ID = re.compile(r"call_(\d+)_\d+_\d+")


class ToolCall(BaseModel):
    """One call of a turn; its id is given when it is played."""

    name: str
    arguments: dict[str, Any]


class Turn(BaseModel):
    """One assistant message."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class Recording(BaseModel):
    """One conversation's assistant turns. `prompt` is the task text that begins the conversations it answers."""

    instance: str
    quality: str
    prompt: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)]

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Recording:
        """Keys that are not its own, as labels, are left out. Raises ValueError naming the recording and its flaws."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            flaws = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            name = f"{data.get('instance')}/{data.get('quality')}"
            raise ValueError(f"recording {name}: {'; '.join(flaws)}") from None


class ReplayPolicyServer(LoopbackServer):
    """Plays `recordings`, given as dicts with the fields of `Recording`.

    The first request of a conversation is matched by its first user message, which is or holds a recording's prompt,
    and takes that prompt's next recording in rotation: four rollouts of an instance with four recordings get one each.
    Later requests are recognised by the ids of the tool calls in their history, so the server keeps no conversations.
    `delay` seconds pass before each turn.
    """

    model = "replay"

    def __init__(
        self, recordings: Sequence[Mapping[str, Any]], *, host: str = "127.0.0.1", port: int = 0, delay: float = 0.0
    ) -> None:
        """Raises ValueError for a broken recording, or when there is none."""
        super().__init__(host, port)
        self.recordings = tuple(Recording.read(data) for data in recordings)
        if not self.recordings:
            raise ValueError("no recordings to replay")
        self._delay = delay
        self._lock = threading.Lock()
        self._played: defaultdict[str, int] = defaultdict(int)
        self._by_prompt: dict[str, list[int]] = {}
        for number, recording in enumerate(self.recordings):
            self._by_prompt.setdefault(_squeezed(recording.prompt), []).append(number)

    def complete(self, request: ChatRequest) -> Completion:
        history = [message for message in request.messages if message["role"] == "assistant"]
        number = self._continued(history) if history else self._next(request)
        recording, turn = self.recordings[number], len(history)
        if turn >= len(recording.turns):
            played = f"{recording.instance}/{recording.quality} ends after turn {len(recording.turns)}"
            raise ApiError(404, f"the recording {played}, and the conversation goes on", code="recording_exhausted")
        self.stopping.wait(self._delay)
        said = recording.turns[turn]
        calls = [
            {
                "id": f"call_{number}_{turn}_{n}",
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for n, call in enumerate(said.tool_calls)
        ]
        return Completion(said.content, calls)

    def _continued(self, history: Sequence[Mapping[str, Any]]) -> int:
        calls = (call for message in history for call in message.get("tool_calls") or () if isinstance(call, dict))
        found = (_CALL_ID.fullmatch(str(call.get("id"))) for call in calls)
        numbers = {int(match.group(1)) for match in found if match}
        if len(numbers) != 1 or max(numbers) >= len(self.recordings):
            message = "the tool calls of this conversation are not those of one recording"
            raise ApiError(404, message, code="unknown_conversation")
        return numbers.pop()

    def _next(self, request: ChatRequest) -> int:
        first = next((content_text(message) for message in request.messages if message["role"] == "user"), "")
        text = _squeezed(first)
        prompt = max((known for known in self._by_prompt if known in text), key=len, default=None)
        if prompt is None:
            known = ", ".join(sorted({recording.instance for recording in self.recordings}))
            message = f"no recording begins with this task ({first[:60]!r}…); there are recordings of {known}"
            raise ApiError(404, message, code="unknown_prompt")
        numbers = self._by_prompt[prompt]
        with self._lock:
            turn = self._played[prompt]
            self._played[prompt] += 1
        return numbers[turn % len(numbers)]


def _squeezed(text: str) -> str:
    return " ".join(text.split())
