"""SPEC section 5, sentence by sentence: keys, words, ids, levels, what is recorded."""

from __future__ import annotations

import json

import pytest
from verdict_parsers import Parsed, Verdict, parse_verdicts


def hits(parsed: Parsed) -> dict[str, bool | None]:
    return {name: verdict.hit for name, verdict in parsed.verdicts.items()}


def row(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


def test_section_5_text_gives_verdicts_for_exactly_the_ids_of_the_block() -> None:
    parsed = parse_verdicts('[{"id":"R1","hit":true},{"id":"R9","hit":true}]', ["R1", "R2"])
    assert hits(parsed) == {"R1": True}
    assert parsed.unjudged == {"R2": "missing"}


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ('{"id":"R1","hit":true}', "whole"),
        (' \n{"verdicts":[{"id":"R1","hit":true},]}\n', "whole"),
        ('<think>no</think>{"id":"R1","hit":true}', "whole"),
        ('```json\n{"id":"R1","hit":true}\n```', "fence"),
        ('Done.\n~~~\n{"id":"R1","hit":true}\n~~~', "fence"),
        ('My verdict: {"id":"R1","hit":true}', "scan"),
        ('Rows:\n{"R1":true}', "scan"),
        ('{"verdicts":[{"id":"R1","hit":true},{"id":"R2","re', "rows"),
        ('<verdict id="R1"><hit>true</hit></verdict>', "rows"),
        ("| id | hit |\n|---|---|\n| R1 | true |\n", "rows"),
        ('{"verdicts":[{"id":"R1","hit":true,"reason":"the "net" sum"}]}', "whole+repair"),
        ('Well: {"verdicts":[{"id":"R1","hit":true,"reason":"the "net" sum"}]}', "scan+repair"),
        ('```\n{"verdicts":[{"id":"R1","hit":true,"reason":"the "net" sum"}]}\n```', "fence+repair"),
    ],
)
def test_section_5_recovered_by_says_which_level_gave_the_verdict(text: str, level: str) -> None:
    assert parse_verdicts(text, ["R1", "R2"]).verdicts["R1"].recovered_by == level


def test_section_5_the_level_of_most_trust_gives_the_verdict_when_several_agree() -> None:
    table = "| id | hit | reason |\n|---|---|---|\n| R1 | true | from the table |\n\n"
    verdict = parse_verdicts(table + '```\n{"id":"R1","hit":true,"reason":"from the fence"}\n```', ["R1"]).verdicts[
        "R1"
    ]
    assert (verdict.recovered_by, verdict.reason) == ("fence", "from the fence")


def test_section_5_reason_and_evidence_come_with_the_verdict() -> None:
    text = '{"verdicts":[{"id":"R1","reason":"B7 says 12","evidence":["p. 3","B7"],"hit":true,"level":0.75}]}'
    assert parse_verdicts(text, ["R1"]).verdicts["R1"] == Verdict(
        id="R1",
        hit=True,
        level=0.75,
        reason="B7 says 12",
        evidence="p. 3\nB7",
        spelled="hit:true",
        boolean=True,
        recovered_by="whole",
    )


def test_section_5_a_repaired_row_keeps_the_whole_text_of_its_reason() -> None:
    text = '{"verdicts":[{"id":"R1","hit":false,"reason":"the 1/2" wrench, sold as "pro", is wrong"}]}'
    assert parse_verdicts(text, ["R1"]).verdicts["R1"].reason == 'the 1/2" wrench, sold as "pro", is wrong'


def test_section_5_half_a_surrogate_pair_in_a_reason_can_be_stored_as_utf_8() -> None:
    verdict = parse_verdicts(r'{"id":"R1","hit":true,"reason":"an \ud83d emoji"}', ["R1"]).verdicts["R1"]
    assert verdict.reason.encode("utf-8") == b"an ? emoji"


@pytest.mark.parametrize(
    "word", ["true", "yes", "Yes", "PASS", "passed", "met", "satisfied", "是", "满足", "1", "命中"]
)
def test_section_5_words_that_mean_a_hit(word: str) -> None:
    assert hits(parse_verdicts(row(id="R1", hit=word), ["R1"])) == {"R1": True}


@pytest.mark.parametrize(
    "word", ["false", "no", "NO", "Fail", "not met", "NOT_MET", "unmet", "否", "未满足", "不满足", "0", "not satisfied"]
)
def test_section_5_words_that_mean_no_hit(word: str) -> None:
    assert hits(parse_verdicts(row(id="R1", hit=word), ["R1"])) == {"R1": False}


@pytest.mark.parametrize(
    "word",
    [
        "",
        "partially met",
        "mostly",
        "true (partially)",
        "!true",
        "not",
        "passable",
        "N/A",
        "unknown",
        "100%",
        "2",
        "0.5",
        "1.0",
        "是的",
        "不是",
        "not unmet",
        "true.",
        "yes and no",
        "nope",
        "-1",
    ],
)
def test_section_5_exact_words_only_never_substrings(word: str) -> None:
    parsed = parse_verdicts(row(id="R1", hit=word), ["R1"])
    assert parsed.verdicts == {}
    assert parsed.unjudged == {"R1": "unreadable"}


@pytest.mark.parametrize(
    "key",
    ["hit", "met", "criteria_met", "is_criteria_true", "verdict", "satisfied", "passed", "result", "score", "命中"],
)
def test_section_5_keys_that_carry_a_verdict(key: str) -> None:
    assert hits(parse_verdicts(row(id="R1", **{key: "yes"}), ["R1"])) == {"R1": True}


@pytest.mark.parametrize("key", ["violated", "not_met", "failed", "confidence", "status", "hits"])
def test_section_5_other_keys_carry_none(key: str) -> None:
    assert hits(parse_verdicts(row(id="R1", **{key: True}), ["R1"])) == {}


@pytest.mark.parametrize("key", ["score", "verdict"])
@pytest.mark.parametrize("value", [1, 0, 5, "1", "0", 0.5])
def test_section_5_score_and_verdict_only_with_a_word_never_a_number(key: str, value: object) -> None:
    assert hits(parse_verdicts(row(id="R1", **{key: value}), ["R1"])) == {}


def test_section_5_hit_outranks_the_other_keys() -> None:
    assert hits(parse_verdicts(row(id="R1", met=True, hit=False, verdict="PASS"), ["R1"])) == {"R1": False}
    assert parse_verdicts(row(id="R1", met=True, hit="maybe"), ["R1"]).unjudged == {"R1": "unreadable"}
    assert parse_verdicts(row(id="R1", met=True, hit=None), ["R1"]).unjudged == {"R1": "null"}


def test_section_5_without_hit_two_verdict_keys_that_differ_make_the_row_unjudged() -> None:
    assert parse_verdicts(row(id="R1", met=True, passed=False), ["R1"]).unjudged == {"R1": "conflict"}
    assert parse_verdicts(row(id="R1", met=True, passed="perhaps"), ["R1"]).unjudged == {"R1": "conflict"}
    assert hits(parse_verdicts(row(id="R1", met=True, passed="yes"), ["R1"])) == {"R1": True}


@pytest.mark.parametrize(
    ("text", "spelled", "boolean"),
    [
        ('{"id":"R1","hit":true}', "hit:true", True),
        ('{"id":"R1","Hit":false}', "hit:false", True),
        ("{'id': 'R1', 'hit': True}", "hit:true", True),
        ('{"id":"R1","hit":"true"}', "hit:true", False),
        ('{"id":"R1","hit":"PASS"}', "hit:PASS", False),
        ('{"id":"R1","hit":1}', "hit:1", False),
        ('{"id":"R1","Criteria_Met":true}', "criteria_met:true", True),
        ('{"id":"R1","命中":"是"}', "命中:是", False),
        ('{"R1":true}', ":true", True),
        ('{"R1":"met"}', ":met", False),
        ('{"R1":{"score":"yes"}}', "score:yes", False),
        ('{"id":"R1","level":0.5}', "level:0.5", False),
        ('<verdict id="R1"><hit>true</hit></verdict>', "hit:true", True),
        ('<verdict id="R1"><hit>yes</hit></verdict>', "hit:yes", False),
        ('<verdict id="R1">pass</verdict>', "verdict:pass", False),
        ("| id | hit |\n|---|---|\n| R1 | false |\n", "hit:false", True),
        ("| id | result |\n|---|---|\n| R1 | PASS |\n", "result:PASS", False),
    ],
)
def test_section_5_which_key_and_word_carried_the_verdict_is_recorded(text: str, spelled: str, boolean: bool) -> None:
    verdict = parse_verdicts(text, ["R1"]).verdicts["R1"]
    assert (verdict.spelled, verdict.boolean) == (spelled, boolean)


@pytest.mark.parametrize(
    ("written", "level"),
    [("0.75", 0.75), ('"0.75"', 0.75), ("1", 1.0), ('" 0 "', 0.0), ("75", 75.0), ("-1", -1.0), ("7.5e-1", 0.75)],
)
def test_section_5_a_level_is_a_number_or_a_numeric_string(written: str, level: float) -> None:
    assert parse_verdicts(f'{{"id":"R1","hit":true,"level":{written}}}', ["R1"]).verdicts["R1"].level == level


@pytest.mark.parametrize(
    "written", ["null", "true", '"75 %"', '"high"', "NaN", "Infinity", "1e999", '""', "[1]", '{"a":1}']
)
def test_section_5_what_is_no_number_is_no_level(written: str) -> None:
    assert parse_verdicts(f'{{"id":"R1","hit":true,"level":{written}}}', ["R1"]).verdicts["R1"].level is None


def test_section_5_an_answer_that_only_carries_a_level_has_no_hit() -> None:
    verdict = parse_verdicts('{"id":"G1","reason":"half of it","level":0.5}', ["G1"]).verdicts["G1"]
    assert (verdict.hit, verdict.level) == (None, 0.5)


def test_section_4_an_explicit_null_is_unjudged_and_kept_as_an_abstention() -> None:
    parsed = parse_verdicts('{"verdicts":[{"id":"R1","reason":"the deck was not rendered","hit":null}]}', ["R1", "R2"])
    assert parsed.verdicts == {}
    assert parsed.unjudged == {"R1": "null", "R2": "missing"}
    assert parsed.abstained["R1"].reason == "the deck was not rendered"


@pytest.mark.parametrize(
    "written", ["R1", " r1 ", "Criterion R1", "criterion: r1", "[R1]", "(R1)", "【R1】", "R\u200b1"]
)
def test_section_5_ids_are_trimmed_case_folded_and_freed_of_brackets(written: str) -> None:
    assert hits(parse_verdicts(row(id=written, hit=True), ["R1", "R2"])) == {"R1": True}


@pytest.mark.parametrize("written", ["R‑1", "R1.", "R1: total", "R01", "R1-R2", "R1, R2", "row R1", "1", "criterion"])
def test_section_5_other_ids_are_not_ours(written: str) -> None:
    assert hits(parse_verdicts(row(id=written, hit=True), ["R1", "R-1", "R2"])) == {}


def test_section_5_ids_are_not_folded_where_that_makes_two_equal() -> None:
    text = '[{"id":"a1","hit":true},{"id":"A1","hit":false},{"id":"B1","hit":true}]'
    assert hits(parse_verdicts(text, ["a1", "A1", "b1"])) == {"a1": True, "A1": False, "b1": True}
    assert hits(parse_verdicts('[{"id":"[a1]","hit":true}]', ["a1", "A1"])) == {}


def test_section_5_positions_never_stand_for_ids() -> None:
    for text in ("[true,false]", '[{"hit":true},{"hit":false}]', '[{"id":1,"hit":true}]', '{"verdicts":[true,false]}'):
        assert hits(parse_verdicts(text, ["R1", "R2"])) == {}


def test_section_5_texts_map_an_answer_back_that_names_the_rows_text() -> None:
    texts = {"R1": "The memo is dated.", "R2": "The memo is signed."}
    text = '{"verdicts":[{"criterion":"the memo  is dated.","hit":true},{"id":"The memo is signed.","hit":false}]}'
    assert hits(parse_verdicts(text, ["R1", "R2"], texts)) == {"R1": True, "R2": False}
    assert hits(parse_verdicts(text, ["R1", "R2"])) == {}


def test_section_5_texts_map_only_when_they_match_exactly_one() -> None:
    same = {"R1": "Dated.", "R2": "dated. "}
    assert hits(parse_verdicts('{"Dated.":true}', ["R1", "R2"], same)) == {}
    assert hits(parse_verdicts('{"Dated":true}', ["R1"], {"R1": "Dated."})) == {}
    assert hits(parse_verdicts('{"id":"X","text":"Dated.","hit":true}', ["R1"], {"R1": "Dated."})) == {}


@pytest.mark.parametrize("cut", range(1, 6))
def test_section_5_replies_over_256_kb_are_truncated(cut: int) -> None:
    answer = '{"id":"R1","hit":true}'
    fits = answer + " " * (256_000 - len(answer))
    assert hits(parse_verdicts(fits, ["R1"])) == {"R1": True}
    over = parse_verdicts(fits + " " * cut, ["R1", "R2"])
    assert over.unjudged == {"R1": "truncated", "R2": "truncated"}
    in_bytes = parse_verdicts(answer + "是" * 90_000, ["R1"])
    assert in_bytes.unjudged == {"R1": "truncated"}


def test_section_5_json_repair_is_used_on_16_kb_at_most() -> None:
    def text(filler: int) -> str:
        return '{"verdicts":[{"id":"R1","hit":true,"reason":"the "net" sum' + "x" * filler + '"}]}'

    assert hits(parse_verdicts(text(15_000), ["R1"])) == {"R1": True}
    assert hits(parse_verdicts(text(16_000), ["R1"])) == {}


def test_warnings_name_what_was_left_out() -> None:
    cut = parse_verdicts('[{"id":"R1","hit":true},{"id":"R2","reason":"half', ["R1", "R2"])
    assert cut.unjudged == {"R2": "truncated"}
    assert any(line.startswith("R2: breaks off") for line in cut.warnings)
    quoted = parse_verdicts('The file says {"id":"R1","hit":true}.', ["R1", "R2"])
    assert quoted.unjudged == {"R1": "quoted", "R2": "missing"}
    assert any(line.startswith("R1: quoted") for line in quoted.warnings)


def test_a_blank_marker_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="blank"):
        parse_verdicts("{}", ["R1"], marker=" \n")
