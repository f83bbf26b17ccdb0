"""Who answers a block: the judges, their credentials, and what a call costs."""

from __future__ import annotations

from collections.abc import Sequence

from rubric_env.judges._errors import JudgeCallError
from rubric_env.judges._probe import Probe, probe
from rubric_env.judges.chat import ENDPOINT_JUDGES, ChatJudge, ResponsesJudge
from rubric_env.judges.credentials import (
    Credentials,
    Endpoint,
    NoCredential,
    resolve_credentials,
    resolve_endpoints,
)
from rubric_env.judges.local import LocalJudge
from rubric_env.judges.pool import JudgePool
from rubric_env.judges.prices import Price, cost_usd, load_prices
from rubric_env.judges.protocol import CallFault, Judge, Picture, Prompt, RateHints, Reply
from rubric_env.settings import JudgeSettings, SettingsError

__all__ = [
    "CallFault",
    "ChatJudge",
    "Credentials",
    "Endpoint",
    "Judge",
    "JudgeCallError",
    "JudgePool",
    "LocalJudge",
    "NoCredential",
    "Picture",
    "Price",
    "Probe",
    "Prompt",
    "RateHints",
    "Reply",
    "ResponsesJudge",
    "cost_usd",
    "load_prices",
    "make_judge",
    "probe",
    "resolve_credentials",
    "resolve_endpoints",
]


def make_judge(settings: JudgeSettings, credentials: Credentials | Sequence[Endpoint] | None = None) -> Judge:
    """The judge of `settings.backend`; for several endpoints the pool of their judges.

    Raises NoCredential, or SettingsError for a backend that this version lacks.
    """
    if settings.backend == "local":
        return LocalJudge()
    if settings.backend not in ENDPOINT_JUDGES:
        known = ", ".join(ENDPOINT_JUDGES)
        raise SettingsError(f"backend = {settings.backend!r}: this version answers through {known} and local")
    if not credentials:
        raise NoCredential(f"the {settings.backend} judge needs a key and a base URL: see resolve_endpoints")
    endpoints = [Endpoint(credentials)] if isinstance(credentials, Credentials) else credentials
    made = ENDPOINT_JUDGES[settings.backend]
    judges = [
        (made(settings.model_copy(update={"model": endpoint.model or settings.model}), endpoint.credentials), endpoint)
        for endpoint in endpoints
    ]
    return judges[0][0] if len(judges) == 1 else JudgePool([(judge, endpoint.weight) for judge, endpoint in judges])
