"""SPEC 7 and 13: every knob, its default, and which source wins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rubric_env.judges import resolve_credentials
from rubric_env.settings import CREDENTIAL_FIELDS, JudgeSettings, SettingsError, read_config

DOCS = Path(__file__).parents[1] / "docs"

DEFAULTS = {
    "model": "gpt-5.5",
    "backend": "chat",
    "batch": 4,
    "concurrency": 2,
    "per_timeout": 150.0,
    "block_budget": 300.0,
    "max_tries": 6,
    "resplit": True,
    "deadline": 1800.0,
    "start_jitter": 0.0,
    "retry_backoff_max": 20.0,
    "systemic_fraction": 0.4,
    "systemic_min": 2,
    "max_consecutive_failures": 3,
    "reasoning_effort": None,
    "temperature": None,
    "seed": None,
    "max_tokens": None,
    "reward_mode": "continuous",
    "pass_threshold": 0.75,
    "pass_compare": "gte",
    "max_uncertainty": 0.1,
    "lenient_delivery": False,
    "chat_fallback": True,
    "evidence": 180.0,
    "metric_id": "rubric_llm_judge",
    "on_unscored": "mark",
    "reuse": "group",
    "view": "reply",
    "strategy": "direct",
}


def load(arguments: dict[str, Any] | None = None, environ: dict[str, str] | None = None, **sources: Any) -> Any:
    return JudgeSettings.load(arguments, environ=environ or {}, **sources)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "judge.toml"
    path.write_text('[judge]\nbatch = 3\nmodel = "of-the-file"\napi_key = "k"\n', "utf-8")
    return path


def test_section_7_and_13_defaults() -> None:
    settings = load()
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS


def test_section_13_argument_before_environment_before_file_before_default(config: Path) -> None:
    environ = {"JUDGE_BATCH": "2", "JUDGE_MODEL": "of-the-environment"}
    family = {"batch": 8, "concurrency": 8, "model": "of-the-family"}
    assert load({"batch": 1}, environ, config=config, defaults=family).batch == 1
    assert load({}, environ, config=config, defaults=family).batch == 2
    assert load({}, {}, config=config, defaults=family).batch == 3
    assert load({}, {}, defaults=family).batch == 8
    assert load({"batch": None}, {"JUDGE_BATCH": " "}).batch == 4
    assert load({}, environ, config=config, defaults=family).concurrency == 8


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("RESPLIT", "off", False),
        ("LENIENT_DELIVERY", "1", True),
        ("MAX_UNCERTAINTY", "off", None),
        ("MAX_UNCERTAINTY", "0", 0.0),
        ("PER_TIMEOUT", "90", 90.0),
        ("SEED", "7", 7),
    ],
)
def test_the_environment_is_text(name: str, text: str, value: Any) -> None:
    assert getattr(load({}, {f"JUDGE_{name}": text}), name.lower()) == value


def test_section_3_an_unknown_reward_mode_warns_and_means_continuous() -> None:
    with pytest.warns(UserWarning, match="stepwise"):
        assert load({}, {"JUDGE_REWARD_MODE": "stepwise"}).reward_mode == "continuous"


@pytest.mark.parametrize("name", ["JUDGE_MODLE", "JUDGE_CONFIG", "JUDGE_ENDPOINT"])
def test_section_13_an_unknown_variable_warns(name: str) -> None:
    with pytest.warns(UserWarning, match=name):
        load({}, {name: "x"})


@pytest.mark.filterwarnings("error")
def test_credentials_are_known_variables_and_never_settings(config: Path) -> None:
    settings = load({}, {f"JUDGE_{field.upper()}": "x" for field in CREDENTIAL_FIELDS}, config=config)
    assert not CREDENTIAL_FIELDS & settings.model_dump().keys()
    with pytest.raises(SettingsError, match="credential"):
        load({"api_key": "k"})


def test_every_bad_value_is_named_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "judge.toml"
    file.write_text('deadline = "soon"\nstratgy = 1\n', "utf-8")
    with pytest.raises(SettingsError) as raised:
        load({"batch": 0}, {"JUDGE_PER_TIMEOUT": "nan", "JUDGE_STRATEGY": "vote"}, config=file)
    message = str(raised.value)
    for part in (
        "batch (argument) = 0",
        "per_timeout (environment) = 'nan'",
        "strategy (environment) = 'vote'",
        "deadline (settings file) = 'soon'",
        "stratgy (settings file)",
    ):
        assert part in message


@pytest.mark.parametrize("text", ["not toml", 'judge = "x"'])
def test_a_settings_file_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "judge.toml").write_text(text, "utf-8")
    with pytest.raises(SettingsError, match=r"judge\.toml"):
        load(config=tmp_path / "judge.toml")
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        load(config=tmp_path / "nowhere.toml")


def test_section_13_the_docs_list_every_setting_and_no_other() -> None:
    first_cells = re.findall(r"^\| (`.+?) \|", (DOCS / "settings.md").read_text("utf-8"), re.MULTILINE)
    listed = [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(JudgeSettings.model_fields)


def test_section_13_the_example_of_a_settings_file_is_whole(tmp_path: Path) -> None:
    example = DOCS / "judge.example.toml"
    assert load(config=example) == JudgeSettings(max_in_flight=32)
    (tmp_path / "key").write_text("of-the-file")
    table = {**read_config(example), "api_key_file": str(tmp_path / "key")}
    assert resolve_credentials(config=table, environ={}).base_url == "https://api.example.com/v1"
