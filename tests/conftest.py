from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.endpoint import Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A scripted judge endpoint that answers right until told otherwise."""
    with Endpoint() as server:
        yield server
