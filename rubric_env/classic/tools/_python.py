"""The tool that runs Python of the policy's: in the sandbox, never without."""

from __future__ import annotations

import signal

from rubric_env.classic.tools._workspace import FILE_BYTES, ToolRefusal, Workspace
from rubric_env.sandbox import Change, Finished, Limits, find_sandbox

MAX_SECONDS = 120
TOTAL_SECONDS = 900
"""Of all runs of a rollout."""

CODE_CHARACTERS = 200_000
OUTPUT_CHARACTERS = 12_000
ERROR_CHARACTERS = 6_000
CHANGES = 40


async def run_python(workspace: Workspace, code: str, seconds: int = 60) -> str:
    """Run a Python program in the workspace, which is its current directory, /app. python-docx, openpyxl, python-pptx,
    lxml and pillow are there; there is no network. Files that it leaves stay; variables do not: each run is a new
    program. Print what you want to see.

    Args:
        code: the whole program
        seconds: time after which it is stopped, at most 120 (900 for all runs together); what it wrote until then stays
    """
    if len(code) > CODE_CHARACTERS:
        raise ToolRefusal(f"code: {len(code):,} characters; a program may have {CODE_CHARACTERS:,}")
    left = TOTAL_SECONDS - workspace.clock.programs
    if left <= 0:
        raise ToolRefusal(f"no more runs: the programs of this task have run for {TOTAL_SECONDS} s")
    limits = Limits(
        seconds=min(_seconds(seconds), left),
        cpu_seconds=MAX_SECONDS,
        file_size=FILE_BYTES,
        files=workspace.files,
        disk=workspace.size,
        output=OUTPUT_CHARACTERS,
    )
    finished = await find_sandbox().run(code, workspace.root, limits)
    workspace.clock.programs += finished.seconds
    return _told(finished)


def _seconds(wanted: object) -> float:
    try:
        seconds = float(wanted)  # type: ignore[arg-type]  # whatever the policy wrote
    except (TypeError, ValueError, OverflowError):
        raise ToolRefusal(f"seconds: {str(wanted)[:40]!r} is no number") from None
    if not seconds > 0:
        raise ToolRefusal(f"seconds: {seconds:g} is no time")
    return min(seconds, MAX_SECONDS)


def _told(finished: Finished) -> str:
    parts = [finished.output.rstrip("\n")]
    if errors := finished.errors.strip("\n"):
        # A traceback says at its end what went wrong.
        cut = f"… {len(errors) - ERROR_CHARACTERS:,} characters left out …\n" if len(errors) > ERROR_CHARACTERS else ""
        parts.append(f"[stderr]\n{cut}{errors[-ERROR_CHARACTERS:]}")
    if finished.stopped:
        parts.append(f"[{finished.stopped}]")
    elif finished.code is not None and finished.code < 0:
        parts.append(f"[ended by {_signal(-finished.code)}]")
    elif finished.code:
        parts.append(f"[exit code {finished.code}]")
    if finished.changes:
        lines = [_line(change) for change in finished.changes[:CHANGES]]
        if len(finished.changes) > CHANGES:
            lines.append(f"… and {len(finished.changes) - CHANGES} more")
        parts.append("[files]\n" + "\n".join(lines))
    if finished.notes:
        parts.append("[not kept]\n" + "\n".join(finished.notes))
    return "\n".join(part for part in parts if part) or "(it printed nothing and changed no file)"


def _line(change: Change) -> str:
    return f"{change.kind} {change.name}" + (f" ({change.size} bytes)" if change.kind != "deleted" else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
