"""What must not hold up the event loop of a process with thousands of rollouts: see benchmarks/heartbeat.py."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rubric_env.submission import DeliveredFile
from tests.engine.conftest import Judging, case, rows


@pytest.mark.parametrize(("files", "most"), [(False, 1), (True, 4)])
async def test_replies_are_made_ready_one_at_a_time_and_files_side_by_side(
    judging: Judging, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: bool, most: int
) -> None:
    engine, lock, now, seen = judging.engine(), threading.Lock(), [0], [0]
    made = engine._material

    def material(*arguments: Any) -> Any:
        with lock:
            now[0] += 1
            seen[0] = max(seen[0], now[0])
        time.sleep(0.1)
        with lock:
            now[0] -= 1
        return made(*arguments)

    monkeypatch.setattr(engine, "_material", material)
    (tmp_path / "a.md").write_text("The profit rose.")
    delivered = (DeliveredFile("output/a.md", tmp_path / "a.md", 16),) if files else ()
    plain = [case(rows(1), f"The profit rose by {n} %.") for n in range(4)]
    cases = [replace(one, submission=replace(one.submission, files=delivered)) for one in plain]
    outcomes = await asyncio.gather(*(engine.judge(one) for one in cases))
    assert all(outcome.scored for outcome in outcomes)
    assert seen[0] == most
