"""Answers of `/responses`, whole or streamed, as chat completions."""

from __future__ import annotations

from typing import Any

from rubric_env.judges._assembly import Assembly


def as_completion(value: dict[str, Any]) -> dict[str, Any]:
    """The same answer as a chat completion; a value that is no response as it is, to be read as an error."""
    output = value.get("output")
    if error := value.get("error"):
        return {"error": error, "usage": value.get("usage")}
    if not isinstance(output, list) or ("status" not in value and "object" not in value):
        return value
    texts, refusals, kinds = [], [], set()
    for item in output:
        if not isinstance(item, dict):
            continue
        kinds.add(item.get("type"))
        content = item.get("content") if item.get("type") == "message" else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict):
                texts.append(part.get("text") if part.get("type") == "output_text" else None)
                refusals.append(part.get("refusal") if part.get("type") == "refusal" else None)
    message = {
        "content": "".join(text for text in texts if isinstance(text, str)),
        "refusal": "".join(text for text in refusals if isinstance(text, str)),
        "reasoning_content": "reasoning" in kinds,
        "tool_calls": any(str(kind).endswith("_call") for kind in kinds),
    }
    return {"choices": [{"message": message, "finish_reason": _finish(value)}], "usage": value.get("usage")}


def _finish(value: dict[str, Any]) -> str | None:
    match value.get("status"):
        case None:
            return None
        case "completed":
            return "stop"
        case "incomplete":
            details = value.get("incomplete_details")
            filtered = isinstance(details, dict) and details.get("reason") == "content_filter"
            return "content_filter" if filtered else "length"
        case _:
            return "error"


class ResponsesAssembly(Assembly):
    """The last event holds the whole response; until it comes, what the deltas brought counts."""

    def __init__(self) -> None:
        super().__init__()
        self._response: dict[str, Any] = {}

    def _add(self, value: dict[str, Any]) -> bool:
        kind = str(value.get("type") or "")
        match kind:
            case "response.output_text.delta":
                return self._said(value.get("delta"))
            case "response.refusal.delta":
                return self._refused(value.get("delta"))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._ended(value.get("response"))
            case "error":
                return self._failed(value.get("error") or value)
        if not kind and value.get("error"):
            return self._failed(value["error"])
        if kind.startswith("response.reasoning"):
            self._thought = True
        # Items and parts that are only opened or closed bring nothing of their own.
        return kind.endswith(".delta")

    def _ended(self, response: Any) -> bool:
        self._response = response if isinstance(response, dict) else {}
        self.usage = self._response.get("usage")
        self._finish = _finish(self._response) or "stop"
        self.done = True
        return True

    def completion(self) -> dict[str, Any]:
        if self._error is not None:
            return self._error
        told = as_completion({"output": [], "status": "completed"} | self._response)
        if "choices" in told:
            choice, came = told["choices"][0], self._message()
            # Some gateways leave the last event's output empty.
            choice["message"] = {name: value or came.get(name) for name, value in choice["message"].items()}
        return told
