"""A real redis-server on loopback, that a test can kill and start again on the same port.

    with RedisServer() as redis:
        connect(redis.url)
        redis.kill()
        redis.start()           # empty

Without the program the tests are skipped, or fail where RUBRIC_ENV_REQUIRE_REDIS=1 or CI says that it must be there.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

WAIT = 60.0


class RedisServer:
    """Remembers nothing after a kill. `password`: only who knows it is let in."""

    def __init__(self, *, password: str = "") -> None:
        self.port = _free_port()
        self._password = password
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")

    @property
    def url(self) -> str:
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    def __enter__(self) -> RedisServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._folder.cleanup()

    def start(self) -> None:
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder.name, "save": ""}
        options |= {"requirepass": self._password} if self._password else {}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        log = Path(self._folder.name) / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen([_program(), *words], stdout=output, stderr=output)
        limit = time.monotonic() + WAIT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > limit:
                pytest.fail(f"redis-server did not start: {log.read_text('utf-8')[-500:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """At once, as a machine that loses power."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(WAIT)
            self._process = None

    def freeze(self) -> None:
        """It keeps its connections, and answers nobody."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def wait_for(self, *command: str, answer: str = "1") -> None:
        """Until a command, such as EXISTS, answers with that number."""
        limit = time.monotonic() + WAIT
        while self._ask(" ".join(command)) != f":{answer}":
            assert time.monotonic() < limit, f"{command} does not answer {answer}"
            time.sleep(0.02)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _answers(self) -> bool:
        try:
            return self._ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False

    def _ask(self, line: str) -> str:
        with socket.create_connection(("127.0.0.1", self.port), WAIT) as connection:
            connection.sendall(f"{line}\r\n".encode())
            return connection.recv(64).decode().strip()


def _program() -> str:
    program = shutil.which("redis-server")
    if program is None:
        missing = "redis-server is not installed"
        if os.environ.get("RUBRIC_ENV_REQUIRE_REDIS") == "1" or os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return program


def _free_port() -> int:
    """Below those that the system gives out: nobody takes it until the server is there, or while it is away."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
