"""Office files to PDF through LibreOffice: a profile, a process group and a network namespace of its own each time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

AT_A_TIME = 2
"""Conversions of this process; more gain nothing on few cores (measured: 0.9 decks a second from 2 on)."""

_SECURITY, _PROXY = "org.openoffice.Office.Common/Security/Scripting", "org.openoffice.Inet/Settings"
_SETTINGS = (
    (_SECURITY, "BlockUntrustedRefererLinks", "true"),
    (_SECURITY, "MacroSecurityLevel", "3"),
    (_SECURITY, "DisableMacrosExecution", "true"),
    (_PROXY, "ooInetProxyType", "2"),
    (_PROXY, "ooInetHTTPProxyName", "127.0.0.1"),
    (_PROXY, "ooInetHTTPProxyPort", "9"),
    (_PROXY, "ooInetHTTPSProxyName", "127.0.0.1"),
    (_PROXY, "ooInetHTTPSProxyPort", "9"),
    (_PROXY, "ooInetNoProxy", ""),
)
"""No macro runs, and nothing that a file links is fetched (LibreOffice does otherwise): pictures are blocked, style
sheets and backgrounds of HTML are not, so that whatever is left is sent to a proxy that is not there."""

_PROFILE = (
    '<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    + "".join(
        f'<item oor:path="/{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>'
        for path, name, value in _SETTINGS
    )
    + "</oor:items>"
)

_HIDDEN_TOO = 'pdf:impress_pdf_Export:{"ExportHiddenSlides":{"type":"boolean","value":"true"}}'

_WEB = frozenset({".html", ".htm", ".xhtml"})
"""Read as text documents: from web pages LibreOffice loses what stands before the second block."""

_turns = threading.BoundedSemaphore(AT_A_TIME)


class NotRendered(Exception):
    """No pictures of a file; the message says why. `ours`: a renderer is missing or was out of time."""

    def __init__(self, reason: str, *, ours: bool) -> None:
        super().__init__(reason)
        self.ours = ours


@cache
def soffice() -> str | None:
    """Where LibreOffice is, or None."""
    return shutil.which("soffice") or shutil.which("libreoffice")


@cache
def _no_network() -> tuple[str, ...]:
    """What starts a program in a network namespace without interfaces, where this machine allows it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    tried = subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False)
    return (unshare, "-rn") if tried.returncode == 0 else ()


def to_pdf(path: Path, target: Path, seconds: float, *, slides: bool = False) -> float:
    """Convert the file at `path` into the PDF `target`, in at most `seconds` after its turn came: those it took.

    `slides`: it is a deck, whose hidden slides become pages too, so that pages are slides. Raises NotRendered. Nothing
    of it goes on when this returns, however it does.
    """
    program = soffice()
    if program is None:
        raise NotRendered("LibreOffice is not installed", ours=True)
    with _turns, tempfile.TemporaryDirectory(prefix="rubric-env-office-") as made:
        work = Path(made)
        (work / "profile" / "user").mkdir(parents=True)
        (work / "profile" / "user" / "registrymodifications.xcu").write_text(_PROFILE, "utf-8")
        source = work / f"file{path.suffix}"
        shutil.copyfile(path, source)
        command = [
            *_no_network(),
            *(sys.executable, "-m", "rubric_env.evidence._limited", str(int(2 * seconds) + 1)),
            *(program, "--headless", "--norestore", "--nolockcheck", "--nodefault"),
            f"-env:UserInstallation=file://{work / 'profile'}",
            *(("--writer",) if path.suffix in _WEB else ()),
            *("--convert-to", _HIDDEN_TOO if slides else "pdf", "--outdir", str(work / "out"), str(source)),
        ]
        start = time.monotonic()
        code = _run(command, work, seconds)
        made_pdf = work / "out" / "file.pdf"
        # It ends with 0 for files that it could not open, too.
        if not _is_pdf(made_pdf):
            raise NotRendered(f"LibreOffice cannot open it (exit code {code})", ours=False)
        shutil.move(made_pdf, target)
        return time.monotonic() - start


def _is_pdf(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        return opened.read(5) == b"%PDF-"


def environment(home: str = os.devnull) -> dict[str, str]:
    """Nothing of ours but where programs and fonts are."""
    passed = ("LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH")
    found = {name: os.environ[name] for name in passed if name in os.environ}
    return {**found, "PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}


def _run(command: list[str], work: Path, seconds: float) -> int:
    program = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SAL_USE_VCLPLUGIN": "svp"}
    process = subprocess.Popen(
        command,
        cwd=work,
        env=environment(str(work)) | program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + seconds
    try:
        return process.wait(timeout=max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NotRendered(f"LibreOffice needed more than {seconds:.0f} s", ours=True) from None
    finally:
        # Its child outlives it otherwise.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
