"""What is sent: one encoding of a text that many calls share."""

from __future__ import annotations

import json

from rubric_env.judges._json import SharedTexts, to_json


def test_shared_texts_are_encoded_once_and_bounded() -> None:
    texts = SharedTexts(limit=500)
    first, second = "a" * 98, "b" * 98
    once = texts(first)
    assert once == to_json(first)
    assert texts(first) is once
    texts(second)
    assert texts(first) is once
    texts("c" * 98)
    assert texts(first) is once, "the one that was not asked for went"
    assert texts(second) == to_json(second)
    huge = "d" * 400
    assert texts(huge) == to_json(huge)
    assert texts(huge) is not texts(huge), "one that does not fit is not kept"
    assert texts(second) == to_json(second)


def test_a_text_in_two_parts_is_the_text_they_make() -> None:
    shared, own = 'quotes " and \\ 你好 \x00', "rows\n\u2028 \ud83d"
    whole = to_json(shared)[:-1] + to_json(f"\n{own}")[1:]
    assert json.loads(whole) == f"{shared}\n{own}".replace("\ud83d", "?")
