"""The parser classes: the interface of verifiers' parsers, and their numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_parsers import JsonVerdictParser, VerdictParser, XmlVerdictParser

ANSWER = '{"reason": "dated", "evidence": "p. 1", "hit": true}'
XML = "<reason>\ndated\n</reason>\n<evidence>\np. 1\n</evidence>\n<hit>\ntrue\n</hit>"


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize("parser", [JsonVerdictParser(["R1"]), XmlVerdictParser(["R1"])])
@pytest.mark.parametrize("text", ['{"id":"R1","hit":false}', '<verdict id="R1"><hit>false</hit></verdict>'])
def test_every_parser_reads_verdicts_in_every_notation(parser: VerdictParser, text: str) -> None:
    assert parser.parse(text).verdicts["R1"].hit is False


@pytest.mark.parametrize(
    "completion",
    [
        '{"id":"R1","hit":true}',
        [{"role": "user", "content": "judge"}, {"role": "assistant", "content": '{"id":"R1","hit":true}'}],
        [{"role": "assistant", "content": '{"id":"R1","hit":false}'}, *said('{"id":"R1","hit":true}')],
        [SimpleNamespace(role="assistant", content='{"id":"R1","hit":true}')],
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": '{"id":"R1",'}, {"type": "text", "text": '"hit":true}'}],
            }
        ],
        [{"role": "assistant", "content": [{"type": "image_url"}, SimpleNamespace(text='{"id":"R1","hit":true}')]}],
    ],
)
def test_parse_answer_reads_the_last_assistant_message(completion: Any) -> None:
    parsed = JsonVerdictParser(["R1"]).parse_answer(completion)
    assert parsed is not None
    assert parsed.verdicts["R1"].hit is True


@pytest.mark.parametrize("completion", [[], None, [{"role": "user", "content": "hi"}]])
def test_parse_answer_is_none_without_an_assistant_message(completion: Any) -> None:
    assert JsonVerdictParser(["R1"]).parse_answer(completion) is None


def test_an_assistant_message_without_content_answers_nothing() -> None:
    parsed = JsonVerdictParser(["R1"]).parse_answer([{"role": "assistant", "content": None}])
    assert parsed is not None
    assert parsed.unjudged == {"R1": "missing"}


def test_texts_and_marker_are_those_of_parse_verdicts() -> None:
    parser = JsonVerdictParser(["R1"], texts={"R1": "It is dated."}, marker="=== V 1 ===")
    assert parser.parse('no: {"R1":false}\n=== V 1 ===\n{"It is dated.":true}').verdicts["R1"].hit is True


def test_format_strings_name_fields_and_aliases() -> None:
    fields = ("reason", ("hit", "met"))
    assert XmlVerdictParser([], fields=fields).get_format_str() == (
        "<reason>\n...\n</reason>\n<[ hit | met ]>\n...\n</[ hit | met ]>"
    )
    assert JsonVerdictParser([], fields=fields).get_format_str() == '{"reason": ..., "[ hit | met ]": ...}'


def test_parse_fields_gives_the_first_row_or_the_last() -> None:
    text = "<hit>true</hit> <hit> false </hit><reason>x</reason>"
    xml = XmlVerdictParser([], fields=("reason", ("hit", "met")))
    assert vars(xml.parse_fields(text)) == {"reason": "x", "hit": "true", "met": None}
    assert xml.parse_fields(text, last=True).hit == "false"
    rows = JsonVerdictParser([]).parse_fields('{"verdicts":[{"hit":true,"reason":"a"},{"hit":"no"}]}')
    assert (rows.hit, rows.reason, rows.evidence) == ("true", "a", None)
    assert JsonVerdictParser([]).parse_fields('[{"hit":1},{"met":0}]', last=True).met == "0"
    assert JsonVerdictParser([]).parse_fields("no JSON {here}").hit is None


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        (ANSWER, 1.0),
        ('{"verdicts":[' + ANSWER + ", " + ANSWER + "]}", 1.0),
        ('{"reason": "a", "evidence": "b", "met": true}', 1.0),
        ("Sure: " + ANSWER, 0.4 + 0.2),
        ("```json\n" + ANSWER + "\n```", 0.4),
        ('{"hit": true, "reason": "a", "evidence": "b"}', 0.4 + 0.2),
        ('{"reason": "a", "hit": true}', 0.4 * 2 / 3 + 0.6),
        ('{"verdict": "yes"}', 0.4 / 3 + 0.2 + 0.2),
        ('{"a": 1}', 0.0),
        ("true", 0.0),
        ("", 0.0),
    ],
)
def test_the_json_format_reward_has_the_four_parts(text: str, reward: float) -> None:
    assert JsonVerdictParser([]).get_format_reward_func()(completion=said(text)) == pytest.approx(reward)


def test_the_format_reward_is_the_mean_over_the_assistant_messages() -> None:
    reward = XmlVerdictParser([]).get_format_reward_func()
    assert reward(said(XML)) == pytest.approx(1.0)
    assert reward(said(XML) + said("nothing"), state={}, parser=None) == pytest.approx((1.0 + 0.2) / 2)
    assert reward([]) == 0.0


@pytest.mark.parametrize("fields", [(), ("a", "a"), ("a", ()), ("a", ("a", "b"))])
def test_fields_that_are_empty_or_repeated_are_refused(fields: Any) -> None:
    with pytest.raises(ValueError, match="field"):
        XmlVerdictParser([], fields=fields)


@pytest.mark.parametrize("fields", [(1,), (("a", 2),), (["a"],)])
def test_fields_that_are_no_strings_are_refused(fields: Any) -> None:
    with pytest.raises(TypeError, match="field"):
        JsonVerdictParser([], fields=fields)


PIECES = [f"<{slash}{name}>" for name in ("reason", "hit", "met", "evidence") for slash in ("", "/")] + [
    " ",
    "\n",
    "x",
    "true",
]
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["assistant", "user"]), "content": st.lists(st.sampled_from(PIECES)).map("".join)}
    ),
    max_size=3,
)


@pytest.mark.verifiers
@settings(deadline=None)
@given(messages, st.permutations(["reason", ("hit", "met"), "evidence"]), st.integers(1, 3))
def test_the_xml_parser_gives_the_numbers_and_fields_of_verifiers(
    completion: list[dict[str, str]], fields: list[Any], count: int
) -> None:
    vf = pytest.importorskip("verifiers")
    theirs, ours = vf.XMLParser(fields[:count]), XmlVerdictParser([], fields=fields[:count])
    expected = theirs.get_format_reward_func()(completion)
    assert ours.get_format_reward_func()(completion) == pytest.approx(expected, abs=1e-12)
    assert ours.get_format_str() == theirs.get_format_str()
    for message in completion:
        for last in (False, True):
            assert vars(ours.parse_fields(message["content"], last)) == vars(
                theirs.parse(message["content"], last=last)
            )
