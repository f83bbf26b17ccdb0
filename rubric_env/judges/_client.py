"""The `openai.AsyncOpenAI` for questions of a user's own. The judge's calls do without it (`_wire`)."""

from __future__ import annotations

import httpx
import openai

from rubric_env.judges._route import Route
from rubric_env.judges._wire import CONNECT_SECONDS
from rubric_env.judges.credentials import VENDOR_SOURCE, Credentials


def make_client(credentials: Credentials, route: Route, timeout: float) -> openai.AsyncOpenAI:
    """It makes no retries, and trusts whom the judge's calls trust."""
    http = httpx.AsyncClient(
        verify=True if route.trust is None else route.trust,
        proxy=route.proxy,
        trust_env=False,
        follow_redirects=False,
    )
    client = openai.AsyncOpenAI(
        api_key=credentials.key,
        base_url=credentials.base_url,
        max_retries=0,
        timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
        http_client=http,
    )
    if credentials.source != VENDOR_SOURCE:
        # The client reads these from OPENAI_* variables: another source's key must not travel with them.
        client.organization = client.project = None
    return client
