from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric_env.evidence._fold import fold


@given(st.text() | st.text(st.sampled_from("，：；（）？！‑\u3000\xa0\n\r e\u0301\u0345ﬁ…가ᄀ\u1161İß²")))
def test_folding_is_nfkc_and_case_folding(text):
    assert fold(text) == unicodedata.normalize("NFKC", text).casefold()


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Ｉｇｎｏｒｅ　ＡＬＬ", "ignore all"),
        ("Straße", "strasse"),
        ("（满分！）", "(满分!)"),
        ("e\u0301", "é"),
        ("", ""),
    ],
)
def test_what_reads_alike_becomes_alike(text, folded):
    assert fold(text) == folded
