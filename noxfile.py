"""The adapters under other releases of verifiers and Python than those of `.venv`.

`nox` runs every session, `nox -s "classic(0.1.14)"` one, `nox -s classic -- -k resumed` with arguments for pytest.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
TOOLS = ("pytest", "pytest-asyncio", "pytest-xdist")
OLD = ("datasets", "dill", "fsspec", "huggingface_hub", "mcp", "multiprocess", "regex")
"""Of these verifiers 0.1.14 wants other releases than the pins."""


def install(session: nox.Session, *packages: str, free: Collection[str]) -> None:
    """Install under the pins but those of `free`; nothing when the same was installed before."""
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    constraints = "\n".join(pin for pin in pins if pin.partition("==")[0] not in free)
    wanted = "\n".join([*packages, constraints, (ROOT / "pyproject.toml").read_text("utf-8")])
    done = Path(session.virtualenv.location) / "installed.txt"
    if done.exists() and done.read_text("utf-8") == wanted:
        return
    file = Path(session.create_tmp()) / "constraints.txt"
    file.write_text(constraints, "utf-8")
    # The pip that comes with Python 3.13.0 fails on the second install into one place.
    session.install("--upgrade", "pip")
    session.install("-c", str(file), *packages)
    done.write_text(wanted, "utf-8")


@nox.session
@nox.parametrize(
    "python,verifiers,free",
    [("3.11", "0.1.14", OLD), ("3.11", "0.2.1", ()), ("3.11", "0.3.1", ()), ("3.13", "0.3.1", ())],
    ids=["0.1.14", "0.2.1", "0.3.1", "0.3.1, Python 3.13"],
)
def classic(session: nox.Session, verifiers: str, free: Collection[str]) -> None:
    """tests/classic, a real vf-eval run among them."""
    install(session, "-e", ".[classic]", f"verifiers=={verifiers}", *TOOLS, free={"verifiers", *free})
    session.run("python", "-m", "pytest", "tests/classic", *session.posargs)
