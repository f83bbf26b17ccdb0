"""The adapters under every release of verifiers, and on every Python, that they promise to work with.

`nox` runs all sessions (`make matrix`, on both cores), `nox -s "classic(0.1.14)"` one, `nox -s v1 -- -k replay` with
arguments for pytest. A Python that is missing is passed over, or an error where CI is set.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|venv"
nox.options.download_python = "never"
nox.options.reuse_venv = "yes"

TOOLS = ("pytest", "pytest-asyncio", "pytest-xdist")
UNLIKE_0_1_14 = ("datasets", "dill", "fsspec", "huggingface_hub", "mcp", "multiprocess", "regex")
"""Pins that verifiers 0.1.14 has no use for: it wants older releases."""
UNLIKE_0_4 = ("mcp",)


def python(version: str) -> str:
    """The interpreter of that version: pyenv's, switched on or not, else what nox finds by the version's name."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return str(max(pyenv.glob(f"versions/{version}.*/bin/python"), default=version))


def install(session: nox.Session, extras: str, verifiers: str, unpinned: Collection[str]) -> None:
    """The project and one release of verifiers, under the pins but those of `unpinned`."""
    pins = Path("constraints.txt").read_text("utf-8").splitlines()
    kept = [pin for pin in pins if pin.partition("==")[0] not in {"verifiers", *unpinned}]
    constraints = Path(session.create_tmp()) / "constraints.txt"
    constraints.write_text("\n".join(kept), "utf-8")
    packages = ("-e", f".[{extras}]", f"verifiers=={verifiers}", *TOOLS)
    # Else uv compiles nothing, and each of the many processes compiles what it imports; and it trusts fewer
    # certificates than pip, to which a machine behind a proxy has given its own.
    session.install("-c", str(constraints), *packages, env={"UV_COMPILE_BYTECODE": "1", "UV_SYSTEM_CERTS": "1"})


def run_tests(session: nox.Session, *words: str) -> None:
    session.run("python", "-m", "pytest", *words, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": ""})


@nox.session
@nox.parametrize(
    "python,verifiers,unpinned",
    [
        (python("3.11"), "0.1.14", UNLIKE_0_1_14),
        (python("3.11"), "0.2.1", ()),
        (python("3.11"), "0.3.1", ()),
        (python("3.13"), "0.3.1", ()),
    ],
    ids=["0.1.14", "0.2.1", "0.3.1", "0.3.1, Python 3.13"],
)
def classic(session: nox.Session, verifiers: str, unpinned: Collection[str]) -> None:
    """tests/classic, with real runs of vf-eval. The tools of the policy know nothing of verifiers."""
    install(session, "classic,office,tools,redis", verifiers, unpinned)
    run_tests(session, "tests/classic", "--ignore=tests/classic/tools")


@nox.session
@nox.parametrize(
    "python,verifiers,unpinned",
    [(python("3.11"), "0.3.1", ()), (python("3.13"), "0.4.0", UNLIKE_0_4)],
    ids=["0.3.1", "0.4.0, Python 3.13"],
)
def v1(session: nox.Session, verifiers: str, unpinned: Collection[str]) -> None:
    """tests/v1, with real runs of eval (0.3.1) and vf-eval (0.4)."""
    install(session, "verifiers-v1,office,redis", verifiers, unpinned)
    run_tests(session, "tests/v1")
