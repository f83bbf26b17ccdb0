"""The wire that both loopback servers share, spoken to by real clients over real sockets."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from rubric_env.local import LocalError, LocalJudgeServer
from rubric_env.local._http import MAX_BODY, LoopbackServer
from rubric_env.local._wire import ApiError, ChatRequest, Completion

CALL = {"id": "call_1", "type": "function", "function": {"name": "write", "arguments": '{"text": "中文"}'}}


class Scripted(LoopbackServer):
    """Does what the last message says."""

    model = "scripted"

    def complete(self, request: ChatRequest) -> Completion:
        match request.messages[-1]["content"]:
            case "call":
                return Completion("I call.", [CALL])
            case "long":
                return Completion("长 answer. " * 300)
            case "refuse":
                raise ApiError(404, "not that", code="unknown")
            case "break":
                raise RuntimeError("a secret of the server")
            case "wait":
                self.stopping.wait(120)
        return Completion("fine")


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as running:
        yield running


def connection(server: LoopbackServer) -> http.client.HTTPConnection:
    host, _, port = server.base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=10)


def exchange(open_: http.client.HTTPConnection, body: Any, path: str = "/v1/chat/completions") -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    open_.request("POST", path, raw, {"Content-Type": "application/json"})
    answer = open_.getresponse()
    return answer.status, json.loads(answer.read())


def chat(text: str, **fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **fields}


def client(server: LoopbackServer) -> openai.OpenAI:
    return openai.OpenAI(api_key="any", base_url=server.base_url, max_retries=0)


def test_the_openai_client_reads_answers_and_usage(server: Scripted) -> None:
    with client(server) as api:
        answer = api.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "x" * 4000}])
        again = api.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "x" * 4000 + "y"}])
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("fine", "stop")
    assert answer.usage is not None and again.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.model_extra == {"estimated": True}
    assert answer.usage.prompt_tokens_details is not None and again.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert 0 < (again.usage.prompt_tokens_details.cached_tokens or 0) < again.usage.prompt_tokens
    assert answer.id != again.id
    assert server.requests == 2


def test_tool_calls_plain_and_streamed_are_the_same(server: Scripted) -> None:
    messages: Any = [{"role": "user", "content": "call"}]
    with client(server) as api:
        plain = api.chat.completions.create(model="scripted", messages=messages).choices[0]
        with api.chat.completions.stream(model="scripted", messages=messages) as events:
            streamed = events.get_final_completion().choices[0]
    assert plain.message.tool_calls is not None and streamed.message.tool_calls is not None
    assert plain.message.tool_calls[0].model_dump(exclude={"function": {"parsed_arguments"}, "index": True}) == CALL
    assert streamed.message.tool_calls[0].model_dump(exclude={"function": {"parsed_arguments"}, "index": True}) == CALL
    assert plain.finish_reason == streamed.finish_reason == "tool_calls"


@pytest.mark.parametrize("with_usage", [True, False])
def test_a_long_answer_streamed_is_whole_and_usage_comes_when_asked(server: Scripted, with_usage: bool) -> None:
    options: Any = {"stream_options": {"include_usage": True}} if with_usage else {}
    with client(server) as api:
        chunks = list(
            api.chat.completions.create(
                model="scripted", messages=[{"role": "user", "content": "long"}], stream=True, **options
            )
        )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "长 answer. " * 300
    assert [c.usage is not None for c in chunks] == [False] * (len(chunks) - 1) + [with_usage]


def test_one_connection_serves_many_calls_without_a_stall(server: Scripted) -> None:
    open_ = connection(server)
    exchange(open_, chat("warm up"))
    sock = open_.sock
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for n in range(40):
        stream = n % 2 == 0
        start = time.perf_counter()
        open_.request("POST", "/v1/chat/completions", json.dumps(chat("hi", stream=stream)))
        assert b"fine" in open_.getresponse().read()
        seconds[stream].append(time.perf_counter() - start)
    assert open_.sock is sock
    open_.close()
    for calls in seconds.values():  # a busy machine delays some of them
        assert sorted(calls)[len(calls) // 4] < 0.04, "a delayed acknowledgement costs 40 ms a call"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"{nonsense", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        ([], 400, "JSON object"),
        ({"messages": []}, 400, "`model`"),
        ({"model": "scripted"}, 400, "`messages`"),
        ({"model": "scripted", "messages": [1]}, 400, "messages[0]"),
        ({"model": "scripted", "messages": [{"role": "user", "content": 3}]}, 400, "content"),
        ({"model": "scripted", "messages": [{"role": "user", "tool_calls": "x"}]}, 400, "tool_calls"),
        (chat("hi", n=2), 400, "one choice"),
        (chat("hi", response_format="json"), 400, "its type"),
        (chat("hi", response_format={"type": "yaml"}), 400, "its type"),
        (chat("hi", response_format={"type": "json_schema"}), 400, "json_schema"),
        (chat("hi", stream_options=3), 400, "stream_options"),
        (chat("hi") | {"model": "gpt-5.5"}, 404, "this server has 'scripted'"),
        (chat("refuse"), 404, "not that"),
    ],
    ids=str,
)
def test_bad_requests_get_an_error_object_and_the_connection_lives(
    server: Scripted, body: Any, status: int, says: str
) -> None:
    open_ = connection(server)
    got, error = exchange(open_, body)
    assert (got, error["error"]["type"]) == (status, "invalid_request_error")
    assert says in error["error"]["message"]
    assert exchange(open_, chat("hi"))[0] == 200
    open_.close()


def test_an_error_inside_shows_no_traceback(server: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    open_ = connection(server)
    status, error = exchange(open_, chat("break"))
    open_.close()
    assert (status, error["error"]["type"]) == (500, "server_error")
    assert "secret" not in json.dumps(error)
    assert "a secret of the server" in caplog.text


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_unknown_paths_and_methods_are_answered_in_json(server: Scripted, method: str) -> None:
    open_ = connection(server)
    open_.request(method, "/v1/completions", b"{}" if method == "POST" else None)
    answer = open_.getresponse()
    body = json.loads(answer.read())
    open_.close()
    assert (answer.status, body["error"]["type"]) in ((404, "invalid_request_error"), (501, "server_error"))


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/chat/completions HTTP/1.1\r\n\r\n", b"411"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"411"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1), b"413"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_a_request_whose_end_is_unknown_is_refused_and_closed(server: Scripted, head: bytes, status: bytes) -> None:
    raw = _raw(server)
    raw.sendall(head)
    answer = b"".join(iter(lambda: raw.recv(65536), b""))
    raw.close()
    assert status in answer.split(b"\r\n")[0] or b'"error"' in answer
    assert b"<html" not in answer.lower()


def test_an_http_1_0_client_gets_a_stream_that_ends_with_the_connection(server: Scripted) -> None:
    body = json.dumps(chat("hi", stream=True)).encode()
    raw = _raw(server)
    raw.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    answer = b"".join(iter(lambda: raw.recv(65536), b""))
    raw.close()
    assert answer.endswith(b"data: [DONE]\n\n")
    assert b"chunked" not in answer


def _raw(server: LoopbackServer) -> socket.socket:
    host, _, port = server.base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def test_a_client_that_hangs_up_in_the_middle_disturbs_nobody(
    server: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        raw = _raw(server)
        raw.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 500\r\n\r\n{")
        raw.close()
    open_ = connection(server)
    assert exchange(open_, chat("hi"))[0] == 200
    open_.close()
    assert "Traceback" not in caplog.text


def test_models_and_health(server: Scripted) -> None:
    with client(server) as api:
        assert [model.id for model in api.models.list()] == ["scripted"]
    open_ = connection(server)
    open_.request("GET", "/health")
    assert json.loads(open_.getresponse().read()) == {"status": "ok", "model": "scripted"}
    open_.close()


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_stop_leaves_no_thread_and_no_socket() -> None:
    threads, files = threading.active_count(), open_files()
    server = Scripted()
    server.start()
    idle, busy = connection(server), connection(server)
    exchange(idle, chat("hi"))
    busy.request("POST", "/v1/chat/completions", json.dumps(chat("wait")))
    time.sleep(0.1)
    start = time.perf_counter()
    server.stop()
    assert time.perf_counter() - start < 30
    idle.close()
    busy.close()
    assert threading.active_count() <= threads
    assert open_files() <= files
    server.stop()


def test_start_twice_is_one_server_and_it_can_start_again() -> None:
    server = Scripted()
    assert server.start() == server.start() == server.base_url
    server.stop()
    with pytest.raises(RuntimeError, match="start"):
        _ = server.base_url
    with server:
        open_ = connection(server)
        assert exchange(open_, chat("hi"))[0] == 200
        open_.close()


def test_a_taken_port_is_one_clear_line(server: Scripted) -> None:
    port = int(server.base_url.rsplit(":", 1)[1].removesuffix("/v1"))
    with pytest.raises(LocalError, match=f"127.0.0.1:{port}: Address already in use"):
        Scripted(port=port).start()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "example.com", "::1", ""])
def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(ValueError, match="only 127"):
        LocalJudgeServer(host)
