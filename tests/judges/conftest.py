from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rubric_env.judges import ChatJudge, Credentials, resolve_credentials
from rubric_env.judges.chat import ENDPOINT_JUDGES
from rubric_env.settings import JudgeSettings
from tests.servers.endpoint import Endpoint

MakeJudge = Callable[..., ChatJudge]


WAYS: dict[str, dict[str, Any]] = {
    "chat": {},
    "chat-stream": {"stream": "on"},
    "responses": {"backend": "responses"},
    "responses-stream": {"backend": "responses", "stream": "on"},
}
"""What the same test asks for in both wire formats, whole and streamed."""

in_every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS, indirect=True)


@pytest.fixture
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of the judges that `make_chat` makes, beside their own."""
    given: dict[str, Any] = getattr(request, "param", {})
    return given


@pytest.fixture
async def make_chat(endpoint: Endpoint, way: dict[str, Any]) -> AsyncIterator[MakeJudge]:
    """Judges of the scripted endpoint; settings by keyword."""
    made = []

    def make(credentials: Credentials | None = None, **settings: Any) -> ChatJudge:
        pair = credentials or resolve_credentials("test-key-1234", endpoint.base_url, environ={})
        known = JudgeSettings(**{"model": "judge-model", **way, **settings})
        judge = ENDPOINT_JUDGES[known.backend](known, pair)
        made.append(judge)
        return judge

    yield make
    for judge in made:
        await judge.aclose()
