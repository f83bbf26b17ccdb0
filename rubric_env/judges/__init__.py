"""Who answers a block: the judges, their credentials, and what a call costs."""

from __future__ import annotations

from collections.abc import Callable

from rubric_env.judges._errors import JudgeCallError
from rubric_env.judges._probe import Probe, probe
from rubric_env.judges.chat import ChatJudge
from rubric_env.judges.credentials import Credentials, NoCredential, resolve_credentials
from rubric_env.judges.local import LocalJudge
from rubric_env.judges.prices import Price, cost_usd, load_prices
from rubric_env.judges.protocol import CallFault, Judge, Prompt, RateHints, Reply
from rubric_env.settings import JudgeSettings, SettingsError

__all__ = [
    "CallFault",
    "ChatJudge",
    "Credentials",
    "Judge",
    "JudgeCallError",
    "LocalJudge",
    "NoCredential",
    "Price",
    "Probe",
    "Prompt",
    "RateHints",
    "Reply",
    "cost_usd",
    "load_prices",
    "make_judge",
    "probe",
    "resolve_credentials",
]


def _chat(settings: JudgeSettings, credentials: Credentials | None) -> Judge:
    if credentials is None:
        raise NoCredential("the chat judge needs a key and a base URL: see resolve_credentials")
    return ChatJudge(settings, credentials)


_BACKENDS: dict[str, Callable[[JudgeSettings, Credentials | None], Judge]] = {
    "chat": _chat,
    "local": lambda _settings, _credentials: LocalJudge(),
}


def make_judge(settings: JudgeSettings, credentials: Credentials | None = None) -> Judge:
    """The judge of `settings.backend`. Raises NoCredential, or SettingsError for a backend that this version lacks."""
    if settings.backend not in _BACKENDS:
        known = " and ".join(_BACKENDS)
        raise SettingsError(f"backend = {settings.backend!r}: this version answers through {known}")
    return _BACKENDS[settings.backend](settings, credentials)
