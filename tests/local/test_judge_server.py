"""The local judge as an endpoint: every structured-output mode, read by the project's own parser."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
from typing import Any

import httpx
import openai
import pytest

from rubric_env.local import WIRING_NOTICE, LlamaServer, LocalJudgeServer, local_judge
from tests.local.prompts import PLAIN_MARKER, evidence, graded, prompt, row

ROWS = [
    row("The total is EUR 4,321."),
    row("Zephyrine is recommended.", id="R02"),
    graded("Two figures are right: Sales 400, Support 500.", {0.0: "none", 0.5: "one", 1.0: "both"}) | {"id": "R03"},
]
SECTION = evidence(report_md="[¶1] The total is EUR 4,321.\n[¶2] Sales 400. Support 600.")
PROMPT = prompt(ROWS, SECTION)


def ask(judge: LocalJudgeServer, text: str, **fields: Any) -> str:
    with openai.OpenAI(api_key="any", base_url=judge.base_url, max_retries=0) as api:
        messages: Any = [{"role": "system", "content": "You judge."}, {"role": "user", "content": text}]
        content = (
            api.chat.completions.create(model="local-lexical", messages=messages, **fields).choices[0].message.content
        )
    assert content is not None
    return content


SCHEMA = {"type": "json_schema", "json_schema": {"name": "verdicts", "strict": True, "schema": {"type": "object"}}}


@pytest.mark.parametrize("mode", [SCHEMA, {"type": "json_object"}], ids=["json_schema", "json_object"])
def test_a_structured_answer_is_the_object_and_nothing_else(judge: LocalJudgeServer, mode: Any) -> None:
    verdicts = json.loads(ask(judge, PROMPT, response_format=mode))["verdicts"]
    assert [(v["id"], v["hit"], v.get("level")) for v in verdicts] == [
        ("R01", True, None),
        ("R02", False, None),
        ("R03", True, 0.5),
    ]
    assert verdicts[0]["evidence"] == "output/report.md#¶1 “The total is EUR 4,321.”"


def test_a_plain_answer_says_what_it_is_and_follows_the_marker_line(judge: LocalJudgeServer) -> None:
    notice, marker, body = ask(judge, PROMPT).split("\n", 2)
    assert (notice, marker) == (WIRING_NOTICE, PLAIN_MARKER)
    assert len(json.loads(body)["verdicts"]) == 3


def test_a_plain_answer_without_a_marker_is_one_whole_json_value(judge: LocalJudgeServer) -> None:
    assert len(json.loads(ask(judge, PROMPT.replace(PLAIN_MARKER, "nothing")))["verdicts"]) == 3


def test_a_prompt_in_parts_is_one_prompt(judge: LocalJudgeServer) -> None:
    cut = PROMPT.index("# Rows") - 1
    parts: Any = [{"type": "text", "text": PROMPT[:cut]}, {"type": "text", "text": PROMPT[cut + 1 :]}]
    assert len(json.loads(ask(judge, parts, response_format={"type": "json_object"}))["verdicts"]) == 3


@pytest.mark.parametrize("mode", [None, {"type": "json_object"}])
def test_a_question_without_rows_is_answered_with_what_this_is(judge: LocalJudgeServer, mode: Any) -> None:
    answer = ask(judge, "Is the answer 42 right?", **({"response_format": mode} if mode else {}))
    text = json.loads(answer)["answer"] if mode else answer
    assert text.startswith(WIRING_NOTICE)


@pytest.mark.parametrize(
    "messages", [[{"role": "system", "content": "x"}], [{"role": "user", "content": "\n# Rows\n```json\n{}\n```\n"}]]
)
def test_a_prompt_that_cannot_be_read_is_a_bad_request(judge: LocalJudgeServer, messages: Any) -> None:
    with (
        openai.OpenAI(api_key="any", base_url=judge.base_url, max_retries=0) as api,
        pytest.raises(openai.BadRequestError),
    ):
        api.chat.completions.create(model="local-lexical", messages=messages)


def test_blocks_of_one_rollout_share_their_prefix(judge: LocalJudgeServer) -> None:
    section = evidence(report_md="\n".join(f"[¶{n}] Line {n} of a longer report." for n in range(200)))
    cached = []
    for one in ROWS[:2]:
        body = {"model": "local-lexical", "messages": [{"role": "user", "content": prompt([one], section)}]}
        cached.append(httpx.post(f"{judge.base_url}/chat/completions", json=body).json()["usage"])
    first, second = (usage["prompt_tokens_details"]["cached_tokens"] for usage in cached)
    assert first == 0
    assert second > 0.6 * cached[1]["prompt_tokens"]


def test_health_says_what_it_is(judge: LocalJudgeServer) -> None:
    health = httpx.get(judge.base_url.replace("/v1", "/health")).json()
    assert health == {"status": "ok", "model": "local-lexical", "engine": "lexical", "notice": WIRING_NOTICE}


def test_engines_are_made_by_name() -> None:
    assert isinstance(local_judge(), LocalJudgeServer)
    assert isinstance(local_judge("llama"), LlamaServer)
    with pytest.raises(ValueError, match="lexical, llama"):
        local_judge("oracle")


def test_serving_in_the_foreground_ends_with_ctrl_c() -> None:
    code = "from rubric_env.local import serve_local_judge; serve_local_judge()"
    # What is started in the background of a shell ignores SIGINT, and its children inherit that.
    default = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=default
    ) as served:
        assert served.stdout is not None
        said = json.loads(served.stdout.readline())
        assert httpx.get(f"{said['base_url']}/models").json()["data"][0]["id"] == said["model"] == "local-lexical"
        served.send_signal(signal.SIGINT)
        _, errors = served.communicate(timeout=60)
    assert served.returncode == 0
    assert WIRING_NOTICE in errors
    assert "Traceback" not in errors
