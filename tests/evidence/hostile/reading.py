"""How a hostile file is read in a test, and what must hold of every one."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from rubric_env.evidence import EvidenceStore, Extract, build_pack
from rubric_env.submission import read_submission

WITHIN = 90.0
"""Seconds of wall time for one file on a busy machine; most take a hundredth."""

TOKENS = 20_000


def read(folder: Path, name: str, content: bytes, *, cpu_seconds: int = 3) -> Extract:
    """The extract of one file, beside which another is read well.

    It ends in time and within the budget, and what cannot be read of it is not called a failure of ours: only a cap is.
    """
    output = folder / "output"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    (output / name).write_bytes(content)
    (output / "zz.md").write_text("A report.")
    store = EvidenceStore(folder / "store", cpu_seconds=cpu_seconds)
    start = time.monotonic()
    pack = build_pack(read_submission(folder), budget_tokens=TOKENS, store=store)
    assert time.monotonic() - start < WITHIN
    assert pack.tokens <= TOKENS
    hurt, well = pack.extracts
    assert (well.status, well.text) == ("read", "[¶1] A report.")
    assert not hurt.ours or hurt.status == "cut"
    return hurt
