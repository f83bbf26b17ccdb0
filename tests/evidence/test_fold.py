from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from rubric_env.evidence._fold import fold


@given(st.text() | st.text(st.sampled_from("，：；（）？！‑\u3000\xa0\n\r e\u0301\u0345ﬁ…가ᄀ\u1161İß²")))
def test_folding_is_nfkc_and_case_folding(text):
    assert fold(text) == unicodedata.normalize("NFKC", text).casefold()
