"""The two wire formats of OpenAI-compatible endpoints: `/chat/completions` and `/responses`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from rubric_env.judges._ability import Ability, Streaming
from rubric_env.judges._assembly import Assembly
from rubric_env.judges._chat_stream import ChatAssembly
from rubric_env.judges._json import to_json
from rubric_env.judges._responses import ResponsesAssembly, as_completion
from rubric_env.settings import JudgeSettings


class Format(ABC):
    """How a question is written and where the answer stands. An answer is read as a chat completion in the end."""

    name: str
    path: str
    sampling_names: tuple[str, ...]
    """Settings that the format can carry."""
    assembly: type[Assembly]

    def sampling(self, settings: JudgeSettings) -> dict[str, Any]:
        """The settings that are set, by their own names."""
        return {name: value for name in self.sampling_names if (value := getattr(settings, name)) is not None}

    @abstractmethod
    def question(self, system: bytes, user: bytes | Sequence[bytes]) -> bytes:
        """Members of the request's JSON object for two texts, which are JSON strings already, or for parts of one."""

    @abstractmethod
    def text_part(self, text: bytes) -> bytes:
        """A JSON string as a part of a question with pictures."""

    @abstractmethod
    def picture_part(self, url: bytes) -> bytes:
        """A picture as a part, by its data URL."""

    @abstractmethod
    def conversation(self, messages: Sequence[Mapping[str, Any]]) -> bytes:
        """The same for messages as chat has them."""

    @abstractmethod
    def structure(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        """Fields that ask for JSON: any object without a schema."""

    @abstractmethod
    def fields(self, sampling: Mapping[str, Any], streaming: Streaming, ability: Ability) -> dict[str, Any]:
        """Everything else."""

    @abstractmethod
    def completion(self, value: dict[str, Any]) -> dict[str, Any]:
        """The reply as a chat completion; a value of another kind as it is."""


class ChatFormat(Format):
    name = "chat"
    path = "/chat/completions"
    sampling_names = ("reasoning_effort", "temperature", "seed", "max_tokens")
    assembly = ChatAssembly

    def question(self, system: bytes, user: bytes | Sequence[bytes]) -> bytes:
        content = user if isinstance(user, bytes) else b"[%b]" % b",".join(user)
        return b'"messages":[{"role":"system","content":%b},{"role":"user","content":%b}]' % (system, content)

    def text_part(self, text: bytes) -> bytes:
        return b'{"type":"text","text":%b}' % text

    def picture_part(self, url: bytes) -> bytes:
        return b'{"type":"image_url","image_url":{"url":"%b"}}' % url

    def conversation(self, messages: Sequence[Mapping[str, Any]]) -> bytes:
        return b'"messages":' + to_json(messages)

    def structure(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        if schema is None:
            return {"response_format": {"type": "json_object"}}
        wrapped = {"name": "verdicts", "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": wrapped}}

    def fields(self, sampling: Mapping[str, Any], streaming: Streaming, ability: Ability) -> dict[str, Any]:
        fields = {ability.max_tokens_name if name == "max_tokens" else name: v for name, v in sampling.items()}
        if streaming < Streaming.NONE:
            fields["stream"] = True
        if streaming is Streaming.COUNTED:
            fields["stream_options"] = {"include_usage": True}
        return fields

    def completion(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


class ResponsesFormat(Format):
    """It has no seed."""

    name = "responses"
    path = "/responses"
    sampling_names = ("reasoning_effort", "temperature", "max_tokens")
    assembly = ResponsesAssembly

    def question(self, system: bytes, user: bytes | Sequence[bytes]) -> bytes:
        given = user if isinstance(user, bytes) else b'[{"role":"user","content":[%b]}]' % b",".join(user)
        return b'"instructions":%b,"input":%b' % (system, given)

    def text_part(self, text: bytes) -> bytes:
        return b'{"type":"input_text","text":%b}' % text

    def picture_part(self, url: bytes) -> bytes:
        return b'{"type":"input_image","image_url":"%b"}' % url

    def conversation(self, messages: Sequence[Mapping[str, Any]]) -> bytes:
        return b'"input":' + to_json(messages)

    def structure(self, schema: Mapping[str, Any] | None) -> dict[str, Any]:
        if schema is None:
            return {"text": {"format": {"type": "json_object"}}}
        return {"text": {"format": {"type": "json_schema", "name": "verdicts", "strict": True, "schema": schema}}}

    def fields(self, sampling: Mapping[str, Any], streaming: Streaming, ability: Ability) -> dict[str, Any]:
        # Judged work is nobody's to keep.
        fields: dict[str, Any] = {"store": False}
        for name, value in sampling.items():
            match name:
                case "reasoning_effort":
                    fields["reasoning"] = {"effort": value}
                case "max_tokens":
                    fields["max_output_tokens"] = value
                case _:
                    fields[name] = value
        if streaming < Streaming.NONE:
            fields["stream"] = True
        return fields

    def completion(self, value: dict[str, Any]) -> dict[str, Any]:
        return as_completion(value)
