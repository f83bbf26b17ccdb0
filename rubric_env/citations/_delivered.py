"""The reports that a policy delivered, as text."""

from __future__ import annotations

from errno import EACCES, ELOOP, ENOENT, ENOTDIR, EPERM
from pathlib import PurePosixPath

from rubric_env.citations._text import UnreadableText, read_text_of
from rubric_env.submission import Submission

REPORTS = frozenset({".md", ".markdown", ".txt", ".html", ".htm", ".docx", ".odt", ".pdf"})

_POLICY_ERRORS = frozenset({EACCES, EPERM, ELOOP, ENOENT, ENOTDIR})
"""What a policy can bring about itself. Any other failure to open a file is the machine's."""


def delivered_reports(submission: Submission) -> list[tuple[str, str]]:
    """(name, text) of every report among the files, or of the reply when there is no file at all.

    A file that nobody can read is no report. Raises OSError where the machine fails and leaves no report at all.
    """
    reports: list[tuple[str, str]] = []
    failed: OSError | None = None
    for file in submission.files:
        if PurePosixPath(file.name).suffix.lower() not in REPORTS:
            continue
        try:
            reports.append((file.name, read_text_of(file.path)))
        except UnreadableText:
            continue
        except OSError as error:
            if error.errno not in _POLICY_ERRORS:
                failed = error
    if failed is not None and not reports:
        raise failed
    return [("reply", submission.reply)] if submission.from_chat else reports
