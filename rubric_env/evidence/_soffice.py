"""LibreOffice draws office files and calculates workbooks: its profile, processes and namespaces are new each time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from rubric_env.evidence._turns import Turns, processes

FIRST_TRY = 20
"""Seconds after which a conversion makes room for those that wait: most decks need three to ten."""

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

_RECALCULATE = ("org.openoffice.Office.Calc/Formula/Load", "OOXMLRecalcMode", "0")
"""Always: else the values that a file holds are believed, also a 0 that stands for a value not known."""


def _profile(*settings: tuple[str, str, str]) -> str:
    items = "".join(
        f'<item oor:path="/{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>'
        for path, name, value in settings
    )
    return f'<oor:items xmlns:oor="http://openoffice.org/2001/registry">{items}</oor:items>'


_PROFILE = _profile(*_SETTINGS)
_CALCULATING = _profile(*_SETTINGS, _RECALCULATE)

_MAGIC = {"pdf": b"%PDF-", "xlsx": b"PK\x03\x04"}
_WORKBOOK = "xlsx:Calc MS Excel 2007 XML"
_HIDDEN_TOO = 'pdf:impress_pdf_Export:{"ExportHiddenSlides":{"type":"boolean","value":"true"}}'

_WEB = frozenset({".html", ".htm", ".xhtml"})
"""Read as text documents: from web pages LibreOffice loses what stands before the second block."""

SAMPLE_SECONDS = 60

LEAST_FREE = 64 * 2**20
"""Bytes of the disk below which a file that LibreOffice did not open may be sound: it says the same of both."""

_ODF = "urn:oasis:names:tc:opendocument:xmlns"
_SAMPLE = (
    '<o:document xmlns:o="{0}:office:1.0" xmlns:table="{0}:table:1.0" xmlns:draw="{0}:drawing:1.0" xmlns:text="{0}:text'
    ':1.0" o:version="1.2" o:mimetype="application/vnd.oasis.opendocument.{1}"><o:body><o:{1}>{2}</o:{1}></o:body>'
    "</o:document>"
)
_SAMPLES = {
    "text": (".fodt", "<text:p>a</text:p>"),
    "presentation": (".fodp", '<draw:page draw:master-page-name="a"/>'),
    "spreadsheet": (
        ".fods",
        '<table:table table:name="a"><table:table-row><table:table-cell o:value-type="string"><text:p>a</text:p>'
        "</table:table-cell></table:table-row></table:table>",
    ),
}
"""The smallest files that are drawn."""

_turns = Turns(processes())
"""More at a time gain nothing on few cores (measured on two: 0.9 decks a second from 2 on)."""


class NotRendered(Exception):
    """No pictures of a file; the message says why. `ours`: a renderer is missing or was out of time.

    `seconds` are those of a conversion that was given up.
    """

    def __init__(self, reason: str, *, ours: bool, seconds: float = 0.0) -> None:
        super().__init__(reason)
        self.ours = ours
        self.seconds = seconds


class _TooLate(NotRendered):
    pass


@cache
def soffice() -> str | None:
    """Where LibreOffice is, or None."""
    return shutil.which("soffice") or shutil.which("libreoffice")


_NAMESPACES = (("-rnmpf", "--mount-proc"), ("-rn",))
"""Of its own: network, files and processes; or the network alone."""


@cache
def _alone() -> tuple[str, ...]:
    """What starts a program without network and, where this machine allows it, without other files and processes."""
    unshare = shutil.which("unshare")
    for flags in _NAMESPACES if unshare else ():
        command = (str(unshare), *flags)
        with tempfile.TemporaryDirectory(prefix="rubric-env-office-") as made:
            tried = [*command, *_limited(command, 9, Path(made)), "true"]
            if subprocess.run(tried, env=_environment(made), capture_output=True, check=False).returncode == 0:
                return command
    return ()


def _limited(alone: tuple[str, ...], seconds: int, work: Path) -> tuple[str, ...]:
    seen = str(work) if "--mount-proc" in alone else "-"
    return (sys.executable, "-m", "rubric_env.evidence._limited", str(seconds), seen)


def to_pdf(path: Path, target: Path, seconds: float, *, slides: bool = False) -> float:
    """Convert the file at `path` into the PDF `target`, in at most `seconds` after its turn came: those it took.

    `slides`: it is a deck, whose hidden slides become pages too, so that pages are slides. Raises NotRendered. Nothing
    of it goes on when this returns, however it does.
    """
    return _in_turn(path, target, seconds, _HIDDEN_TOO if slides else "pdf", _PROFILE)


def calculate(path: Path, target: Path, seconds: float) -> float:
    """Write the workbook at `path` to the xlsx file `target` with the values of all its formulas; as `to_pdf`."""
    return _in_turn(path, target, seconds, _WORKBOOK, _CALCULATING)


def _in_turn(path: Path, target: Path, seconds: float, form: str, profile: str) -> float:
    program = soffice()
    if program is None:
        raise NotRendered("LibreOffice is not installed", ours=True)
    if seconds > FIRST_TRY:
        with suppress(_TooLate):
            return _timed(program, path, target, FIRST_TRY, form, profile, long=False)
    return _timed(program, path, target, seconds, form, profile, long=seconds > FIRST_TRY)


def _timed(program: str, path: Path, target: Path, seconds: float, form: str, profile: str, *, long: bool) -> float:
    with _turns.turn(long=long):
        start = time.monotonic()
        code = _convert(program, path, target, seconds, form, profile)
        took = time.monotonic() - start
        if code is None:
            return took
        if _works(program, _family(path.suffix)):
            raise NotRendered(f"LibreOffice cannot open it (exit code {code})", ours=False)
        raise NotRendered(f"LibreOffice does not work on this machine (exit code {code})", ours=True)


def _convert(program: str, path: Path, target: Path, seconds: float, form: str, profile: str) -> int | None:
    """None when `target` is there now, else the exit code: it ends with 0 for files that it could not open, too."""
    with tempfile.TemporaryDirectory(prefix="rubric-env-office-") as folder:
        work = Path(folder)
        (work / "profile" / "user").mkdir(parents=True)
        (work / "profile" / "user" / "registrymodifications.xcu").write_text(profile, "utf-8")
        source = work / f"file{path.suffix}"
        shutil.copyfile(path, source)
        command = [
            *(alone := _alone()),
            *_limited(alone, int(2 * seconds) + 1, work),
            *(program, "--headless", "--norestore", "--nolockcheck", "--nodefault"),
            f"-env:UserInstallation=file://{work / 'profile'}",
            *(("--writer",) if path.suffix in _WEB else ()),
            *("--convert-to", form, "--outdir", str(work / "out"), str(source)),
        ]
        code = _run(command, work, seconds)
        suffix = form.partition(":")[0]
        made = work / "out" / f"file.{suffix}"
        if not _begins(made, _MAGIC[suffix]):
            if shutil.disk_usage(work).free < LEAST_FREE:
                raise NotRendered("LibreOffice failed, and the disk is almost full", ours=True)
            return code
        shutil.move(made, target)
        return None


def _family(suffix: str) -> str:
    """Each has a module of LibreOffice of its own, which may be missing."""
    if suffix.startswith((".pp", ".pot", ".odp")):
        return "presentation"
    return "spreadsheet" if suffix.startswith((".xl", ".od", ".ots", ".csv")) and suffix != ".odt" else "text"


@cache
def _works(program: str, family: str) -> bool:
    """Whether a file that is in order is drawn here: else it is not the policy's failure that one is not."""
    with tempfile.TemporaryDirectory(prefix="rubric-env-office-") as made:
        sample = Path(made) / f"sample{_SAMPLES[family][0]}"
        sample.write_text(_SAMPLE.format(_ODF, family, _SAMPLES[family][1]), "utf-8")
        try:
            return _convert(program, sample, Path(made) / "sample.pdf", SAMPLE_SECONDS, "pdf", _PROFILE) is None
        except NotRendered:
            return False


def _begins(path: Path, magic: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        return opened.read(len(magic)) == magic


def environment(home: str = os.devnull) -> dict[str, str]:
    """Nothing of ours but where programs and fonts are."""
    passed = ("LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH")
    found = {name: os.environ[name] for name in passed if name in os.environ}
    return {**found, "PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"}


def _environment(work: str) -> dict[str, str]:
    program = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SAL_USE_VCLPLUGIN": "svp"}
    return environment(work) | program


def _run(command: list[str], work: Path, seconds: float) -> int:
    process = subprocess.Popen(
        command,
        cwd=work,
        env=_environment(str(work)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + seconds
    try:
        return process.wait(timeout=max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _TooLate(f"LibreOffice needed more than {seconds:.0f} s", ours=True, seconds=seconds) from None
    finally:
        # Its child outlives it otherwise.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
