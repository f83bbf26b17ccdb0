"""A key and its base URL as one pair from one source (SPEC 7): never mixed, never exported, never shown."""

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from rubric_env._loops import PerLoop

VENDOR_URL = "https://api.openai.com/v1"
"""The base URL of a key that came without one."""

VENDOR_SOURCE = "OPENAI_* environment"

COMMAND_SECONDS = 30.0
"""How long a key command may take."""

KeyFunction = Callable[[], str | Awaitable[str]]


class NoCredential(ValueError):
    """There is no usable pair of key and base URL. The message is one line and says how to give one."""


class Credentials:
    """One pair. `base_url` and `source` may be shown; the key is handed out by `key()` alone."""

    __slots__ = ("_key", "_locks", "_origin", "_read_at", "base_url", "source")

    def __init__(self, base_url: str, source: str, origin: _Origin) -> None:
        self.base_url = base_url
        self.source = source
        self._origin = origin
        self._key = None if callable(origin.value) else origin.read()
        self._read_at = time.monotonic()
        self._locks = PerLoop(asyncio.Lock)

    async def key(self) -> str:
        """The key as it was last read. Raises NoCredential when its function fails."""
        return self._key or await self.refresh()

    async def refresh(self) -> str:
        """Read the key again where it can change; those who ask meanwhile share the one reading.

        Raises NoCredential when the file, command or function gives none.
        """
        asked = time.monotonic()
        async with self._locks.here():
            if self._key is None or self._read_at < asked:
                self._key = await self._origin.fresh()
                self._read_at = time.monotonic()
            return self._key

    def __repr__(self) -> str:
        return f"Credentials({self.base_url}, from {self.source})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("credentials are not sent to other processes: resolve them there")


@dataclass(frozen=True, slots=True, repr=False)
class _Origin:
    """Where a key is read from; `name` is how a user calls it."""

    name: str
    value: str | KeyFunction | None = None
    file: Path | None = None
    command: tuple[str, ...] = ()

    def read(self) -> str:
        """The key of a value, file or command."""
        if self.file is not None:
            try:
                return self._checked(self.file.read_text("utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not text"
                raise NoCredential(f"{self.name}: {self.file} cannot be read: {reason}") from None
        if self.command:
            return self._checked(self._run())
        return self._checked(self.value)

    async def fresh(self) -> str:
        """The key, read again without blocking the event loop."""
        if not callable(self.value):
            return await asyncio.to_thread(self.read) if self.file or self.command else self.read()
        try:
            # A synchronous function may ask the network.
            result = self.value() if inspect.iscoroutinefunction(self.value) else await asyncio.to_thread(self.value)
            return self._checked(await result if inspect.isawaitable(result) else result)
        except NoCredential:
            raise
        except Exception as error:
            # Its message may hold what it tried to read.
            raise NoCredential(f"{self.name}: the function raised {type(error).__name__}") from error

    def _run(self) -> str:
        program = self.command[0]
        try:
            done = subprocess.run(
                self.command, capture_output=True, timeout=COMMAND_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise NoCredential(f"{self.name}: {program} gave no key within {COMMAND_SECONDS:g} s") from None
        except OSError as error:
            raise NoCredential(f"{self.name}: {program} cannot be run: {error.strerror}") from None
        if done.returncode:
            raise NoCredential(f"{self.name}: {program} ended with exit code {done.returncode}")
        return done.stdout.decode("utf-8", "replace")

    def _checked(self, key: Any) -> str:
        text = key.strip() if isinstance(key, str) else ""
        if not text:
            raise NoCredential(f"{self.name}: the key is empty")
        if not text.isascii() or not text.isprintable() or " " in text:
            raise NoCredential(f"{self.name}: the key holds a space or a character that no HTTP header can carry")
        return text


@dataclass(frozen=True, slots=True, repr=False)
class _Source:
    """One place that may give a pair; `names` are its own names for key, URL, file and command."""

    title: str
    names: Sequence[str]
    values: Sequence[Any]

    def credentials(self) -> Credentials | None:
        """None when nothing is given here."""
        key, url, file, command = self.values
        key_name, url_name, file_name, command_name = self.names
        if file and command:
            raise NoCredential(f"{file_name} and {command_name} are both given: keep one")
        if file:
            origin = _Origin(file_name, file=Path(file).expanduser())
        elif command:
            origin = _Origin(command_name, command=_words(command_name, command))
        elif key:
            origin = _Origin(key_name, value=key)
        elif url:
            raise NoCredential(
                f"{url_name} is given without a key: give {key_name} with it "
                "(keys and URLs of different sources are not mixed; for a local server any word is a key)"
            )
        else:
            return None
        return Credentials(_checked_url(url_name, url) if url else VENDOR_URL, self.title, origin)


def resolve_credentials(
    api_key: str | KeyFunction | None = None,
    base_url: str | None = None,
    *,
    api_key_file: str | Path | None = None,
    api_key_command: str | None = None,
    environ: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Credentials:
    """The first source that gives anything: arguments, `JUDGE_*`, the settings file's table, `OPENAI_*`.

    Within a source a file or command wins over the value. `api_key` may be a function, sync or async, that returns
    the key; it is called at the first judge call. Raises NoCredential when no source gives a key, or the one that
    counts is not complete; a file or command is read here, so that this shows before anything is paid.
    """
    env = os.environ if environ is None else environ
    table = config or {}
    fields = ("api_key", "base_url", "api_key_file", "api_key_command")
    judge = [f"JUDGE_{field.upper()}" for field in fields]
    vendor = ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
    sources = (
        _source("arguments", fields, (api_key, base_url, api_key_file, api_key_command)),
        _source("JUDGE_* environment", judge, map(env.get, judge)),
        _source("settings file", [f"{field} in the settings file" for field in fields], map(table.get, fields)),
        _source(VENDOR_SOURCE, vendor, map(env.get, vendor)),
    )
    for source in sources:
        if found := source.credentials():
            return found
    raise NoCredential(
        "no judge credential: set JUDGE_API_KEY (and JUDGE_BASE_URL, unless the key is OpenAI's), or OPENAI_API_KEY, "
        "or give api_key= and base_url="
    )


def _source(title: str, names: Sequence[str], values: Iterable[Any]) -> _Source:
    given = [value.strip() if isinstance(value, str) else value for value in values]
    padding = [""] * (4 - len(given))
    return _Source(title, [*names, *padding], [*given, *padding])


def _words(name: str, command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise NoCredential(f"{name} is no command line: {error}") from None


def _checked_url(name: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NoCredential(f"{name} = {url!r} is no http:// or https:// address")
    if parts.username or parts.password:
        raise NoCredential(f"{name} holds a user name or password: give it as the key instead")
    if parts.query or parts.fragment:
        raise NoCredential(f"{name}: leave out what follows the path of the URL ('?…' or '#…')")
    return url.rstrip("/").removesuffix("/chat/completions")
