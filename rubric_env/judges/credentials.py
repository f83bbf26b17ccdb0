"""Keys and base URLs, always as pairs from one source (SPEC 7): never mixed, never exported, never shown."""

from __future__ import annotations

import json
import math
import os
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rubric_env.judges._key import Credentials, KeyFunction, NoCredential, NothingGiven, Origin
from rubric_env.judges._redact import redact

__all__ = [
    "VENDOR_SOURCE",
    "VENDOR_URL",
    "Credentials",
    "Endpoint",
    "KeyFunction",
    "NoCredential",
    "NothingGiven",
    "resolve_credentials",
    "resolve_endpoints",
]

VENDOR_URL = "https://api.openai.com/v1"
"""The base URL of a key that came without one."""

VENDOR_SOURCE = "OPENAI_* environment"

_PAIR = ("api_key", "base_url", "api_key_file", "api_key_command")
_KEYS = ("api_key", "api_key_file", "api_key_command", "api_key_var")
_ENTRY = ("base_url", *_KEYS, "weight", "model")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the pairs that share the work: `weight` is its share; `model` is asked there in place of the setting's."""

    credentials: Credentials
    weight: float = 1.0
    model: str | None = None


def resolve_credentials(
    api_key: str | KeyFunction | None = None,
    base_url: str | None = None,
    *,
    api_key_file: str | Path | None = None,
    api_key_command: str | None = None,
    environ: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Credentials:
    """The one pair of `resolve_endpoints`. Raises NoCredential also where several are listed."""
    given = (api_key, base_url, api_key_file, api_key_command)
    found = _resolve(given, None, environ, config)
    if len(found) > 1:
        raise NoCredential(f"{len(found)} endpoints are listed where one is asked for: give one key and base URL")
    return found[0].credentials


def resolve_endpoints(
    endpoints: Sequence[Mapping[str, Any]] | None = None,
    *,
    api_key: str | KeyFunction | None = None,
    base_url: str | None = None,
    api_key_file: str | Path | None = None,
    api_key_command: str | None = None,
    environ: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> list[Endpoint]:
    """The first source that gives anything: arguments, `JUDGE_*`, the settings file's table, `OPENAI_*`.

    A source gives one pair, or a list: `endpoints`, `JUDGE_ENDPOINTS` (path of a TOML or JSON file, or a JSON list),
    `endpoints` in the settings file. An entry has `base_url`; one of `api_key`, `api_key_file`, `api_key_command` and
    `api_key_var` (the name of an environment variable); and optionally `weight` (1.0) and `model`.

    Of one pair, a file or command wins over the value. `api_key` may be a function, sync or async, that returns the
    key; it is called at the first judge call. Raises NoCredential when no source gives a key, or the one that counts
    is not right; files and commands are read here, so that this shows before anything is paid.
    """
    return _resolve((api_key, base_url, api_key_file, api_key_command), endpoints, environ, config)


def _resolve(
    pair: Sequence[Any], endpoints: Any, environ: Mapping[str, str] | None, config: Mapping[str, Any] | None
) -> list[Endpoint]:
    env = os.environ if environ is None else environ
    table = config or {}
    judge = [f"JUDGE_{field.upper()}" for field in _PAIR]
    vendor = ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
    listed = env.get("JUDGE_ENDPOINTS", "").strip() or None
    sources = (
        _source("arguments", _PAIR, pair, "endpoints", endpoints),
        _source("JUDGE_* environment", judge, map(env.get, judge), "JUDGE_ENDPOINTS", listed),
        _source(
            "settings file",
            [f"{field} in the settings file" for field in _PAIR],
            map(table.get, _PAIR),
            "endpoints in the settings file",
            table.get("endpoints"),
        ),
        _source(VENDOR_SOURCE, vendor, map(env.get, vendor)),
    )
    for source in sources:
        if found := source.endpoints(env):
            return found
    raise NothingGiven(
        "no judge credential: set JUDGE_API_KEY (and JUDGE_BASE_URL, unless the key is OpenAI's), or OPENAI_API_KEY, "
        "or give api_key= and base_url="
    )


@dataclass(frozen=True, slots=True, repr=False)
class _Source:
    """One place that may give a pair or a list; `names` are its own names for key, URL, file and command."""

    title: str
    names: Sequence[str]
    values: Sequence[Any]
    list_name: str
    listed: Any

    def endpoints(self, environ: Mapping[str, str]) -> list[Endpoint]:
        """Empty when nothing is given here."""
        if self.listed is None:
            pair = self._pair()
            return [] if pair is None else [Endpoint(pair)]
        if also := [name for name, value in zip(self.names, self.values, strict=True) if value]:
            raise NoCredential(f"{self.list_name} and {also[0]} are both given: keep one")
        entries = _read_list(self.list_name, self.listed) if isinstance(self.listed, str) else self.listed
        if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
            raise NoCredential(f"{self.list_name}: give a list of tables, each with base_url and a key")
        return [
            _entry(f"{self.list_name}, entry {number}", f"{self.title}, entry {number}", entry, environ)
            for number, entry in enumerate(entries, 1)
        ]

    def _pair(self) -> Credentials | None:
        key, url, file, command = self.values
        key_name, url_name, file_name, command_name = self.names
        if file and command:
            raise NoCredential(f"{file_name} and {command_name} are both given: keep one")
        if file:
            origin = Origin(file_name, file=Path(file).expanduser())
        elif command:
            origin = Origin(command_name, command=_words(command_name, command))
        elif key:
            origin = Origin(key_name, value=key)
        elif url:
            ways = " or ".join(name for name in (key_name, file_name, command_name) if name)
            raise NoCredential(
                f"{url_name} is given without a key: give {ways} with it "
                "(keys and URLs of different sources are not mixed; for a local server any word is a key)"
            )
        else:
            return None
        return Credentials(_checked_url(url_name, url) if url else VENDOR_URL, self.title, origin)


def _source(
    title: str, names: Sequence[str], values: Iterable[Any], list_name: str = "", listed: Any = None
) -> _Source:
    given = [value.strip() if isinstance(value, str) else value for value in values]
    padding = [""] * (4 - len(given))
    return _Source(title, [*names, *padding], [*given, *padding], list_name, listed)


def _entry(where: str, title: str, entry: Any, environ: Mapping[str, str]) -> Endpoint:
    """One row of a list. `where` is how a user finds it; no message shows a value that may be a key."""
    if not isinstance(entry, Mapping):
        raise NoCredential(f"{where}: an entry is a table with base_url and a key")
    if unknown := [redact(str(name)) for name in entry if name not in _ENTRY]:
        raise NoCredential(f"{where}: unknown {', '.join(unknown)}; an entry has {', '.join(_ENTRY)}")
    url, model, weight = entry.get("base_url"), entry.get("model"), entry.get("weight", 1.0)
    if not isinstance(url, str) or not url.strip():
        raise NoCredential(f"{where}: base_url is missing")
    given = [name for name in _KEYS if entry.get(name)]
    if len(given) != 1:
        raise NoCredential(f"{where}: give one of {', '.join(_KEYS)}, not {' and '.join(given) or 'none'}")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise NoCredential(f"{where}: weight is a number above 0")
    if model is not None and not (isinstance(model, str) and model.strip()):
        raise NoCredential(f"{where}: model is the name of a model")
    origin = _origin(f"{where}: {given[0]}", given[0], entry[given[0]], environ)
    return Endpoint(Credentials(_checked_url(f"{where}: base_url", url.strip()), title, origin), float(weight), model)


def _origin(name: str, kind: str, value: Any, environ: Mapping[str, str]) -> Origin:
    if kind == "api_key" and callable(value):
        return Origin(name, value=value)
    if not isinstance(value, str | Path):
        raise NoCredential(f"{name} is no text")
    match kind:
        case "api_key_file":
            return Origin(name, file=Path(value).expanduser())
        case "api_key_command":
            return Origin(name, command=_words(name, str(value)))
        case "api_key_var":
            if not environ.get(str(value), "").strip():
                raise NoCredential(f"{name}: no such environment variable is set")
            return Origin(name, value=environ[str(value)])
        case _:
            return Origin(name, value=str(value))


def _read_list(name: str, value: str) -> Any:
    """What JUDGE_ENDPOINTS says: the list itself as JSON, or the file that holds it."""
    if value.startswith(("[", "{")):
        return _json_list(name, value)
    path = Path(value).expanduser()
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise NoCredential(f"{name} is neither a JSON list nor a file that can be read: {reason}") from None
    if path.suffix == ".json":
        return _json_list(name, text)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise NoCredential(f"{name}: the file is no TOML (a JSON file's name ends in .json)") from None
    return _named_list(table)


def _json_list(name: str, text: str) -> Any:
    try:
        return _named_list(json.loads(text))
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise NoCredential(f"{name} is no JSON{where}") from None


def _named_list(value: Any) -> Any:
    """The list, also where it stands under its name, or under that in the table `judge`."""
    table = value.get("judge", value) if isinstance(value, dict) else value
    return table.get("endpoints") if isinstance(table, dict) else table


def _words(name: str, command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise NoCredential(f"{name} is no command line: {error}") from None


def _checked_url(name: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoCredential(f"{name} is no http:// or https:// address")
    if parts.username or parts.password:
        raise NoCredential(f"{name} holds a user name or password: give it as the key instead")
    if parts.query or parts.fragment:
        raise NoCredential(f"{name}: leave out what follows the path of the URL ('?…' or '#…')")
    return url.rstrip("/").removesuffix("/chat/completions").removesuffix("/responses")
