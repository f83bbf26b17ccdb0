"""SPEC 7: `endpoints` lists several pairs, from one source; what is wrong with it is one line that shows no key."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric_env.judges import (
    ChatJudge,
    Credentials,
    JudgePool,
    NoCredential,
    Reply,
    make_judge,
    resolve_credentials,
    resolve_endpoints,
)
from rubric_env.settings import JudgeSettings, read_config
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint

SECRET = "s3cret-value-of-a-key"
A = {"base_url": "https://a.example/v1", "api_key": "key-a"}
B = {"base_url": "https://b.example/v1/", "api_key": "key-b", "weight": 2, "model": "judge-b"}


async def told(endpoints: Any = None, **more: Any) -> list[tuple[str, str, float, str | None]]:
    found = resolve_endpoints(endpoints, **{"environ": {}, **more})
    return [(e.credentials.base_url, await e.credentials.key(), e.weight, e.model) for e in found]


EXPECTED = [("https://a.example/v1", "key-a", 1.0, None), ("https://b.example/v1", "key-b", 2.0, "judge-b")]


async def test_section_7_endpoints_come_from_arguments_variable_or_settings_file(tmp_path: Path) -> None:
    assert await told([A, B]) == EXPECTED
    assert await told(environ={"JUDGE_ENDPOINTS": json.dumps([A, B])}) == EXPECTED
    assert await told(environ={"JUDGE_ENDPOINTS": json.dumps({"endpoints": [A, B]})}) == EXPECTED
    as_json, as_toml = tmp_path / "endpoints.json", tmp_path / "endpoints.toml"
    as_json.write_text(json.dumps([A, B]))
    toml = "\n".join(
        "[[TABLE]]\n" + "\n".join(f"{name} = {json.dumps(value)}" for name, value in entry.items()) for entry in (A, B)
    )
    as_toml.write_text(toml.replace("TABLE", "endpoints"))
    for file in (as_json, as_toml):
        assert await told(environ={"JUDGE_ENDPOINTS": str(file)}) == EXPECTED
    settings = tmp_path / "judge.toml"
    settings.write_text('[judge]\nmodel = "m"\n' + toml.replace("TABLE", "judge.endpoints"))
    assert await told(config=read_config(settings)) == EXPECTED
    assert JudgeSettings.load(config=settings, environ={"JUDGE_ENDPOINTS": "[]"}).model == "m"


async def test_section_7_the_first_source_that_gives_anything_gives_all() -> None:
    env = {"JUDGE_ENDPOINTS": json.dumps([B]), "OPENAI_API_KEY": "o"}
    assert await told([A], environ=env, config={"endpoints": [B]}) == EXPECTED[:1]
    assert await told(environ=env, config={"api_key": "k"}) == EXPECTED[1:]
    pair = await told(api_key="k", base_url="https://k.example", environ=env)
    assert pair == [("https://k.example", "k", 1.0, None)]
    judge = {"JUDGE_API_KEY": "j", "JUDGE_BASE_URL": "https://j.example"}
    assert await told(environ=judge, config={"endpoints": [A]}) == [("https://j.example", "j", 1.0, None)]
    assert await told(environ={"OPENAI_API_KEY": "o"}) == [("https://api.openai.com/v1", "o", 1.0, None)]
    with pytest.raises(NoCredential, match="JUDGE_API_KEY"):
        resolve_endpoints(environ={})


@pytest.mark.parametrize(
    ("arguments", "environ", "config", "words"),
    [
        ({"endpoints": [A], "api_key": "k"}, {}, {}, "endpoints and api_key are both given: keep one"),
        ({"endpoints": [A], "base_url": "https://x.example"}, {}, {}, "endpoints and base_url are both given"),
        ({}, {"JUDGE_ENDPOINTS": "[]", "JUDGE_API_KEY": "k"}, {}, "JUDGE_ENDPOINTS and JUDGE_API_KEY are both"),
        ({}, {}, {"endpoints": [A], "api_key_file": "f"}, "endpoints in the settings file and api_key_file"),
    ],
)
def test_section_7_a_list_and_a_pair_from_one_source_are_refused(
    arguments: dict[str, Any], environ: dict[str, str], config: dict[str, Any], words: str
) -> None:
    with pytest.raises(NoCredential, match=words):
        resolve_endpoints(**arguments, environ=environ, config=config)


async def test_section_13_each_entry_has_one_key_in_one_of_four_ways(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    url = {"base_url": "https://a.example"}
    command = f"{sys.executable} -c \"print('from-command')\""
    found = await told(
        [
            {**url, "api_key_file": str(file)},
            {**url, "api_key_command": command},
            {**url, "api_key_var": "TEAM_KEY"},
            {**url, "api_key": lambda: "from-function"},
        ],
        environ={"TEAM_KEY": " from-variable "},
    )
    assert [key for _, key, _, _ in found] == ["from-file", "from-command", "from-variable", "from-function"]


URL = {"base_url": "https://a.example/v1"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"api_key": SECRET}, "entry 2: base_url is missing"),
        ({"api_key": SECRET, "base_url": SECRET}, "entry 2: base_url is no http:// or https:// address"),
        ({"api_key": SECRET, "base_url": f"https://user:{SECRET}@a.example"}, "holds a user name or password"),
        (URL, "entry 2: give one of api_key, api_key_file, api_key_command, api_key_var, not none"),
        ({**URL, "api_key": SECRET, "api_key_file": "f"}, "not api_key and api_key_file"),
        ({**URL, "key": SECRET}, "entry 2: unknown key; an entry has base_url, api_key"),
        ({**URL, "api_key": SECRET, "weight": 0}, "entry 2: weight is a number above 0"),
        ({**URL, "api_key": SECRET, "weight": "2"}, "weight is a number above 0"),
        ({**URL, "api_key": SECRET, "weight": True}, "weight is a number above 0"),
        ({**URL, "api_key": SECRET, "weight": float("nan")}, "weight is a number above 0"),
        ({**URL, "api_key": SECRET, "model": ""}, "entry 2: model is the name of a model"),
        ({**URL, "api_key": f"{SECRET} {SECRET}"}, "entry 2: api_key: the key holds a space"),
        ({**URL, "api_key": [SECRET]}, "entry 2: api_key is no text"),
        ({**URL, "api_key_var": SECRET}, "entry 2: api_key_var: no such environment variable is set"),
        ({**URL, "api_key_file": "/no/such/file"}, "entry 2: api_key_file: /no/such/file cannot be read"),
        (SECRET, "entry 2: an entry is a table with base_url and a key"),
    ],
)
def test_section_7_an_entry_that_is_not_right_is_named_in_one_line_without_its_key(entry: Any, words: str) -> None:
    for given in ({"endpoints": [A, entry]}, {"environ": {"JUDGE_ENDPOINTS": json.dumps([A, entry])}}):
        with pytest.raises(NoCredential, match=words) as told:
            resolve_endpoints(**{"environ": {}, **given})
        assert SECRET not in str(told.value)
        assert "\n" not in str(told.value)
        assert str(told.value).startswith(("endpoints, ", "JUDGE_ENDPOINTS, "))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("[]", "JUDGE_ENDPOINTS: give a list of tables"),
        (f'[{{"api_key": "{SECRET}",]', r"JUDGE_ENDPOINTS is no JSON \(line 1, column"),
        (f'{{"api_key": "{SECRET}"}}', "JUDGE_ENDPOINTS: give a list of tables"),
        (SECRET, "JUDGE_ENDPOINTS is neither a JSON list nor a file that can be read: No such file"),
        ("[" * 100_000, "JUDGE_ENDPOINTS is no JSON"),
    ],
)
def test_section_7_a_variable_that_lists_nothing_is_refused(value: str, words: str) -> None:
    with pytest.raises(NoCredential, match=words) as told:
        resolve_endpoints(environ={"JUDGE_ENDPOINTS": value})
    assert SECRET not in str(told.value)


def test_section_7_a_file_that_lists_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "endpoints.toml"
    for text, words in (("x = [", "is no TOML"), ("x = 1", "give a list of tables"), ("endpoints = 3", "give a list")):
        file.write_text(text)
        with pytest.raises(NoCredential, match=words):
            resolve_endpoints(environ={"JUDGE_ENDPOINTS": str(file)})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(NoCredential, match="not text"):
        resolve_endpoints(environ={"JUDGE_ENDPOINTS": str(file)})


async def test_where_one_pair_is_asked_for_a_list_of_one_will_do() -> None:
    assert await resolve_credentials(environ={"JUDGE_ENDPOINTS": json.dumps([A])}).key() == "key-a"
    with pytest.raises(NoCredential, match="2 endpoints are listed where one is asked for"):
        resolve_credentials(environ={"JUDGE_ENDPOINTS": json.dumps([A, B])})


async def test_section_7_several_endpoints_share_the_work_of_one_judge() -> None:
    with Endpoint() as first, Endpoint() as second:
        entries = [
            {"base_url": first.base_url, "api_key": "key-a"},
            {"base_url": second.base_url, "api_key": "key-b", "model": "judge-b"},
        ]
        judge = make_judge(JudgeSettings(model="m", per_timeout=60), resolve_endpoints(entries, environ={}))
        assert isinstance(judge, JudgePool)
        for n in range(20):
            assert isinstance(await judge.ask(make_prompt("R01", evidence=f"evidence {n}"), timeout=60), Reply)
        await judge.aclose()
        assert {(call.key, call.body["model"]) for call in first.calls} == {("key-a", "m")}
        assert {(call.key, call.body["model"]) for call in second.calls} == {("key-b", "judge-b")}
        assert judge.identity == " + ".join(sorted([f"chat {first.base_url} m", f"chat {second.base_url} judge-b"]))
        first.settle()
        second.settle()


def test_one_endpoint_is_a_plain_judge_and_the_environment_stays_as_it_is() -> None:
    before = dict(os.environ)
    found = resolve_endpoints([{**A, "model": "judge-a"}], environ={})
    judge = make_judge(JudgeSettings(model="m"), found)
    assert isinstance(judge, ChatJudge)
    assert judge.model == "judge-a"
    assert isinstance(found[0].credentials, Credentials)
    assert "key-a" not in repr(found)
    with pytest.raises(NoCredential):
        make_judge(JudgeSettings(), [])
    assert dict(os.environ) == before
