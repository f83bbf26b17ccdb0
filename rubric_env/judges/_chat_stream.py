"""The chunks of a streamed chat completion."""

from __future__ import annotations

from typing import Any

from rubric_env.judges._assembly import Assembly
from rubric_env.judges._error_text import tells_error


class ChatAssembly(Assembly):
    """Of the first choice."""

    def __init__(self) -> None:
        super().__init__()
        self._tools = False
        self._chosen = False

    def _add(self, value: dict[str, Any]) -> bool:
        if error := value.get("error"):
            return self._failed(error)
        choices = value.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return self._failed(value) if choice is None and tells_error(value) else self._count(value)
        if error := choice.get("error"):
            return self._failed(error)
        self._count(value)
        if choice.get("index") not in (None, 0):
            return False
        self._chosen = True
        delta = choice.get("delta") or choice.get("message")
        came = isinstance(delta, dict) and self._delta(delta)
        if finish := choice.get("finish_reason"):
            self._finish = str(finish)
            return True
        return came

    def _delta(self, delta: dict[str, Any]) -> bool:
        thought = bool(delta.get("reasoning_content") or delta.get("reasoning"))
        tools = bool(delta.get("tool_calls"))
        self._thought |= thought
        self._tools |= tools
        came = self._said(delta.get("content"))
        came |= self._refused(delta.get("refusal"))
        return came or thought or tools

    def _count(self, value: dict[str, Any]) -> bool:
        """Usage comes with the last chunk, or with every one."""
        if not value.get("usage"):
            return False
        self.usage = value["usage"]
        return True

    def completion(self) -> dict[str, Any]:
        counted = {"usage": self.usage}
        if self._error is not None:
            return self._error | counted
        if not self._chosen:
            return {"choices": []} | counted
        message = self._message() | {"tool_calls": self._tools}
        return {"choices": [{"message": message, "finish_reason": self._finish}]} | counted
