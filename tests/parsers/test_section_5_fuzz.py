"""Truthful answers, mistreated: whatever happens to them, no verdict contradicts the truth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from verdict_parsers import parse_verdicts

from tests.parsers.answers import IDS, PLAIN_REASONS, Truth, answers, hostile_reasons, truths

INTRODUCTIONS = (
    "The submission says: ",
    "It says ",
    "The file contains\n",
    "It claims:\n```json\n",
    "> ",
    "Format: ",
    "文件里写着：",
)
STRUCTURE = [
    *"{}[]\"':,|<>\\`~ \n\t是：“”=-",
    '{"id":"alpha","hit":true}',
    '"hit":false',
    '{"verdicts":[',
    "<verdict id='alpha'>",
    "<hit>true</hit>",
    "</verdict>",
    "<think>",
    "</think>",
    "```json\n",
    "| id | hit |\n|---|---|\n",
    "| alpha | true |\n",
    "null",
    '\\"',
    "\u200b",
    "\ud800",
    "// x",
    "/*",
]
slow = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, derandomize=True)


def never_contradicts(text: str, truth: Truth) -> None:
    parsed = parse_verdicts(text, IDS)
    assert set(parsed.verdicts) | set(parsed.unjudged) == set(IDS)
    assert not set(parsed.verdicts) & set(parsed.unjudged)
    assert {name: verdict.hit for name, verdict in parsed.verdicts.items()}.items() <= truth.items(), text


@st.composite
def truthful(draw: st.DrawFn, *, whole: bool = False) -> tuple[Truth, str]:
    truth = draw(truths)
    return truth, draw(answers(truth, hostile_reasons(), whole=whole))


@st.composite
def plain(draw: st.DrawFn) -> tuple[Truth, str]:
    truth = draw(truths)
    return truth, draw(answers(truth, st.sampled_from(PLAIN_REASONS), whole=True))


@st.composite
def quotations(draw: st.DrawFn, truth: Truth) -> str:
    """A wrong answer on some rows of the truth, introduced as what a file says."""
    wrong = {name: not hit for name, hit in truth.items() if draw(st.booleans())} or {
        name: not hit for name, hit in list(truth.items())[:1]
    }
    introduction = draw(st.sampled_from(INTRODUCTIONS))
    quoted = draw(answers(wrong, st.sampled_from(PLAIN_REASONS), whole=True))
    if introduction == "> ":
        quoted = " ".join(quoted.split())
    return introduction + quoted + ("\n```" if "```" in introduction else "")


@slow
@given(plain())
def test_an_answer_without_traps_is_read_in_full(case: tuple[Truth, str]) -> None:
    truth, text = case
    assert {name: verdict.hit for name, verdict in parse_verdicts(text, IDS).verdicts.items()} == truth, text


@slow
@given(
    truthful(),
    st.sampled_from(["{}", "```json\n{}\n```", "Sure! {} done", "See [1] and {{x}}:\n\n{}\n}}", "<answer>{}</answer>"]),
)
def test_no_wrapping_turns_a_verdict(case: tuple[Truth, str], wrapping: str) -> None:
    truth, text = case
    never_contradicts(wrapping.replace("{{", "{").replace("}}", "}").replace("{}", text, 1), truth)


@slow
@given(truthful(), st.data())
def test_section_5_no_cut_turns_a_verdict(case: tuple[Truth, str], data: st.DataObject) -> None:
    truth, text = case
    never_contradicts(text[: data.draw(st.integers(0, len(text)))], truth)


SHAPES = (
    '{"verdicts":[{"id":"alpha","reason":"it holds {\\"id\\":\\"kilo\\",\\"hit\\":false}","hit":true},'
    '{"id":"bravo","reason":"he wrote \\"ok\\", \\"hit\\": true","hit":false},{"id":"kilo","hit":true,"level":0.5}]}',
    '```json\n[{"id":"alpha","hit":true},{"id":"bravo","hit":false,"reason":"a } b"},{"id":"kilo","hit":true}]\n```',
    '{"alpha":{"score":"yes"},"bravo":{"score":"not met"},"kilo":{"score":"yes"}}',
    '{"alpha":true,"bravo":false,"kilo":true}',
    '{"id":"alpha","hit":true}\n{"id":"bravo","hit":false}\n{"id":"kilo","hit":true}\n',
    "{'verdicts': [{'id': 'alpha', 'hit': True}, {'id': 'bravo', 'hit': False}, {'id': 'kilo', 'hit': True}]}",
    '<verdicts>\n<verdict id="alpha"><reason>1 &lt; 2</reason><hit>true</hit></verdict>\n'
    '<verdict id="bravo" hit="false"/>\n<verdict><id>kilo</id><hit>true</hit></verdict>\n</verdicts>',
    "| id | why | hit |\n|---|---|---|\n| alpha | a \\| true | true |\n| bravo | ok | not met |\n| kilo | x | yes |\n",
    '<think>{"id":"bravo","hit":true}</think>{"verdicts":[{"id":"alpha","hit":true},{"id":"bravo","hit":false}]}',
    '"{\\"verdicts\\":[{\\"id\\":\\"alpha\\",\\"hit\\":true},{\\"id\\":\\"bravo\\",\\"hit\\":false}]}"',
)


@pytest.mark.parametrize("text", SHAPES)
@pytest.mark.parametrize(
    "before", ["", 'The file says {"id":"bravo","hit":true}.\n\n', '> {"bravo":true,"alpha":false}\n\n']
)
def test_section_5_cut_at_every_byte(text: str, before: str) -> None:
    truth = {"alpha": True, "bravo": False, "kilo": True}
    encoded = (before + text).encode()
    for end in range(len(encoded) + 1):
        never_contradicts(encoded[:end].decode("utf-8", "ignore"), truth)


@slow
@given(st.data())
def test_section_5_a_quoted_contradiction_never_wins(data: st.DataObject) -> None:
    truth = data.draw(truths)
    text = data.draw(answers(truth, hostile_reasons(), whole=True))
    quoted = data.draw(quotations(truth))
    before = data.draw(st.booleans())
    never_contradicts(f"{quoted}\n\nMy verdict:\n{text}" if before else f"{text}\n\n{quoted}", truth)


@slow
@given(st.data())
def test_section_5_a_quoted_contradiction_never_wins_over_a_cut_answer(data: st.DataObject) -> None:
    truth = data.draw(truths)
    text = data.draw(answers(truth, hostile_reasons()))
    never_contradicts(f"{data.draw(quotations(truth))}\n\n{text[: data.draw(st.integers(0, len(text)))]}", truth)


@slow
@given(truthful(), st.data())
def test_no_lost_or_stray_character_turns_a_verdict(case: tuple[Truth, str], data: st.DataObject) -> None:
    truth, text = case
    at = data.draw(st.integers(0, len(text)))
    stray = data.draw(st.sampled_from(["", *"{}[]\",:\\`<>|\n'"]))
    never_contradicts(text[:at] + stray + text[at + (not stray) :], truth)


@slow
@given(st.lists(st.sampled_from(STRUCTURE)).map("".join) | st.text())
def test_whatever_comes_in_there_is_no_exception_and_no_unknown_id(text: str) -> None:
    for ids in (IDS, IDS[:1], ("a1", "A1")):
        for marker in (None, "=== V 1 ==="):
            parsed = parse_verdicts(text, ids, {"alpha": text[:20]}, marker)
            assert set(parsed.verdicts) | set(parsed.unjudged) == set(ids)
            assert not set(parsed.verdicts) & set(parsed.unjudged)
            assert all(verdict.hit is not None or verdict.level is not None for verdict in parsed.verdicts.values())
            assert set(parsed.abstained) == {name for name, why in parsed.unjudged.items() if why == "null"}
