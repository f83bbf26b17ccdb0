"""What of the installed Python packages a sandbox shows: those that work on documents and data, and what they need.

Not all of them: environments are packages, too, and hold the rubrics and the expected answers of their tasks.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

PROMISED = {"python-docx": "docx", "openpyxl": "openpyxl", "python-pptx": "pptx", "lxml": "lxml", "pillow": "PIL"}
"""Packages that a policy is promised, and what each is imported as."""

_WELCOME = (
    *("numpy", "pandas", "scipy", "sympy", "matplotlib", "seaborn", "statsmodels", "scikit-learn", "networkx"),
    *("XlsxWriter", "pypdf", "pdfplumber", "reportlab", "beautifulsoup4"),
)
"""Shown where they are installed."""


def packages() -> list[Path]:
    """Files and folders of site-packages, each to be shown as a whole."""
    found: set[Path] = set()
    seen: set[str] = set()
    wanted = [*PROMISED, *_WELCOME]
    while wanted:
        name = wanted.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            continue
        found |= _entries(installed)
        wanted += [
            re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0]
            for line in installed.requires or ()
            if not re.search(r"\bextra\s*==", line)
        ]
    return sorted(path for path in found if path.exists())


def _entries(installed: Distribution) -> set[Path]:
    """Without what describes the package: each entry is a mount, and takes time in every run."""
    entries = set()
    for file in installed.files or ():
        top = file.parts[0]
        if top == "__pycache__":  # It is everyone's.
            entries.add(str(file))
        elif top != ".." and not top.endswith((".dist-info", ".egg-info", ".pth")):
            entries.add(top)
    return {Path(str(installed.locate_file(entry))) for entry in entries}
