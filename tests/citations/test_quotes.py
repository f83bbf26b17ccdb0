"""Quotations beside a citation: what must occur in a cited document, and what is no quotation."""

from __future__ import annotations

import time

import pytest

from rubric_env.citations import Corpus, check_citations

TRUE = "use a third more electricity than new ones, mostly because of limescale"
FALSE = "old kettles are the greatest danger in every single kitchen of the country"


def quotes(text: str, corpus: Corpus) -> list[tuple[str, tuple[str, ...]]]:
    return [(quote.verdict, quote.documents) for quote in check_citations(text, corpus).quotes]


@pytest.mark.parametrize(
    "text",
    [
        f'Old kettles "{TRUE}" [KS-01].',
        f"Old kettles “{TRUE}.” [KS-01]",
        f"Old kettles «{TRUE}» [KS-01].",
        f"Old kettles „{TRUE}“ [KS-01].",
        "Old kettles “use **a third** more electricity than\nnew ones, mostly because of lime-scale” [KS-01].",
        "“Old kettles — the agency writes — use a third more electricity than new ones” [KS-01].",
        "“Of 1200 households 38.5 % own a kettle that is older than ten years” [KS-01].",
        "“Of 1,200 households … own a kettle that is older than ten years” [KS-01].",
        "“[They] use a third more electricity than new ones [...] because of limescale” [KS-01].",
        "调查说：“老旧水壶比新水壶多用三分之一的电，主要原因是水垢” [KS-03]。",
        "调查说：「老旧水壶比新水壶多用三分之一的电，……而不是功率」【KS-03】。",
        f"The survey says [KS-01]:\n\n> {TRUE}.",
        f"> {TRUE}.\n> — Kettle survey [KS-01]",
    ],
)
def test_a_quote_is_found_however_it_is_spelled(corpus: Corpus, text: str) -> None:
    [(verdict, documents)] = quotes(text, corpus)
    assert verdict == "found" and len(documents) == 1


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"The survey says “{FALSE}” [KS-01].", "not_found"),
        (f"The survey says “{TRUE}” [KS-02].", "misattributed"),
        (f"The survey says “{TRUE}” [KS-09].", "misattributed"),
        (f"The survey says “{FALSE}” [KS-09].", "unchecked"),
        (f"The survey says “{FALSE}” (https://elsewhere.example.net/page).", "unchecked"),
        ("“Of 1,200 households 3.85 % own a kettle that is older than ten years” [KS-01].", "not_found"),
        ("“200 households 38.5 % own a kettle that is older than ten years” [KS-01].", "not_found"),
        ("“mostly because of limescale … Of 1,200 households 38.5 % own a kettle” [KS-01].", "not_found"),
        ("调查说：“老旧水壶比新水壶多用一半的电，主要原因是功率太大” [KS-03]。", "not_found"),
        ("调查说：“老旧水壶比新水壶多用三分之一的电，主要是因为水垢” [KS-01]。", "unchecked"),
        (f"> Old kettles: {FALSE}.\n> — Kettle survey [KS-01]", "not_found"),
    ],
)
def test_a_quote_that_no_cited_document_has_is_told_apart(corpus: Corpus, text: str, verdict: str) -> None:
    assert [found for found, _ in quotes(text, corpus)] == [verdict]


@pytest.mark.parametrize(
    "text",
    [
        "The “kettle problem” and the so-called “danger in every kitchen” [KS-01].",
        "The report “Kettles and Other Dangers in Every Single Kitchen of This Country” [KS-01].",
        f"A chapter titled “{FALSE}” [KS-01].",
        f"I imagine a reader who says “{FALSE}”, and nobody is cited.",
        f"```\nprint('“{FALSE}”') [KS-01]\n```",
        f'A 5" kettle and {FALSE} a 7" kettle [KS-01].',
        f'An odd " mark, {FALSE}, in the paragraph [KS-01].',
        f'it said" {FALSE} "and so on [KS-01].',
        f"> **Note:** {FALSE} [KS-01].",
        f"> {FALSE} [KS-01].",
        "“one … two … three … four … five … six … seven … eight … nine” [KS-01].",
        f"## “{FALSE}” [KS-01]",
    ],
)
def test_nobody_is_accused_of_a_quotation_that_is_none(corpus: Corpus, text: str) -> None:
    assert quotes(text, corpus) == []


def test_short_straight_quotes_do_not_swallow_what_stands_between_them(corpus: Corpus) -> None:
    text = f'The "old" ones are, {FALSE}, called "bad" [KS-01].'
    assert quotes(text, corpus) == []


def test_a_citation_anywhere_in_the_paragraph_row_or_item_serves_the_quote(corpus: Corpus) -> None:
    text = f"As KS says [KS-02], old kettles “{TRUE}”. This costs money [KS-01]."
    assert quotes(text, corpus) == [("found", ("KS-02", "KS-01"))]
    assert quotes(f"| quote | “{TRUE}” | [KS-01] |\n| other | x | [KS-02] |", corpus) == [("found", ("KS-01",))]
    assert quotes(f"- “{TRUE}” [KS-01]\n- x [KS-02]", corpus) == [("found", ("KS-01",))]


def test_the_score_multiplies_and_counts_one_quote_once(corpus: Corpus) -> None:
    sources = "A [KS-01]. B [KS-02]. C [KS-03].\n\n"
    true, false = f"“{TRUE}” [KS-01].\n\n", f"“{FALSE}” [KS-01].\n\n"
    assert check_citations(sources + true, corpus).score == 1.0
    assert check_citations(sources + true + false, corpus).score == pytest.approx(1 / 2)
    assert check_citations(sources + true * 20 + false, corpus).score == pytest.approx(1 / 2)
    assert check_citations(sources + false, corpus).score == 0.0


def test_a_quote_of_nothing_but_empty_lines_takes_no_time(corpus: Corpus) -> None:
    started = time.process_time()
    check_citations(">\n" * 100_000, corpus)
    assert time.process_time() - started < 5
