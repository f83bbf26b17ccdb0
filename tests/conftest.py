from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.servers.endpoint import Endpoint

with contextlib.suppress(ImportError):  # what tests the adapters is installed without it
    from hypothesis import HealthCheck, settings

    # The same examples in every run, and however long each takes: chance and a busy machine fail no test.
    settings.register_profile(
        "same", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("same")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """A scripted judge endpoint that answers right until told otherwise."""
    with Endpoint() as server:
        yield server
