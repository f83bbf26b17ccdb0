"""SPEC 7: key and base URL are one pair from one source; a key that changes is read again; nothing shows it."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric_env.judges import CallFault, NoCredential, Reply, resolve_credentials
from rubric_env.judges.credentials import VENDOR_URL
from rubric_env.scoring.faults import FaultKind
from tests.judges.conftest import MakeJudge
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint

PROMPT = make_prompt("R01")
JUDGE = {"JUDGE_API_KEY": "judge-key", "JUDGE_BASE_URL": "https://judge.example/v1"}
OPENAI = {"OPENAI_API_KEY": "openai-key", "OPENAI_BASE_URL": "https://openai.example/v1"}
CONFIG = {"api_key": "config-key", "base_url": "https://config.example/v1"}


async def pair(*args: Any, **more: Any) -> tuple[str, str]:
    found = resolve_credentials(*args, **{"environ": {}, **more})
    return await found.key(), found.base_url


async def test_section_7_the_first_source_that_gives_anything_gives_the_pair() -> None:
    everything = {**JUDGE, **OPENAI}
    assert await pair("a", "https://a.example", environ=everything, config=CONFIG) == ("a", "https://a.example")
    assert await pair(environ=everything, config=CONFIG) == ("judge-key", "https://judge.example/v1")
    assert await pair(environ=OPENAI, config=CONFIG) == ("config-key", "https://config.example/v1")
    assert await pair(environ=OPENAI) == ("openai-key", "https://openai.example/v1")


async def test_section_7_a_key_without_url_means_the_vendors_literal_url() -> None:
    assert await pair("a", environ={**JUDGE, **OPENAI}) == ("a", VENDOR_URL)
    assert await pair(environ={"JUDGE_API_KEY": "j", **OPENAI}) == ("j", "https://api.openai.com/v1")
    assert await pair(environ={"OPENAI_API_KEY": "o", "JUDGE_BASE_URL": "  "}) == ("o", VENDOR_URL)


@pytest.mark.parametrize(
    ("arguments", "environ", "config", "named"),
    [
        ({"base_url": "https://a.example"}, {**JUDGE, **OPENAI}, {}, "api_key"),
        ({}, {"JUDGE_BASE_URL": "https://a.example", **OPENAI}, CONFIG, "JUDGE_API_KEY"),
        ({}, OPENAI, {"base_url": "https://a.example"}, "api_key in the settings file"),
        ({}, {"OPENAI_BASE_URL": "https://a.example"}, {}, "OPENAI_API_KEY"),
        ({}, {}, {}, "JUDGE_API_KEY"),
        ({"api_key": "  "}, {}, {}, "JUDGE_API_KEY"),
    ],
)
def test_section_7_half_a_pair_is_refused_and_never_completed_from_elsewhere(
    arguments: dict[str, str], environ: dict[str, str], config: dict[str, str], named: str
) -> None:
    with pytest.raises(NoCredential, match=named) as refused:
        resolve_credentials(**arguments, environ=environ, config=config)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["api.example.com/v1", "ftp://x", "https://", "https://user:pw@x/v1", "https://x/v1?k=s3cret"]
)
def test_a_base_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(NoCredential, match="base_url") as refused:
        resolve_credentials("k", url, environ={})
    assert "s3cret" not in str(refused.value)


async def test_a_base_url_is_cleaned_of_what_people_paste() -> None:
    assert await pair("k", "https://a.example/v1/") == ("k", "https://a.example/v1")
    assert await pair("k", "https://a.example/v1/chat/completions") == ("k", "https://a.example/v1")


@pytest.mark.parametrize("key", ["two words", "schlüssel", "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(NoCredential, match="api_key") as refused:
        resolve_credentials(key, environ={})
    assert key not in str(refused.value)


async def test_section_13_file_and_command_win_over_the_value(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(" from-file\n")
    env = {**JUDGE, "JUDGE_API_KEY_FILE": str(file)}
    assert await pair(environ=env) == ("from-file", "https://judge.example/v1")
    command = f"{sys.executable} -c \"print('from command'.split()[1])\""
    assert (await pair(environ={**JUDGE, "JUDGE_API_KEY_COMMAND": command}))[0] == "command"
    with pytest.raises(NoCredential, match="keep one"):
        resolve_credentials(environ={**env, "JUDGE_API_KEY_COMMAND": command})


def test_a_command_sees_no_shell(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with pytest.raises(NoCredential, match="JUDGE_API_KEY_COMMAND: false ended with exit code 1"):
        resolve_credentials(environ={"JUDGE_API_KEY_COMMAND": f"false ; touch {canary}"})
    assert not canary.exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("api_key_file", "/no/such/file", "cannot be read: No such file"),
        ("api_key_command", "no-such-program-x", "cannot be run"),
        ("api_key_command", 'echo "unclosed', "no command line"),
        ("api_key_command", "true", "the key is empty"),
    ],
)
def test_a_source_that_gives_no_key_is_refused_at_construction(field: str, value: str, words: str) -> None:
    with pytest.raises(NoCredential, match=words):
        resolve_credentials(**{field: value}, environ={})


async def test_section_7_nothing_shows_the_key_or_exports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(os.environ)
    found = resolve_credentials("s3cret-value", "https://a.example", environ={})
    assert "s3cret" not in f"{found!r} {found} {found.source} {found.base_url}"
    for take in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="resolve them there"):
            take(found)
    assert await found.key() == "s3cret-value"
    assert dict(os.environ) == before


async def test_section_7_a_function_may_be_sync_or_async() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "async-key"

    assert (await pair(lambda: "sync-key"))[0] == "sync-key"
    assert (await pair(later))[0] == "async-key"

    def broken() -> str:
        raise RuntimeError("s3cret in here")

    with pytest.raises(NoCredential, match="raised RuntimeError") as refused:
        await resolve_credentials(broken, environ={}).key()
    assert "s3cret" not in str(refused.value)


async def test_section_7_an_expired_key_is_read_again_within_the_same_ask(
    endpoint: Endpoint, make_chat: MakeJudge, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("old")
    endpoint.keys = frozenset({"new"})
    judge = make_chat(resolve_credentials(base_url=endpoint.base_url, api_key_file=file, environ={}))
    file.write_text("new")
    reply = await judge.ask(PROMPT, timeout=60)
    assert isinstance(reply, Reply)
    assert reply.usage.calls == 2
    assert [call.key for call in endpoint.calls] == ["old", "new"]
    assert (await judge.ask(PROMPT, timeout=60)).usage.calls == 1


async def test_section_7_only_a_second_refusal_stops(endpoint: Endpoint, make_chat: MakeJudge) -> None:
    endpoint.script("401")
    assert isinstance(await make_chat().ask(PROMPT, timeout=60), Reply)
    endpoint.script("403", "403")
    answer = await make_chat().ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert (answer.fault.kind, answer.usage.calls) == (FaultKind.AUTH, 2)


async def test_section_7_concurrent_refusals_share_one_reading(
    endpoint: Endpoint, make_chat: MakeJudge, tmp_path: Path
) -> None:
    counter, script = tmp_path / "count", tmp_path / "key.sh"
    script.write_text(f"#!/bin/sh\necho x >> {counter}\nsleep 0.2\nwc -l < {counter} | tr -d ' ' | sed s/^/key-/\n")
    script.chmod(stat.S_IRWXU)
    judge = make_chat(resolve_credentials(base_url=endpoint.base_url, api_key_command=str(script), environ={}))
    endpoint.keys = frozenset({"key-1"})
    assert isinstance(await judge.ask(PROMPT, timeout=60), Reply)
    endpoint.keys = frozenset({"key-2"})
    replies = await asyncio.gather(*(judge.ask(PROMPT, timeout=60) for _ in range(16)))
    assert all(isinstance(reply, Reply) for reply in replies)
    assert len(counter.read_text().splitlines()) == 2


async def test_a_key_that_can_no_longer_be_read_is_named(
    endpoint: Endpoint, make_chat: MakeJudge, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("old")
    endpoint.keys = frozenset()
    judge = make_chat(resolve_credentials(base_url=endpoint.base_url, api_key_file=file, environ={}))
    file.unlink()
    answer = await judge.ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert answer.fault.kind is FaultKind.AUTH
    assert "cannot be read" in answer.fault.detail


async def test_a_function_that_fails_before_the_first_call_is_no_credential(
    endpoint: Endpoint, make_chat: MakeJudge
) -> None:
    judge = make_chat(resolve_credentials(lambda: "", endpoint.base_url, environ={}))
    answer = await judge.ask(PROMPT, timeout=60)
    assert isinstance(answer, CallFault)
    assert (answer.fault.kind, answer.usage.calls) == (FaultKind.NO_CREDENTIAL, 0)
    assert endpoint.calls == []
