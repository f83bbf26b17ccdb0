"""A real, small language model behind the wire: real tokens, real caching, real refusals."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from rubric_env.judges import ChatJudge, make_judge, resolve_credentials
from rubric_env.local import LlamaServer, LlamaUnavailable
from rubric_env.local.llama_server import CONTEXT_TOKENS, MAX_OUTPUT_TOKENS, WEIGHTS_PACKAGE, find_weights
from rubric_env.scoring.judgement import Usage
from rubric_env.settings import JudgeSettings

installed = all(importlib.util.find_spec(name) for name in ("xllamacpp", WEIGHTS_PACKAGE))
needs_llama = pytest.mark.skipif(not installed, reason="xllamacpp or the SmolLM2 weights are missing: run `make llama`")

VERDICTS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["verdicts"],
    "properties": {
        "verdicts": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "reason", "hit"],
                "properties": {
                    "id": {"type": "string", "enum": ["R01", "R02"]},
                    "reason": {"type": "string", "maxLength": 60},
                    "hit": {"type": "boolean"},
                },
            },
        }
    },
}
EVIDENCE = "The report says that revenue was 1.25 million in 2025. " * 12


@pytest.fixture(scope="module")
def llama() -> Iterator[LlamaServer]:
    with LlamaServer() as server:
        yield server


def ask(llama: LlamaServer, text: str, **fields: Any) -> Any:
    with openai.OpenAI(api_key="any", base_url=llama.base_url, max_retries=0, timeout=120) as api:
        messages: Any = [{"role": "user", "content": text}]
        return api.chat.completions.create(model=llama.model, messages=messages, temperature=0, **fields)


@needs_llama
@pytest.mark.llama
def test_a_strict_schema_holds_whatever_the_model_thinks_and_the_prefix_is_cached(llama: LlamaServer) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "verdicts", "strict": True, "schema": VERDICTS}}
    first, second = (
        ask(llama, f"{EVIDENCE}\nJudge the rows R01 and R02. Question {n}.", response_format=wanted) for n in (1, 2)
    )
    for answer in (first, second):
        verdicts = json.loads(answer.choices[0].message.content)["verdicts"]
        assert [type(v["hit"]) for v in verdicts] == [bool, bool]
        assert answer.usage.prompt_tokens > 200
        assert answer.usage.completion_tokens > 10
    assert second.usage.prompt_tokens_details.cached_tokens > 0.8 * second.usage.prompt_tokens


@needs_llama
@pytest.mark.llama
async def test_the_tokens_that_a_judge_reads_as_cached_are_those_that_the_server_did_not_evaluate(
    llama: LlamaServer,
) -> None:
    def counted() -> tuple[int, int]:
        lines = httpx.get(f"{llama.base_url.removesuffix('/v1')}/metrics").text.splitlines()
        found = dict(line.split() for line in lines if not line.startswith("#"))
        return int(found["llamacpp:prompt_tokens_total"]), int(found["llamacpp:prompt_tokens_cached_total"])

    settings = JudgeSettings(model=llama.model, max_tokens=1)
    judge = make_judge(settings, resolve_credentials("any", llama.base_url, environ={}))
    assert isinstance(judge, ChatJudge)
    evaluated, cached = counted()
    used = Usage()
    for question in ("first", "second", "second"):
        answer = await judge.complete([{"role": "user", "content": f"{EVIDENCE}\nThe {question} question."}])
        used += answer.usage
    await judge.aclose()
    now_evaluated, now_cached = counted()
    assert used.cached_tokens == now_cached - cached > 0
    assert used.input_tokens - used.cached_tokens == now_evaluated - evaluated


@needs_llama
@pytest.mark.llama
def test_a_prompt_beyond_the_context_is_refused_as_a_hosted_endpoint_does(llama: LlamaServer) -> None:
    with pytest.raises(openai.BadRequestError, match="exceeds the available context size"):
        ask(llama, "word " * (CONTEXT_TOKENS + 1))


@needs_llama
@pytest.mark.llama
def test_max_tokens_cuts_the_answer(llama: LlamaServer) -> None:
    answer = ask(llama, "Count from one to one hundred.", max_tokens=8)
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 8)
    assert MAX_OUTPUT_TOKENS < CONTEXT_TOKENS


@needs_llama
@pytest.mark.llama
def test_it_names_itself_on_loopback_and_is_gone_after_stop() -> None:
    server = LlamaServer()
    assert server.start() == server.start()
    url = server.base_url
    assert url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{url}/models").json()["data"][0]["id"] == "local-smollm2"
    server.stop()
    server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/models")
    with pytest.raises(RuntimeError, match="start"):
        _ = server.base_url


@needs_llama
@pytest.mark.llama
def test_a_taken_port_is_one_clear_line(llama: LlamaServer) -> None:
    port = int(llama.base_url.rsplit(":", 1)[1].removesuffix("/v1"))
    with pytest.raises(LlamaUnavailable, match=f"127.0.0.1:{port}"):
        LlamaServer(port=port).start()


@needs_llama
@pytest.mark.llama
def test_the_weights_are_found_without_importing_their_package() -> None:
    assert find_weights().suffix == ".gguf"
    assert WEIGHTS_PACKAGE not in sys.modules


def test_missing_weights_say_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LlamaUnavailable, match="make llama"):
        find_weights()


def test_a_missing_engine_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(LlamaUnavailable, match=r"rubric-env\[llama\]"):
        LlamaServer().start()


def test_only_loopback_is_served() -> None:
    with pytest.raises(ValueError, match="only 127"):
        LlamaServer("0.0.0.0")
