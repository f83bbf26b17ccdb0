"""SPEC 7: the connection itself: whom it trusts, which way it goes, and that nothing of it is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from rubric_env.judges import CallFault, Reply, resolve_credentials
from rubric_env.judges._route import route_to
from rubric_env.scoring.faults import FaultKind
from rubric_env.settings import SettingsError
from tests.judges.conftest import MakeJudge, in_every_way
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import SCENARIOS, Scenario

PROMPT = make_prompt("R01", "R02")

SCRIPT = """
import asyncio, gc, sys
from rubric_env.judges import ChatJudge, CallFault, resolve_credentials
from rubric_env.settings import JudgeSettings
from tests.judges.prompts import make_prompt

async def main(settings):
    judge = ChatJudge(settings, resolve_credentials("k", sys.argv[1], environ={}))
    first = await judge.ask(make_prompt("R01"), timeout=60)
    assert not isinstance(first, CallFault), first
    hanging = [asyncio.create_task(judge.ask(make_prompt("poison"), timeout=60)) for _ in range(5)]
    late = await judge.ask(make_prompt("poison"), timeout=0.5)
    hanging[0].cancel()
    await asyncio.wait(hanging[:1])
    # The other four end with the loop, and nobody closes the judge.

for stream in ("off", "on"):
    asyncio.run(main(JudgeSettings(model="m", stream=stream)))
gc.collect()
"""


def test_section_7_a_judge_that_nobody_closes_leaves_nothing_behind(endpoint: Endpoint) -> None:
    endpoint.rule(lambda call: "poison" in call.ids, "stall")
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", SCRIPT, endpoint.base_url]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    endpoint.settle()


@in_every_way
async def test_section_7_no_task_and_no_socket_outlives_its_call(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    judge = make_chat()
    await judge.ask(PROMPT, timeout=60)
    before = asyncio.all_tasks()
    for name in ("stall", "half", "reset", "trickle", "hang", "500", "endless_thinking"):
        endpoint.default = SCENARIOS[name]
        await judge.ask(PROMPT, timeout=0.3)
    endpoint.default = SCENARIOS["stall"]
    tasks = [asyncio.create_task(judge.ask(PROMPT, timeout=60)) for _ in range(8)]
    await asyncio.to_thread(endpoint.wait_in_flight, 8)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await asyncio.to_thread(endpoint.wait_idle)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    await judge.aclose()
    await asyncio.to_thread(endpoint.settle)


async def test_a_question_of_megabytes_is_sent_without_a_warning(
    endpoint: Endpoint, make_chat: MakeJudge, recwarn: pytest.WarningsRecorder
) -> None:
    evidence = "数据 and data. " * 150_000
    answer = await make_chat().ask(make_prompt("R01", evidence=evidence), timeout=60)
    assert isinstance(answer, Reply), answer
    assert evidence in endpoint.calls[0].text
    assert not recwarn.list


async def test_long_headers_are_read(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script(Scenario("cookies", headers={"set-cookie": "a=" + "x" * 30_000}))
    assert isinstance(await make_chat().ask(PROMPT, timeout=60), Reply)
    endpoint.script("ok")
    await make_chat().ask(PROMPT, timeout=60)
    assert "cookie" not in endpoint.calls[1].headers


# The way there


async def test_a_proxy_of_the_environment_is_used_and_loopback_is_not_sent_through_it(
    endpoint: Endpoint, make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    far = resolve_credentials("k", "http://judge.invalid/v1", environ={})
    for variable, proxy in (
        ("http_proxy", f"http://127.0.0.1:{endpoint.port}"),
        ("all_proxy", f"127.0.0.1:{endpoint.port}"),
    ):
        monkeypatch.setenv(variable, proxy)
        assert isinstance(await make_chat(far).ask(PROMPT, timeout=60), Reply)
        assert endpoint.calls[-1].path == "http://judge.invalid/v1/chat/completions"
        monkeypatch.delenv(variable)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert isinstance(await make_chat().ask(PROMPT, timeout=60), Reply)
    monkeypatch.setenv("no_proxy", "judge.invalid")
    answer = await make_chat(far).ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert "host name" in answer.fault.detail


async def test_a_proxy_that_does_not_answer_is_named(make_chat: MakeJudge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    answer = await make_chat(resolve_credentials("k", "https://judge.invalid/v1", environ={})).ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.CONNECTION
    assert "the proxy of the environment" in answer.fault.detail


@pytest.mark.parametrize(
    "proxy", ["socks5://user:pa55word@127.0.0.1:1080", "gopher://127.0.0.1", "http://[::1", "http://a:b"]
)
def test_a_proxy_that_cannot_be_used_is_refused_before_anything_is_paid(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(SettingsError, match="cannot be reached") as refused:
        route_to("https://judge.example.com/v1")
    assert "pa55word" not in str(refused.value)


# Whom to trust

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl program makes the certificate")


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """One that signs itself, for 127.0.0.1: certificate and key."""
    cert, key = tmp_path / "trusted" / "cert.pem", tmp_path / "key.pem"
    cert.parent.mkdir()
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=judge", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    subprocess.run(["openssl", "rehash", cert.parent], check=True, capture_output=True)
    return cert, key


@pytest.fixture
async def encrypted(endpoint: Endpoint, certificate: tuple[Path, Path]) -> AsyncIterator[str]:
    """The base URL of the scripted endpoint behind TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(2**16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    yield endpoint.base_url.replace(f"http://127.0.0.1:{endpoint.port}", f"https://127.0.0.1:{port}")
    server.close()


@needs_openssl
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_certificates_of_the_environment_are_trusted(
    endpoint: Endpoint,
    make_chat: MakeJudge,
    monkeypatch: pytest.MonkeyPatch,
    encrypted: str,
    certificate: tuple[Path, Path],
    variable: str,
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    pair = resolve_credentials("k", encrypted, environ={})
    answer = await make_chat(pair).ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.CONNECTION
    assert answer.fault.detail.startswith("the certificate is not trusted: self")
    monkeypatch.setenv(variable, str(certificate[0] if variable == "SSL_CERT_FILE" else certificate[0].parent))
    judge = make_chat(pair)
    assert isinstance(await judge.ask(PROMPT, timeout=60), Reply)
    reply = await judge.client().chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    assert reply.choices[0].message.content == endpoint.prose


@pytest.mark.parametrize("spoil", [lambda path: path.write_text("no certificate"), lambda path: None])
def test_a_file_of_certificates_that_cannot_be_read_is_refused_before_anything_is_paid(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    file = tmp_path / "authorities.pem"
    spoil(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(SettingsError, match="SSL_CERT_FILE"):
        route_to("https://judge.example.com/v1")
