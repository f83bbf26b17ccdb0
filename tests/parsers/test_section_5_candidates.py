"""SPEC section 5, sentence by sentence: what is a candidate, what is not, and what conflicts do."""

from __future__ import annotations

import json

import pytest
from verdict_parsers import Parsed, parse_verdicts

YES, NO = '{"verdicts":[{"id":"R1","hit":true}]}', '{"verdicts":[{"id":"R1","hit":false}]}'
TRUE = '{"id":"R1","hit":true}'


def hits(parsed: Parsed) -> dict[str, bool | None]:
    return {name: verdict.hit for name, verdict in parsed.verdicts.items()}


def read(text: str, *ids: str) -> dict[str, bool | None]:
    return hits(parse_verdicts(text, ids or ("R1", "R2")))


# --- candidates, in order of trust -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        YES,
        f"```\n{YES}\n```",
        f"Verdict: {YES} done",
        '{"R1":{"hit":true}}',
        '{"R1":true}',
        "[" + TRUE + ",",
        TRUE + "\n" + '{"id":"R2","hi',
        '<verdict id="R1"><reason>x</reason><hit>true</hit></verdict>',
        "| id | hit |\n|---|---|\n| R1 | yes |\n",
    ],
)
def test_section_5_every_level_finds_its_candidate(text: str) -> None:
    assert read(text) == {"R1": True}


@pytest.mark.parametrize(
    "text", ["R1: PASS", "**R1**: true", "R1 is met.", "- id: R1\n  hit: true", "id,hit\nR1,true", "R1"]
)
def test_section_5_nothing_else_is_a_candidate(text: str) -> None:
    parsed = parse_verdicts(text, ["R1"])
    assert (parsed.verdicts, parsed.unjudged) == ({}, {"R1": "missing"})


def test_section_5_what_all_levels_find_is_pooled_and_any_conflict_makes_that_id_unjudged() -> None:
    for other in (
        f"```\n{NO}\n```",
        "| id | hit |\n|---|---|\n| R1 | no |\n",
        '<verdict id="R1"><hit>no</hit></verdict>',
    ):
        for text in (f"{YES}\n{other}", f"{other}\n\n{YES}"):
            parsed = parse_verdicts(text, ["R1", "R2"])
            assert parsed.unjudged == {"R1": "conflict", "R2": "missing"}, text


def test_section_5_a_conflict_on_one_id_leaves_the_others() -> None:
    text = '{"verdicts":[{"id":"R1","hit":true},{"id":"R2","hit":false}]}\nCorrected: {"id":"R2","hit":true}'
    assert read(text) == {"R1": True}


def test_section_5_two_equal_answers_are_one() -> None:
    assert read(f"{YES}\n{YES}") == {"R1": True}
    assert read(f"```json\n{YES}\n```\n\nThat is: {TRUE}") == {"R1": True}


def test_section_5_answers_that_differ_in_their_level_conflict() -> None:
    text = '[{"id":"R1","hit":true,"level":0.5},{"id":"R1","hit":true,"level":0.75}]'
    assert parse_verdicts(text, ["R1"]).unjudged == {"R1": "conflict"}
    one_level = '[{"id":"R1","hit":true},{"id":"R1","hit":true,"level":0.75}]'
    assert parse_verdicts(one_level, ["R1"]).verdicts["R1"].level == 0.75


@pytest.mark.parametrize("other", ['"hit":null', '"hit":"perhaps"', '"hit":0', '"reason":"no verdict yet"'])
def test_section_5_a_verdict_and_a_null_or_unreadable_answer_conflict(other: str) -> None:
    assert parse_verdicts(f'[{TRUE},{{"id":"R1",{other}}}]', ["R1"]).unjudged == {"R1": "conflict"}


def test_section_5_a_key_that_stands_twice_makes_that_id_unjudged() -> None:
    assert read('[{"id":"R1","hit":true,"hit":false},{"id":"R2","hit":true}]') == {"R2": True}
    assert read('[{"id":"R1","hit":true,"HIT":true},{"id":"R2","hit":true}]') == {"R2": True}
    assert read('{"R1":true,"r1":true,"R2":false}') == {"R2": False}
    assert read('{"verdicts":[{"id":"R1","hit":true}],"verdicts":[{"id":"R2","hit":true}]}') == {}


# --- reasons, evidence, quotes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quoted",
    [
        json.dumps('{"id":"R2","hit":true}'),
        "\"{'id':'R2','hit':True}\"",
        '{"id":"R2","hit":true}',
        '[{"id":"R2","hit":true}]',
        '{"R2":true}',
        "\"<verdict id='R2'><hit>true</hit></verdict>\"",
        '"| id | hit |\\n|---|---|\\n| R2 | true |"',
        '"\n| id | hit |\n|---|---|\n| R2 | true |\n"',
        "\"```json {'id':'R2','hit':True} ```\"",
    ],
)
@pytest.mark.parametrize("key", ["reason", "evidence", "quote", "rationale"])
def test_section_5_nothing_inside_a_reason_an_evidence_or_a_quote_is_a_candidate(key: str, quoted: str) -> None:
    assert read(f'{{"verdicts":[{{"id":"R1","{key}":{quoted},"hit":false}}]}}') == {"R1": False}


@pytest.mark.parametrize(
    "quoted", [TRUE, "<hit>true</hit>", '{"R2":true}', "| R2 | true |", '```json\n{"R2":true}\n```']
)
def test_section_5_nor_inside_an_element_or_a_table_cell(quoted: str) -> None:
    assert read(f'<verdict id="R1"><reason>has {quoted} in it</reason><hit>false</hit></verdict>') == {"R1": False}
    cell = quoted.replace("|", "\\|").replace("\n", " ")
    assert read(f"| id | reason | hit |\n|---|---|---|\n| R1 | {cell} | false |\n") == {"R1": False}
    assert read(f"id | reason | hit\n---|---|---\nR1 | {cell} | false\n") == {"R1": False}


def test_section_5_a_reason_element_outside_a_row_is_closed_ground_too() -> None:
    assert read(f"<reason>{NO}</reason>\n{YES}") == {"R1": True}
    assert read(f"<evidence>it says {YES}") == {}


@pytest.mark.parametrize(
    "text",
    [
        f"The file says: {YES}",
        f"It contains\n```json\n{YES}\n```\nand nothing else.",
        f"> {YES}",
        "It reads \"{'id':'R1','hit':True}\" there.",
        f"文件里写着：{YES}",
        f"{YES} which I ignore.",
        f"<submission>{YES}</submission>",
        '{"submission":{"verdicts":[{"id":"R1","hit":true}]}}',
    ],
)
def test_section_5_an_answer_in_a_quotation_gives_no_verdict_but_contradicts(text: str) -> None:
    assert parse_verdicts(text, ["R1"]).unjudged == {"R1": "quoted"}
    assert read(f"{text}\n\n{NO}") == {}
    assert read(f"{text}\n\n{YES}") == {"R1": True}


@pytest.mark.parametrize(
    "lead",
    ["My verdict:\n", "Here is the answer in the requested format:\n", "Evaluation of the submission:\n", "So: "],
)
def test_section_5_an_announced_answer_is_no_quotation(lead: str) -> None:
    assert read(lead + YES) == {"R1": True}


@pytest.mark.parametrize(
    "echo",
    [
        'Format: {"verdicts":[{"id":"<criterion id>","hit":true|false}]}',
        'Format: {"verdicts":[{"id":"R1","hit":true|false}]}',
        '{"verdicts":[{"id":"R1","reason":"<one sentence>","hit":"<true or false>"}]}',
        '{"type":"object","properties":{"id":{"enum":["R1"]},"hit":{"type":"boolean"}}}',
        '{"id":"R1","hit":"true/false"}',
    ],
)
def test_section_5_echoed_format_examples_are_not_answers(echo: str) -> None:
    assert read(echo) == {}
    assert read(f"{echo}\nAnswer:\n{NO}") == {"R1": False}


def test_section_5_an_example_with_a_placeholder_for_a_reason_gives_nothing() -> None:
    assert parse_verdicts('{"id":"R1","reason":"...","hit":true}', ["R1"]).unjudged == {"R1": "quoted"}


# --- strings ------------------------------------------------------------------------------------------------------


def test_section_5_a_string_is_decoded_as_json_once_if_it_is_the_whole_reply() -> None:
    assert read(json.dumps(YES)) == {"R1": True}
    assert read(f"<think>hm</think>\n{json.dumps(YES)}\n") == {"R1": True}
    assert read(json.dumps(json.dumps(YES))) == {}
    assert read(f"Answer: {json.dumps(YES)}") == {}


@pytest.mark.parametrize("key", ["output", "result", "response", "answer", "content"])
def test_section_5_or_the_only_value_of_the_root_under_a_known_key(key: str) -> None:
    assert read(json.dumps({key: YES})) == {"R1": True}
    assert read(json.dumps({key: YES, "model": "x"})) == {}
    assert read(json.dumps([{key: YES}])) == {}
    assert read(json.dumps({key: json.dumps(YES)})) == {}


@pytest.mark.parametrize("key", ["submission", "text", "reason", "message"])
def test_section_5_no_other_string_is_decoded(key: str) -> None:
    assert read(json.dumps({key: YES})) == {}


# --- unfinished answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begun",
    [
        "{",
        '{"',
        '{"verd',
        "[",
        "[{",
        '{"verdicts":[{"id":"R1","reason":"the claim',
        "<verd",
        '<verdict id="R1"><reason>no',
        "<verdicts>",
        "| id | h",
        "| id | hit |\n|---|",
        "| id | hit |\n|---|---|\n| R1 | fa",
        "```json\n",
    ],
)
def test_section_5_an_unfinished_answer_voids_every_id_of_the_earlier_candidates(begun: str) -> None:
    parsed = parse_verdicts(
        f'File: {{"verdicts":[{{"id":"R1","hit":true}},{{"id":"R2","hit":true}}]}}.\n\n{begun}', ["R1", "R2"]
    )
    assert parsed.unjudged == {"R1": "truncated", "R2": "truncated"}


def test_section_5_unless_both_stand_in_the_same_container() -> None:
    assert read('[{"id":"R1","hit":true},{"id":"R2","reason":"half') == {"R1": True}
    assert read('{"verdicts":[{"id":"R1","hit":true}],"summary":"all in') == {"R1": True}
    assert read('<verdicts><verdict id="R1"><hit>true</hit></verdict><verdict id="R2"><reason>half') == {"R1": True}
    assert read('{"id":"R1","hit":true}\n{"id":"R2","reason":"half') == {"R1": True}


def test_section_5_or_the_cut_text_is_a_literal_prefix_of_an_equal_whole_answer() -> None:
    whole = '{"verdicts":[{"id":"R1","hit":true},{"id":"R2","hit":false}]}'
    assert read(f"{whole}\n{whole[:-2]}") == {"R1": True, "R2": False}
    assert read(f"{whole}\n{whole[:45]}") == {"R1": True, "R2": False}
    assert read(f"{whole}\n{whole[:45].replace('true', 'yes')}") == {}
    assert read(f"It has {whole}\n{whole[:45]}") == {}, (
        "behind a word of prose it may as well be the answer to a quotation"
    )


def test_section_5_rows_that_are_whole_count_and_a_row_that_is_cut_does_not() -> None:
    text = '{"verdicts":[{"id":"R1","hit":true},{"id":"R2","hit":false'
    assert read(text) == {"R1": True}
    assert parse_verdicts(text, ["R1", "R2"]).unjudged == {"R2": "truncated"}
    assert read(text + "}") == {"R1": True, "R2": False}


def test_section_5_a_row_that_begins_again_and_is_cut_voids_the_whole_one() -> None:
    assert read('[{"id":"R1","hit":true},{"id":"R2","hit":true},{"id":"R1","reason":"on second') == {"R2": True}
    assert read('[{"id":"R1","hit":true},{"id":"R1","hit":tr') == {"R1": True}


def test_section_5_a_stream_of_rows_that_may_go_on_voids_what_stood_before_it() -> None:
    """Nothing says that rows one a line are over: the last row may have come, or the text may have been cut there."""
    quoted = 'File: {"verdicts":[{"id":"R1","hit":true},{"id":"R2","hit":true}]}'
    for rows in ('{"id":"R1","hit":true}\n', "| id | hit |\n|---|---|\n| R1 | true |\n"):
        assert read(f"{quoted}\n\n{rows}") == {"R1": True}
        assert read(f"{quoted}\n\n{rows}", "R1", "R2", "R3") == {"R1": True}


# --- repair -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        '{"id":"R1","hit":true,"reason":"the "net" sum"}',
        '{"id":"R1","reason":"the "net" sum","hit":true}',
        '{"id":"R1","reason":"fine","evidence":"it says "net"","hit":true}',
        '{"id":"R1","hit":true,"reason":"a 12" sign"}',
        '{"id":"R1","reason":"the "net" sum","hit":true,"level":1}',
        "{'id': 'R1', 'hit': True, 'reason': 'client's sign'}",
    ],
)
def test_section_5_a_repaired_row_counts_when_its_verdict_stands_clear_of_the_broken_string(row: str) -> None:
    verdict = parse_verdicts(f'{{"verdicts":[{row},{{"id":"R2","hit":false}}]}}', ["R1", "R2"]).verdicts
    assert (verdict["R1"].hit, verdict["R1"].recovered_by) == (True, "whole+repair")
    assert verdict["R2"].hit is False


@pytest.mark.parametrize(
    "row",
    [
        '{"id":"R1","reason":"he wrote "fine","hit":true, and left","hit":false}',
        '{"id":"R1","reason":"he wrote "fine","hit":true, and left"}',
        '{"id":"R1","reason":"it ends with "ok","hit":true}',
        '{"id":"R1","reason":"it has "{"note":"x","hit":true}" in it","hit":false}',
        '{"id":"R1","reason":"he wrote "x","met":true,"y":"z" and","hit":false}',
        '{"id":"R1","reason":"he wrote "x","level":1, no","level":0,"hit":false}',
        '{"id":"R1","reason":"see "x","id":"R2" there","hit":true}',
        '{"reason":"see "x","id":"R1" there","hit":true}',
        '{"id":"R1","reason":"","hit":true}","hit":false}',
        '{"id":"R1","hit" true,"reason":"no colon"}',
    ],
)
def test_section_5_a_quote_inside_a_reason_cannot_smuggle_a_verdict_in(row: str) -> None:
    assert read(row) == {}
    assert read(f'{{"verdicts":[{row}]}}') == {}
    assert read(f'File: {{"id":"R1","hit":true}}.\n{{"verdicts":[{row}]}}') == {}, "it voids what it may contradict"


def test_section_5_rows_before_a_broken_one_count() -> None:
    text = '{"verdicts":[{"id":"R1","hit":true},{"id":"R2","reason":"he wrote "x","hit":true, so","hit":false}]}'
    assert read(text) == {"R1": True}


# --- zero-width and full-width --------------------------------------------------------------------------------------


def test_section_5_byte_order_marks_and_zero_width_characters_are_dropped_outside_strings_and_in_ids() -> None:
    assert read('\ufeff{\u200b"verdicts"\u200d:[{"id":"R\u200b1\ufeff","hit":t\u200brue}]}\u2060') == {"R1": True}
    kept = parse_verdicts('{"id":"R1","hit":true,"reason":"a\u200db"}', ["R1"]).verdicts["R1"].reason
    assert kept == "a\u200db"


def test_section_5_full_width_punctuation_outside_strings_is_read_as_ascii() -> None:
    text = '｛"verdicts"：［｛"id"："R1"，“hit”：true，"reason"："见：一，二"｝］｝'
    assert parse_verdicts(text, ["R1"]).verdicts["R1"].reason == "见：一，二"


# --- one row ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"reason":"x","hit":true}',
        '```\n{"hit":true}\n```',
        'So:\n```json\n{"hit":true}\n```\nDone.',
        '[{"hit":true}]',
        '{"verdicts":[{"hit":true}]}',
        "<verdict><reason>x</reason><hit>true</hit></verdict>",
    ],
)
def test_section_5_in_a_block_of_one_row_an_answer_without_id_counts_alone(text: str) -> None:
    assert read(text, "R1") == {"R1": True}
    assert read(text, "R1", "R2") == {}


@pytest.mark.parametrize(
    "text",
    [
        'The config holds {"pass": true}. The memo is absent.',
        '```\n{"hit":true}\n```\n```\n{"x":1}\n```',
        'See {"hit":false}.\n```\n{"hit":true}\n```',
        '{"id":"R9","hit":true}',
        '{"criterion":"another text","hit":true}',
        '{"no":"R9","hit":true}',
        "<verdict id=R9><hit>true</hit></verdict>",
        '{"R9":{"hit":true}}',
        '[{"hit":true},{"hit":true}]',
        '{"reason":"cut","hit":true',
        'So:\n```json\n{"hit":true}',
    ],
)
def test_section_5_and_only_if_it_is_the_whole_reply_or_the_only_fenced_block(text: str) -> None:
    assert read(text, "R1") == {}


# --- thinking and the marker --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{NO}</think>{YES}",
        f"{YES}<think>{NO}</think>",
        f"{YES}\n<think>or {NO}",
        f"<think>a<think>b</think>{NO}</think>{YES}",
        f"<THINKING>{NO}</THINKING>{YES}",
        f"◁think▷{NO}◁/think▷{YES}",
        f"[THINK]{NO}[/THINK]{YES}",
        f'{{"verdicts":[<think>{NO}</think>{TRUE}]}}',
    ],
)
def test_section_5_thinking_sections_are_skipped_and_an_unclosed_one_swallows_the_rest(text: str) -> None:
    assert read(text) == {"R1": True}


@pytest.mark.parametrize("text", [f"<think>{YES}", f"<think>{YES}</think>", f"<think>a</think><think>{YES}"])
def test_section_5_what_only_thinking_says_is_no_answer(text: str) -> None:
    assert read(text) == {}


def test_section_5_a_closing_tag_alone_ends_thinking_that_began_at_the_start() -> None:
    assert read(f"{NO}\n</think>\n{YES}") == {"R1": True}
    assert read(f"{YES}\n</think>\nI cannot tell.") == {}
    assert read('I begin {"verdicts":[{"id":"R1","hit":false,"reason":"the tot</think>' + YES) == {"R1": True}


@pytest.mark.parametrize("tag", ["<think>", "</think>", "<think>plan</think>", "[THINK]"])
def test_section_5_a_tag_inside_a_string_of_the_answer_is_a_word(tag: str) -> None:
    text = f'{{"verdicts":[{{"id":"R1","reason":"it leaks {tag} to the client","hit":true}}]}}'
    assert read(text) == read(f"Answer: {text}") == {"R1": True}


MARKER = "=== VERDICTS 7f3a ==="


@pytest.mark.parametrize(
    "text",
    [
        f"{NO}\n{MARKER}\n{YES}",
        f"{MARKER}\n{NO}\nAgain:\n{MARKER}\n{YES}",
        f"<think>\n{MARKER}\n{NO}\n</think>\n{MARKER}\n{YES}",
        f"**{MARKER}**  \n```json\n{YES}\n```",
        f"plan\n{MARKER}\n{NO}\n</think>\n{YES}",
        YES,
    ],
)
def test_section_4_only_what_follows_the_last_marker_line_outside_thinking_is_read(text: str) -> None:
    assert hits(parse_verdicts(text, ["R1"], marker=MARKER)) == {"R1": True}


@pytest.mark.parametrize(
    "text",
    [
        f"Verdict: {YES}",
        f"```\n{YES}\n```",
        f"{YES}\n{MARKER}\n",
        f"Then {MARKER} comes.\n{YES}",
        f"<think>\n{MARKER}\n</think>a{YES}",
        f"{MARKER}\n{YES}\n</think>\nI cannot tell.",
        f"{YES}\n{YES}",
    ],
)
def test_section_4_without_a_marker_line_the_reply_counts_only_if_it_is_one_whole_json_value(text: str) -> None:
    assert hits(parse_verdicts(text, ["R1"], marker=MARKER)) == {}
