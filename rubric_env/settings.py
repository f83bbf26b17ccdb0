"""Every knob of the judge (SPEC 7 and 13): argument > environment `JUDGE_*` > settings file > default.

Credentials are not here: a key and its URL are resolved as one pair by `rubric_env.judges.credentials`,
and a settings object can be logged, hashed and sent to a worker as it is.
"""

from __future__ import annotations

import os
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

PREFIX = "JUDGE_"
CREDENTIAL_FIELDS = frozenset({"api_key", "base_url", "api_key_file", "api_key_command", "endpoints"})
"""Resolved as a pair elsewhere; a settings file may hold them, `JudgeSettings` never does."""

HARBOR_DEFAULTS: Mapping[str, Any] = {"start_jitter": 180.0, "max_uncertainty": None}
"""In a Harbor verifier processes cannot see each other, and the seed's rule for partial scores holds (SPEC 3, 7)."""


class SettingsError(ValueError):
    """A setting that cannot be used; the message names it, its source's value and what is accepted."""


def _off_is_none(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in {"off", "none"} else value


def _reward_mode(value: Any) -> Any:
    if isinstance(value, str) and value not in {"continuous", "binary"}:
        warnings.warn(f"unknown reward mode {value!r}: continuous is used", stacklevel=2)
        return "continuous"
    return value


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class JudgeSettings(BaseModel):
    """Field `per_timeout` is `JUDGE_PER_TIMEOUT`, and so on. Times are seconds. Made by `load`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "gpt-5.5"
    """The judge model, as the endpoint names it."""
    backend: Literal["chat", "responses", "codex", "claude", "local"] = "chat"
    """Who answers: a wire format of an OpenAI-compatible endpoint, an agent CLI, or the offline wiring aid."""
    batch: int = Field(4, ge=1)
    """Rows a block; 8 dropped coverage from 0.980 to 0.903 on long rubrics in the field."""
    concurrency: int = Field(2, ge=1)
    """Blocks at a time for one rollout."""
    max_in_flight: int = Field(64, ge=1)
    """Calls at a time for the whole process, all rollouts together."""
    requests_per_minute: float | None = Field(None, gt=0)
    """A quota that is known beforehand, for all rollouts together; else learned from the endpoint."""
    tokens_per_minute: float | None = Field(None, gt=0)
    """The same for input tokens, as estimated."""
    stream: Literal["auto", "on", "off"] = "auto"
    """Take answers as a stream; auto: from the first call on that ran out of time or broke off."""
    per_timeout: Seconds = 150.0
    """One call, total wall time: connect, think, stream. A block's budget of time in calls is twice this."""
    max_tries: int = Field(6, ge=1)
    """Tries a block; a rate-limit rejection is not a try."""
    resplit: bool = True
    """A failed block is judged again row by row, each row with its own budget."""
    deadline: Seconds = 1800.0
    """One rollout from the start of judging; what was judged before it counts."""
    start_jitter: Seconds = 0.0
    """First wave, per block, uniform; 180 in a Harbor verifier."""
    retry_backoff_max: Seconds = 20.0
    """Longest wait after a rate-limit rejection that named no wait of its own."""
    systemic_fraction: float = Field(0.4, ge=0, le=1)
    """More unjudged rows than this share, and at least `systemic_min`: the whole rollout is unscored."""
    systemic_min: int = Field(2, ge=1)
    max_consecutive_failures: int = Field(3, ge=0)
    """The breaker's smallest window; 0 turns it off."""
    reasoning_effort: str | None = None
    temperature: float | None = Field(None, ge=0)
    seed: int | None = None
    max_tokens: int | None = Field(None, ge=1)
    """Sent only when set, like the three above: a cap would cut long reasons."""
    prices: str | None = None
    """Path of a TOML table of token prices that adds to the package's own."""
    reward_mode: Annotated[Literal["continuous", "binary"], BeforeValidator(_reward_mode)] = "continuous"
    pass_threshold: float = Field(0.75, ge=0, le=1)
    pass_compare: Literal["gte", "gt"] = "gte"
    max_uncertainty: Annotated[float | None, BeforeValidator(_off_is_none)] = Field(0.1, ge=0, le=1)
    """Unscored when `score_hi - score_lo` is more than this; `off` in a Harbor verifier."""
    lenient_delivery: bool = False
    """Files outside the output directory count as delivered; turns `chat_fallback` on."""
    chat_fallback: bool = True
    """A reply without files is judged."""
    evidence: Seconds = 180.0
    """Active seconds for the evidence of decks; 0 = off."""
    evidence_tokens: int = Field(100_000, ge=1_000)
    """Budget of one rollout's evidence, in estimated tokens."""
    instruction_file: str | None = None
    aux_files: str | None = None
    metric_id: str = "rubric_llm_judge"
    skip: bool = False
    on_unscored: Literal["mark", "regenerate", "zero", "last"] = "mark"
    limiter: str | None = Field(None, repr=False)
    """URL of a Redis through which processes and machines share one limiter and one breaker; in-process without."""
    vision: Literal["auto", "on", "off"] = "auto"
    """Pictures for the judge: "auto", where its endpoint takes them, of what text does not stand for (images, slides,
    scanned pages); "on", of every page that can be drawn."""
    journal: str | None = None
    """Path of a SQLite file; in memory without."""
    events: str | None = None
    """Path of a file that gets one line of JSON a call; none without."""
    reuse: Literal["group", "run", "always", "off"] = "group"
    view: Literal["reply", "conversation"] = "reply"
    strategy: Literal["direct"] = "direct"

    @property
    def block_budget(self) -> float:
        """Seconds in calls that one block may use (SPEC 7): derived, no knob of its own."""
        return 2 * self.per_timeout

    @classmethod
    def load(
        cls,
        arguments: Mapping[str, Any] | None = None,
        *,
        config: str | Path | None = None,
        defaults: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> JudgeSettings:
        """Resolve all sources. `arguments` whose value is None count as not given; `defaults` are a family's own.

        Raises SettingsError naming every bad setting; warns of unknown `JUDGE_` variables.
        """
        env = os.environ if environ is None else environ
        given = {k: v for k, v in (arguments or {}).items() if v is not None}
        from_env, unknown = {}, []
        for name, value in env.items():
            field = name.removeprefix(PREFIX).lower()
            if not name.startswith(PREFIX) or field in CREDENTIAL_FIELDS:
                continue
            if field not in cls.model_fields:
                unknown.append(name)
            elif value.strip():
                from_env[field] = value.strip()
        if unknown:
            warnings.warn(f"unknown variables, ignored: {', '.join(sorted(unknown))}", stacklevel=2)
        if secret := CREDENTIAL_FIELDS & given.keys():
            raise SettingsError(f"{', '.join(sorted(secret))}: a credential is an argument of its own, not a setting")
        from_file = {k: v for k, v in read_config(config).items() if k not in CREDENTIAL_FIELDS}
        merged = {**(defaults or {}), **from_file, **from_env, **given}
        try:
            return cls(**merged)
        except ValidationError as error:
            origin = {**dict.fromkeys(from_env, "environment"), **dict.fromkeys(given, "argument")}
            lines = []
            for item in error.errors():
                name = str(item["loc"][0]) if item["loc"] else "settings"
                where = origin.get(name, "settings file" if config else "default")
                known = "" if name in cls.model_fields else f" (known: {', '.join(sorted(cls.model_fields))})"
                # A Redis URL may hold a password.
                shown = "…" if name == "limiter" else repr(item.get("input"))
                lines.append(f"{name} ({where}) = {shown}: {item['msg']}{known}")
            raise SettingsError("; ".join(lines)) from None


def read_config(path: str | Path | None) -> dict[str, Any]:
    """The table `[judge]` of a TOML settings file, or its top level; empty without a path.

    Raises SettingsError when the file cannot be read.
    """
    if path is None:
        return {}
    try:
        data = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read as TOML: {error}") from None
    table = data.get("judge", data)
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: `judge` must be a table")
    return table
