"""The process that makes and edits office files: `python -m rubric_env.office._worker`, one task a line."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from rubric_env.evidence._worker import MEMORY, serve
from rubric_env.office._problems import Refused
from rubric_env.office._run import Task

_OURS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO, errno.EROFS, errno.EAGAIN})
"""What no file and no argument causes."""

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML does not have."""


def do(task: Task) -> dict[str, Any]:
    """`said`, or `refused` with what the policy is told, or `machine` with the number of an error of the system."""
    try:
        return {"said": _tool(task.tool)(task)}
    except Refused as refused:
        return {"refused": str(refused)}
    except MemoryError:
        return {"refused": f"it needs more than {MEMORY // 2**20:,} MB of memory; nothing was written"}
    except OSError as error:
        if error.errno in _OURS:
            return {"machine": error.errno}
        return {"refused": f"nothing was written: {error.strerror or error}"}
    except Exception as error:
        # Files that a policy edits may be broken in any way, and the libraries raise anything.
        return {"refused": f"nothing was written: the file cannot be handled ({type(error).__name__}: {error})"[:1000]}


def _tool(name: str) -> Callable[[Task], str]:
    """The function of `make_docx` is `make` of `_docx_make`; no other library is loaded for it."""
    verb, _, kind = name.partition("_")
    tool: Callable[[Task], str] = getattr(import_module(f"rubric_env.office._{kind}_{verb}"), verb)
    return tool


def _clean(value: Any) -> Any:
    """Without what no office file can hold."""
    if isinstance(value, str):
        return _ILLEGAL.sub("", value)
    if isinstance(value, dict):
        return {key: _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    serve({"Task": lambda fields: do(Task(**_clean(fields)))})


if __name__ == "__main__":
    main()
