from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

vf = pytest.importorskip("verifiers", reason="the classic extra is not installed")

from rubric_env.classic import HarborRubric  # noqa: E402
from tests.servers.endpoint import Endpoint  # noqa: E402
from tests.servers.scenarios import Scenario  # noqa: E402

RUBRIC = [
    {"id": "R1", "description": "The reply names the total.", "weight": 3},
    {"id": "R2", "description": "The reply names the owner.", "weight": 1},
]
QUALITIES: Mapping[str, Mapping[str, bool]] = {
    "GOOD": {"R1": True, "R2": True},
    "HALF": {"R1": True, "R2": False},
    "BAD": {"R1": False, "R2": False},
}


def verdicts(hits: Mapping[str, bool]) -> str:
    return json.dumps({"verdicts": [{"id": k, "reason": "read", "evidence": "", "hit": v} for k, v in hits.items()]})


@pytest.fixture
def judge(endpoint: Endpoint) -> Endpoint:
    """Scores GOOD 1, HALF 0.75 and BAD 0; a reply with LOST in it meets a dead endpoint."""
    for word, hits in QUALITIES.items():
        endpoint.rule(lambda call, word=word: f"reply {word}" in call.text, Scenario(word, content=verdicts(hits)))
    endpoint.rule(lambda call: "reply LOST" in call.text, "401")
    return endpoint


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """The policy's endpoint, which wants the key that POLICY_KEY names."""
    monkeypatch.setenv("POLICY_KEY", "any")
    with Endpoint() as server:
        yield server


@pytest.fixture
def make_rubric(judge: Endpoint) -> Callable[..., HarborRubric]:
    def make(**arguments: Any) -> HarborRubric:
        settings = {"per_timeout": 60, "max_tries": 1, "resplit": False, **arguments.pop("settings", {})}
        arguments.setdefault("rubric", RUBRIC)
        return HarborRubric("judge-model", judge.base_url, "key", settings=settings, **arguments)

    return make


def make_state(quality: str = "GOOD", *, info: Any = None, answer: str = "", steps: int = 1, **extra: Any) -> Any:
    """A finished rollout as an environment hands it to its rubric."""
    reply = [{"role": "assistant", "content": f"reply {quality}"}]
    state = vf.State(
        input={"prompt": [{"role": "user", "content": "Who owns the total?"}], "answer": answer, "example_id": 0}
    )
    state["input"]["info"] = {} if info is None else info
    state["task"] = dict(state["input"])
    state["completion"] = reply
    state["trajectory"] = [{"reward": None, "advantage": None, "completion": reply} for _ in range(steps)]
    state.update({"reward": None, "metrics": None, "error": None, **extra})
    return state


async def score(rubric: Any, states: list[Any]) -> list[Any]:
    """What an environment does with a group: score it, then clean up state by state."""
    await rubric.score_group(states)
    for state in states:
        await rubric.cleanup(state)
    return states
