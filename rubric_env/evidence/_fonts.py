"""Scripts that this machine has no font for: LibreOffice draws boxes in their place, and a judge must know."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache

from rubric_env.evidence._soffice import environment

_SCRIPTS = (
    ("Chinese", "zh", re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")),
    ("Japanese", "ja", re.compile("[\u3040-\u30ff]")),
    ("Korean", "ko", re.compile("[\u1100-\u11ff\uac00-\ud7af]")),
)
"""A font for Japanese holds most of the characters of Chinese, but not the other way round."""


def missing_fonts(texts: Iterable[str]) -> str:
    """What to tell a judge of pictures of these texts; empty when every script has a font, or nobody knows."""
    missing = [(name, letters) for name, language, letters in _SCRIPTS if not _installed(language)]
    if any(name == "Chinese" for name, _ in missing) and _installed("ja"):
        missing = [entry for entry in missing if entry[0] != "Chinese"]
    found: set[str] = set()
    if missing:
        for text in texts:
            found.update(name for name, letters in missing if letters.search(text))
            if len(found) == len(missing):
                break
    if not found:
        return ""
    scripts = " and ".join(name for name, _ in missing if name in found)
    return f"no font for {scripts} is installed here: its characters are drawn as boxes, or not at all"


@cache
def _installed(language: str) -> bool:
    """Whether LibreOffice finds a font for it; where that cannot be asked, nothing is said to be missing."""
    try:
        listed = subprocess.run(
            ["fc-list", f":lang={language}", "family"], env=environment(), capture_output=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return True
    return bool(listed.stdout.strip())
