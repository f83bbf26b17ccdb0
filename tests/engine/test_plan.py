from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rubric_env.engine.plan import plan


def test_section_7_blocks_of_batch_rows_in_order() -> None:
    assert plan(["a", "b", "c", "d", "e"], 2) == [("a", "b"), ("c", "d"), ("e",)]
    assert plan([], 4) == []


@given(st.lists(st.text(), unique=True), st.integers(1, 10))
def test_every_row_is_in_one_block(ids: list[str], batch: int) -> None:
    blocks = plan(ids, batch)
    assert [row for block in blocks for row in block] == ids
    assert all(1 <= len(block) <= batch for block in blocks)
