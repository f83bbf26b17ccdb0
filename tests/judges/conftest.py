from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rubric_env.judges import ChatJudge, Credentials, resolve_credentials
from rubric_env.settings import JudgeSettings
from tests.servers.endpoint import Endpoint

MakeJudge = Callable[..., ChatJudge]


@pytest.fixture
async def make_chat(endpoint: Endpoint) -> AsyncIterator[MakeJudge]:
    """Judges of the scripted endpoint; settings by keyword."""
    made = []

    def make(credentials: Credentials | None = None, **settings: Any) -> ChatJudge:
        pair = credentials or resolve_credentials("test-key-1234", endpoint.base_url, environ={})
        judge = ChatJudge(JudgeSettings(**{"model": "judge-model", **settings}), pair)
        made.append(judge)
        return judge

    yield make
    for judge in made:
        await judge.aclose()
