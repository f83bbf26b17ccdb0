"""What a user may say of the judge: `--env.taskset.task.judges '[{"id": "rubric_judge", …}]'`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, model_validator

from rubric_env.engine import JudgeEngine
from rubric_env.harbor import read_text
from rubric_env.harbor.case import Defaults
from rubric_env.judges import Judge, NoCredential, make_judge, resolve_endpoints
from rubric_env.rubric import RubricSpec
from rubric_env.settings import JudgeSettings, SettingsError, read_config
from rubric_env.v1._verifiers import vf


class HarborJudgeConfig(vf.JudgeConfig):
    """All fields are optional; what is left out comes from `JUDGE_*`, the settings file and `OPENAI_*`, in this order.

    Wrong settings, a broken rubric and a missing key are errors when the configuration is read: before any rollout is
    paid. Key and URL are always one pair from one source.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    id: str = "rubric_judge"
    """The plugin: the module of that name."""
    name: str = ""
    """Names the reward, and prefixes every metric; two of these judges on one task need two names."""
    weight: float = Field(1.0, allow_inf_nan=False)
    """The reward's share of the trace's reward."""
    model: str | None = None
    """The judge model, as the endpoint names it."""
    base_url: str | None = None
    """The judge's endpoint; goes with one of the three kinds of key below."""
    api_key_var: str = ""
    """Name of the environment variable that holds the judge's key."""
    api_key_file: str | None = None
    """Path of a file that holds the judge's key; it is read again when the key is refused."""
    api_key_command: str | None = None
    """A command that prints the judge's key; it is run again when the key is refused."""
    endpoints: list[dict[str, Any]] | None = None
    """Several endpoints that share the work: `base_url`, one kind of key, optionally `weight` and `model` each."""
    config: Path | None = None
    """Settings file (TOML), as `rubric-env judge --config` takes it."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Fields of JudgeSettings (docs/settings.md), for example `{"batch": 2, "per_timeout": 240}`."""
    rubric: list[dict[str, Any]] | Path | None = None
    """Rows, or the path of a rubric.json, for tasks whose data brings none."""
    prompt: Path | None = None
    """File with the judge instruction for tasks whose data brings none."""
    reference: str = ""
    """Reference answer for tasks whose data brings none."""

    @model_validator(mode="after")
    def _usable(self) -> HarborJudgeConfig:
        resolve(self)
        return self


FOREIGN = sorted(vf.JudgeConfig.model_fields.keys() - HarborJudgeConfig.__annotations__.keys())
"""Fields that verifiers' own judges have, and this one does not heed."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration with everything that it leaves to the environment and the settings file."""

    settings: JudgeSettings
    judge: Judge
    defaults: Defaults

    def engine(self) -> JudgeEngine:
        return JudgeEngine(self.settings, self.judge)


def resolve(config: HarborJudgeConfig) -> Resolved:
    """Raises SettingsError, NoCredential or RubricError, which are ValueErrors of one line."""
    if foreign := [name for name in FOREIGN if getattr(config, name) != _default(name)]:
        raise SettingsError(f"{', '.join(foreign)}: not for this judge; its knobs are in settings (docs/settings.md)")
    arguments = {**config.settings, **({"model": config.model} if config.model else {})}
    settings = JudgeSettings.load(arguments, config=config.config)
    return Resolved(
        settings,
        make_judge(settings, None if settings.backend == "local" else _endpoints(config)),
        Defaults(
            RubricSpec.parse(config.rubric) if config.rubric is not None else None,
            _instruction(config.prompt),
            config.reference,
        ),
    )


def _default(name: str) -> Any:
    return HarborJudgeConfig.model_fields[name].get_default(call_default_factory=True)


def _endpoints(config: HarborJudgeConfig) -> Any:
    if any("api_key" in entry for entry in config.endpoints or ()):
        raise NoCredential("endpoints: api_key would be written to the run's files: give api_key_var or api_key_file")
    key = None
    if config.api_key_var and not (key := os.environ.get(config.api_key_var, "").strip()):
        raise NoCredential(f"api_key_var: the environment variable {config.api_key_var} is not set")
    return resolve_endpoints(
        config.endpoints,
        api_key=key,
        base_url=config.base_url,
        api_key_file=config.api_key_file,
        api_key_command=config.api_key_command,
        config=read_config(config.config),
    )


def _instruction(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return read_text(path)
    except OSError as error:
        raise SettingsError(f"prompt = {str(path)!r}: cannot be read: {error.strerror}") from None
