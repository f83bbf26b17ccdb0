"""Whether a file is what its name says."""

from __future__ import annotations

from pathlib import Path

from rubric_env.evidence._extract import Unreadable
from rubric_env.evidence._store import EvidenceStore, TooLarge, default_store
from rubric_env.evidence.kinds import NotRead, kind_of, registry
from rubric_env.submission import open_regular


def opens_as_named(path: Path, store: EvidenceStore | None = None) -> bool:
    """Whether the file opens as the kind that its suffix names; True where we cannot tell.

    Reads it at most once with the judge, who is shown the same entry of the store. Raises OSError.
    """
    suffix = path.suffix.lower()
    try:
        with open_regular(path) as opened:
            found = kind_of(suffix, opened.read(64))
        if found is not None:
            return not found[1]
        meta = (store or default_store()).entry(path).meta
    except (NotRead, TooLarge):
        return True
    except Unreadable:
        return False
    named = [kind.name for kind in registry() if suffix in kind.suffixes]
    if named and meta["status"] in ("read", "empty", "text") and meta["kind"] not in named:
        return False
    return bool(meta["ours"]) or meta["status"] != "unreadable"
