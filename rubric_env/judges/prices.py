"""What a call costs, by list prices as data (`prices.toml` beside this file), overridden by a user's own file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rubric_env.scoring.judgement import Usage
from rubric_env.settings import SettingsError

OWN_TABLE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. Above `max_input` tokens in one call another tariff holds, which is not known here."""

    input: float
    output: float
    cached: float | None = None
    """None: cached tokens cost what others do."""
    max_input: float = math.inf


Prices = Mapping[str, Price]


@cache
def load_prices(path: str | Path | None = None) -> Prices:
    """The package's table, with the models of `path` (TOML of the same form) added to it or in their place.

    Raises SettingsError that names the file, the model and what is wrong.
    """
    own = _read(OWN_TABLE)
    return own if path is None else {**own, **_read(Path(path))}


def cost_usd(model: str, usage: Usage, prices: Prices | None = None) -> float | None:
    """USD for the tokens of one call; None when the price is not known. Models named `local-…` cost nothing."""
    if model.startswith("local-"):
        return 0.0
    price = (load_prices() if prices is None else prices).get(model)
    if price is None or usage.input_tokens > price.max_input:
        return None
    cached = price.input if price.cached is None else price.cached
    fresh_tokens = usage.input_tokens - usage.cached_tokens
    return (fresh_tokens * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / 1e6


def _read(path: Path) -> Prices:
    try:
        models = tomllib.loads(path.read_text("utf-8")).get("models")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"prices {path}: cannot be read as TOML: {error}") from None
    if not isinstance(models, dict):
        raise SettingsError(f"prices {path}: there is no table [models]")
    return {model: _price(path, model, fields) for model, fields in models.items()}


def _price(path: Path, model: str, fields: object) -> Price:
    known = {"input", "output", "cached", "max_input"}
    if not isinstance(fields, dict) or not {"input", "output"} <= fields.keys() <= known:
        raise SettingsError(f"prices {path}: {model!r} needs input and output, and may have cached and max_input")
    for name, value in fields.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise SettingsError(f"prices {path}: {model!r}: {name} = {value!r} is no number from 0 up")
    return Price(**fields)
