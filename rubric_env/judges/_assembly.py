"""A streamed answer, put together as its events come, until it can be read like one that came whole."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

from rubric_env.judges._completion import content_text
from rubric_env.judges._error_text import decode
from rubric_env.judges._sse import Event


class Assembly(ABC):
    """Thinking is noticed and not kept."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._thought = False
        self._finish: str | None = None
        self._error: dict[str, Any] | None = None
        self.usage: Any = None
        self.size = 0
        """Characters kept."""
        self.done = False
        """Nothing more is to come."""

    @property
    def text(self) -> str:
        """The answer as far as it came."""
        return "".join(self._texts)

    @property
    def begun(self) -> bool:
        """The answer itself has begun."""
        return bool(self._texts or self._refusals)

    @property
    def whole(self) -> bool:
        """The answer is there, or the reason why there is none; only counts may follow."""
        return self.done or self._finish is not None or self._error is not None

    @property
    def spoken(self) -> bool:
        """It came in pieces, as a model writes, not at once, as a gateway reports."""
        return len(self._texts) > 1

    def add(self, event: Event) -> bool:
        """False for an event that brings nothing: those do not show that the answer goes on."""
        if self.done:
            return False
        text = decode(event.data)
        match None if text is None else text.strip():
            case "":
                return False
            case "[DONE]":
                self.done = True
                return True
        try:
            value = json.loads(text or "")
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            # What is no object may be a lost piece of the answer: what follows cannot be trusted.
            return self._failed({"message": text or "(bytes that are no text)", "type": event.name or "no_event"})
        if event.name == "error":
            return self._failed(value.get("error") or value)
        return self._add(value)

    @abstractmethod
    def _add(self, value: dict[str, Any]) -> bool: ...

    @abstractmethod
    def completion(self) -> dict[str, Any]:
        """What came, as a chat completion."""

    def _said(self, text: Any) -> bool:
        return self._keep(self._texts, content_text(text))

    def _refused(self, text: Any) -> bool:
        return self._keep(self._refusals, content_text(text))

    def _keep(self, parts: list[str], text: str) -> bool:
        if text:
            parts.append(text)
            self.size += len(text)
        return bool(text)

    def _failed(self, error: Any) -> bool:
        self._error, self.done = {"error": error}, True
        return True

    def _message(self) -> dict[str, Any]:
        return {
            "content": self.text,
            "refusal": "".join(self._refusals),
            "reasoning_content": "(not kept)" if self._thought else None,
        }
