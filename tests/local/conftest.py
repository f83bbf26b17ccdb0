from __future__ import annotations

from collections.abc import Iterator

import pytest

from rubric_env.local import LocalJudgeServer


@pytest.fixture
def judge() -> Iterator[LocalJudgeServer]:
    with LocalJudgeServer() as server:
        yield server
