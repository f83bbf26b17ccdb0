"""SPEC 11: the judge table, the offline judge, and the probe of an endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rubric_env.judges import (
    ChatJudge,
    LocalJudge,
    NoCredential,
    Reply,
    make_judge,
    probe,
    resolve_credentials,
)
from rubric_env.scoring.faults import FaultKind
from rubric_env.settings import JudgeSettings, SettingsError
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint


def test_section_11_backends_by_name() -> None:
    pair = resolve_credentials("k", "http://127.0.0.1:9/v1", environ={})
    assert isinstance(make_judge(JudgeSettings(), pair), ChatJudge)
    assert isinstance(make_judge(JudgeSettings(backend="local")), LocalJudge)
    with pytest.raises(NoCredential):
        make_judge(JudgeSettings())
    with pytest.raises(SettingsError, match="'codex': this version answers through chat, responses and local"):
        make_judge(JudgeSettings(backend="codex"), pair)


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
def test_an_environment_in_which_no_client_can_be_made_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """verifiers asks for the client of every reward func, outside of what it catches."""
    monkeypatch.setenv(variable, "gopher://127.0.0.1:9")
    pair = resolve_credentials("k", "https://judge.example.com/v1", environ={})
    with pytest.raises(SettingsError, match=r"judge\.example\.com.*PROXY"):
        make_judge(JudgeSettings(), pair)


def test_section_7_identity_names_endpoint_model_and_sampling_without_the_key() -> None:
    pair = resolve_credentials("s3cret", "http://127.0.0.1:9/v1", environ={})
    judge = make_judge(JudgeSettings(model="m", temperature=0.0, seed=3), pair)
    assert judge.identity == "chat http://127.0.0.1:9/v1 m temperature=0.0 seed=3"


async def test_section_11_the_local_judge_needs_no_key_and_spends_no_tokens() -> None:
    judge = make_judge(JudgeSettings(backend="local"))
    reply = await judge.ask(make_prompt("R01", "R02"), timeout=60)
    assert isinstance(reply, Reply)
    assert [v["id"] for v in json.loads(reply.text)["verdicts"]] == ["R01", "R02"]
    assert (reply.usage.calls, reply.usage.input_tokens, reply.usage.cost_usd) == (1, 0, 0.0)
    assert reply.mode == judge.model.split("-")[0] == "local"
    await judge.aclose()


async def test_a_probe_says_what_the_endpoint_can_do(endpoint: Endpoint) -> None:
    pair = resolve_credentials("k", endpoint.base_url, environ={})
    settings = JudgeSettings(model="judge-model", per_timeout=60)
    endpoint.reject("json_schema")
    found = await probe(settings, pair)
    assert (found.ok, found.mode) == (True, "json_object")
    assert found.detail.startswith("judge-model answers in ")
    endpoint.script("401", "401")
    found = await probe(settings, pair)
    assert not found.ok
    assert "auth: HTTP 401" in found.detail
    endpoint.settle()


def test_the_judges_are_imported_without_openai() -> None:
    code = "import sys, rubric_env.judges; print('openai' in sys.modules, 'httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_every_fault_has_its_line_in_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "faults.md").read_text("utf-8")
    assert {kind for kind in FaultKind if f"\n| `{kind}` |" not in guide} == set()
