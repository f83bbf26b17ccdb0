"""SPEC 4: an address or quote that the pack does not have is found, and little else is."""

from __future__ import annotations

import time

import pytest

REPORT = """# Market report

Revenue grew by **12 %** to 4.2 million euros, the "strongest" quarter since 2019.

[¶9] is a label that the file made up.

营业收入四百二十万元，同比增长百分之十二，创历史新高。

- See appendix.pdf for the details
"""


@pytest.fixture
def pack(pack_of):
    files = {
        "report.md": REPORT,
        "My notes.txt": "one\n\ntwo",
        "data.csv": "item,price\npens,3.50\nink,4.00\n",
        "tree.json": '{"a": [1, 2, {"b": "' + "x y " * 200 + '"}], "c d": ' + str(list(range(300))) + "}",
        "log.jsonl": '{"n": 1}\n{"n": 2}\n',
        "deck.pptx": b"PK\x03\x04rest",
    }
    reply = "The report is in output/report.md.\n\nIt took two days."
    return pack_of(files, reply=reply, reference="The expected growth is twelve percent.")


@pytest.mark.parametrize(
    "evidence",
    [
        "",
        "none",
        "The report is thorough and well argued.",
        "output/report.md",
        "report.md",
        "output/report.md#¶2",
        "output/report.md#¶2-¶4 and ¶5",
        "[¶3] and [¶1]",
        "see `output/report.md`, ¶2: revenue",
        "output/data.csv#row 2",
        "data.csv#rows 2-3",
        "data.csv#row 2: pens",
        "My notes.txt#¶2",
        "output/tree.json#$.a[2].b",
        "output/tree.json#$.a",
        'output/tree.json#$["c d"][299]',
        "output/log.jsonl#L2",
        "model_response_text.txt#¶2",
        "output/deck.pptx, slide 3",
        "output/report.md#¶2: “Revenue grew by 12 % to 4.2 million euros”",
        "output/report.md#¶2: 'Revenue grew'",
        'the report says "revenue  grew by\n12 % … since 2019."',
        'It calls it the ""strongest" quarter since 2019"',
        "报告写道“营业收入四百二十万元，同比增长百分之十二”",
        "「同比增长百分之十二，创历史新高」",
        'The reference has "expected growth is twelve percent".',
        'The report has no sentence such as "costs fell by a third in the same period".',
        '"Costs fell by a third in the same period" is not stated anywhere.',
        "The row asks for output/summary.md, which was not delivered.",
        "summary.xlsx is missing",
        "The file mentions appendix.pdf.",
        "未找到“净利润同比下降百分之三十五点二”的表述",
        "the price is $4.2 million",
        'A 5" screen and a 7" screen are compared in the text',
        'The terms "net" and "gross" are used.',
    ],
)
def test_section_4_what_is_there_or_names_nothing_resolves(pack, evidence):
    assert pack.resolves(evidence)


@pytest.mark.parametrize(
    "evidence",
    [
        "output/report.md#¶6",
        "[¶9]",
        "output/report.md#¶2-¶40",
        "output/data.csv#row 4",
        "output/data.csv#¶1",
        "output/tree.json#$.z",
        'output/tree.json#$["c d"][300]',
        "output/log.jsonl#L3",
        "My notes.txt#¶3",
        "Stated in output/summary.md",
        "table 2 of figures.xlsx",
        "output/report.md#¶2: “Revenue grew by 13 % to 4.2 million euros”",
        'It says "costs fell by a third in the same period".',
        'It says "Revenue grew by 12 % … the weakest quarter since 2019".',
        "报告写道“净利润同比下降百分之三十五点二”",
    ],
)
def test_section_4_what_is_not_there_does_not_resolve(pack, evidence):
    assert not pack.resolves(evidence)


def test_section_4_an_address_that_was_cut_is_not_there(pack_of):
    pack = pack_of({"long.md": "\n\n".join(f"Paragraph {n} " + "word " * 30 for n in range(400))}, tokens=2000)
    assert pack.resolves("output/long.md#¶1")
    assert pack.resolves("output/long.md#¶400")
    assert not pack.resolves("output/long.md#¶200")


def test_section_4_a_quote_across_the_pieces_of_a_long_paragraph_resolves(pack_of):
    text = " ".join(f"word{n}" for n in range(2000))
    pack = pack_of({"long.md": text})
    assert len(pack.extracts[0].units) > 5
    assert all(pack.resolves(f'It says "{text[start : start + 60]}"') for start in range(0, len(text) - 60, 97))


@pytest.mark.parametrize("piece", ["x", "x.y", "/", "a.md.", "¶1-", "row 1 to ", "$.a", '$["', '"a ', "“a", "no ", "1"])
def test_a_citation_that_never_ends_is_looked_up_in_linear_time(pack, piece):
    start = time.perf_counter()
    pack.resolves(piece * 50_000)
    assert time.perf_counter() - start < 10  # well under a second; from each letter anew it would be minutes
