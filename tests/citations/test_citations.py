"""Citations in the forms that reports use, each with its verdict and why (docs/citations.md)."""

from __future__ import annotations

import pytest

from rubric_env.citations import Corpus, check_all, check_citations

LIST = """
## Sources

1. Kettle survey. https://kettles.example.org/survey/2024?year=2024
2. Press release, https://makers.example.com/news/kettles.
3. A page elsewhere: https://elsewhere.example.net/page
"""


def verdicts(text: str, corpus: Corpus) -> list[tuple[str, str, str]]:
    return [(c.text, c.verdict, c.document) for c in check_citations(text, corpus).citations]


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("As [the survey](https://kettles.example.org/survey/2024?year=2024) says.", None),
        ('As [the survey](<https://kettles.example.org/survey/2024?year=2024> "Survey") says.', None),
        ("See https://kettles.example.org/survey/2024?year=2024.", "https://kettles.example.org/survey/2024?year=2024"),
        (
            "(see <http://www.kettles.example.org/survey/2024/?year=2024>)",
            "http://www.kettles.example.org/survey/2024/?year=2024",
        ),
        (
            "参见https://kettles.example.org/survey/2024?year=2024。",
            "https://kettles.example.org/survey/2024?year=2024",
        ),
        ("Old kettles use more [KS-01].", "[KS-01]"),
        ("Old kettles use more (KS-01).", "(KS-01)"),
        ("旧水壶更费电【KS-01】。", "【KS-01】"),
        ("旧水壶更费电（来源：KS-01）。", "（来源：KS-01）"),
        ("As [the survey](KS-01.md) says.", "[the survey](KS-01.md)"),
        ("Old kettles use more [^k].\n\n[^k]: https://kettles.example.org/survey/2024?year=2024", "[^k]"),
        ("Old kettles use more [^1].\n\n[^1]: Kettle survey,\n    KS-01", "[^1]"),
        ("Old kettles use more [survey][k].\n\n[k]: https://kettles.example.org/survey/2024?year=2024", "[k]"),
        ("Old kettles use more [1].\n\n## References\n\n[1] Kettle survey 2024, the agency.", "[1]"),
        ("Old kettles use more [1].\n\n**Sources**\n- [1] `KS-01`", "[1]"),
        (
            "Old kettles use more [1].\n\nSources:\n1) Kettle agency\n   https://kettles.example.org/survey/2024?year=2024",
            "[1]",
        ),
        ("Old kettles use more [1].\n\n### Works cited\n\n| 1 | survey | KS-01 |", "[1]"),
        ("旧水壶更费电【1】。\n\n## 参考资料\n\n【1】水壶调查，KS-01", "【1】"),
        ("旧水壶更费电［1］。\n\n六、参考文献：\n[1] KS-01", "［1］"),
        ("Old kettles use more 【1†L3-L9】.\n\n# Sources\n1. KS-01", "【1†L3-L9】"),
    ],
)
def test_a_citation_in_any_usual_form_leads_into_the_corpus(corpus: Corpus, text: str, mark: str | None) -> None:
    [(found, verdict, document)] = verdicts(text, corpus)
    assert (verdict, document) == ("resolved", "KS-01")
    assert mark is None or found == mark


def test_lists_and_ranges_of_numbers_are_citations_each(corpus: Corpus) -> None:
    report = check_citations(f"A [1, 2]. B [1–3]. C [2][3]. D [1；2].{LIST}", corpus)
    assert [c.key for c in report.citations] == [
        *("KS-01", "KS-02"),
        *("KS-01", "KS-02", report.citations[4].key),
        *("KS-02", report.citations[6].key),
        *("KS-01", "KS-02"),
    ]
    assert report.citations[4].verdict == "unresolved"


def test_a_chinese_text_may_follow_an_address_without_a_space(corpus: Corpus) -> None:
    found = verdicts(
        "据https://makers.example.com/news/kettles的说法，见 https://shuihu.example.cn/报告/2024 。", corpus
    )
    assert [document for _, _, document in found] == ["KS-02", "KS-03"]
    assert verdicts("https://shuihu.example.cn/%E6%8A%A5%E5%91%8A/2024", corpus)[0][2] == "KS-03"


def test_what_leads_nowhere_is_told_apart(corpus: Corpus) -> None:
    report = check_citations(f"A [3]. B [9]. C [KS-07]. D https://elsewhere.example.net/other.{LIST}", corpus)
    assert [(c.text, c.verdict) for c in report.citations] == [
        ("[3]", "unresolved"),
        ("[9]", "dangling"),
        ("[KS-07]", "unresolved"),
        ("https://elsewhere.example.net/other", "unresolved"),
    ]
    assert [c.line for c in report.citations] == [1, 1, 1, 1]
    assert "says nothing about whether it exists" in report.citations[3].why
    assert report.citations[1].why == "the list of sources has no entry 9"


def test_a_number_without_any_list_dangles(corpus: Corpus) -> None:
    report = check_citations("Old kettles use more [1].", corpus)
    assert [(c.verdict, c.why) for c in report.citations] == [("dangling", "there is no list of sources")]


@pytest.mark.parametrize(
    "text",
    [
        "The interval is [12, 31] and the range [0, 1].",
        "In [2024] it was [sic] not so [emphasis added], and - [x] done.",
        "`xs[1]` and\n\n```python\nprint(xs[1], 'https://makers.example.com/news/kettles')\n```\n",
        "![a picture](https://makers.example.com/news/kettles)",
        "See [above](#results) or write to [us](mailto:a@example.org).",
        "The price (100 pounds) rose (see below) in a year (2024).",
        "<!-- [1] -->",
    ],
)
def test_what_only_looks_like_a_citation_is_none(corpus: Corpus, text: str) -> None:
    assert verdicts(text + LIST, corpus) == []


def test_a_report_in_a_markdown_fence_or_a_fence_that_never_closes_is_no_code(corpus: Corpus) -> None:
    assert len(verdicts("```markdown\nOld kettles use more [KS-01].\n```", corpus)) == 1
    assert len(verdicts("```\nx\n\nOld kettles use more [KS-01].", corpus)) == 1


def test_the_list_of_sources_is_no_citation_and_says_what_is_never_cited(corpus: Corpus) -> None:
    report = check_citations(f"Old kettles use more [1].{LIST}", corpus)
    assert [(s.label, s.document, s.cited) for s in report.sources] == [
        ("1", "KS-01", True),
        ("2", "KS-02", False),
        ("3", "", False),
    ]
    assert [s.line for s in report.sources] == [4, 5, 6]


def test_a_list_of_bullets_or_of_ones_is_read_too(corpus: Corpus) -> None:
    bullets = check_citations(
        "More [KS-01].\n\n## Sources\n\n- [KS-01] Survey\n- [Release](https://makers.example.com/news/kettles)", corpus
    )
    assert [(s.document, s.cited) for s in bullets.sources] == [("KS-01", True), ("KS-02", False)]
    ones = check_citations("More [2].\n\n## Sources\n\n1. KS-02\n1. KS-01\n", corpus)
    assert [c.document for c in ones.citations] == ["KS-01"]


def test_a_section_about_sources_is_not_a_list_and_a_list_ends_at_the_next_heading(corpus: Corpus) -> None:
    text = "## Sources of funding\n\n- The agency paid [KS-01].\n\n## Sources\n\n1. KS-02\n\n## Annex\n\nMore [1]."
    assert [(c.text, c.document) for c in check_citations(text, corpus).citations] == [
        ("[KS-01]", "KS-01"),
        ("[1]", "KS-02"),
    ]


def test_a_list_after_each_chapter_counts_from_one_again(corpus: Corpus) -> None:
    text = "A [1].\n\n### Sources\n\n1. KS-01\n\n## Two\n\nB [1].\n\n### Sources\n\n1. KS-02\n"
    assert [c.document for c in check_citations(text, corpus).citations] == ["KS-01", "KS-02"]


def test_the_score_is_zero_without_a_citation_and_one_when_all_is_right(corpus: Corpus) -> None:
    assert check_citations("No source at all." + LIST, corpus).score == 0.0
    assert check_citations("", corpus).score == 0.0
    assert check_citations("A [KS-01]. B [KS-02]. C [KS-03].", corpus).score == 1.0


def test_repeating_a_good_citation_gains_nothing(corpus: Corpus) -> None:
    once = check_citations("A [KS-01]. B [KS-09].", corpus).score
    many = check_citations("A [KS-01]. " * 50 + "B [KS-09].", corpus).score
    other_forms = check_citations(
        "[KS-01] (KS-01) https://kettles.example.org/survey/2024?year=2024 [KS-09].", corpus
    ).score
    assert once == many == other_forms == pytest.approx(1 / 2 * 1 / 3)


def test_each_invented_source_lowers_the_score_once(corpus: Corpus) -> None:
    good = "A [KS-01]. B [KS-02]. C [KS-03]. "
    assert check_citations(good + "D [KS-08]. " * 9, corpus).score == pytest.approx(3 / 4)
    assert check_citations(good + "D [KS-08], [KS-09].", corpus).score == pytest.approx(3 / 5)


def test_several_reports_count_as_one(corpus: Corpus) -> None:
    report = check_all([("a.md", "A [KS-01]."), ("b.md", "B [KS-02]. C [KS-01] [KS-03].")], corpus)
    assert (report.name, len(report.citations), report.documents, report.score) == (
        "a.md, b.md",
        4,
        ("KS-01", "KS-02", "KS-03"),
        1.0,
    )
    assert check_all([], corpus).score == 0.0


def test_the_json_form_names_each_citation_with_its_place_and_why(corpus: Corpus) -> None:
    shown = check_citations("A [KS-01].\n\nB [KS-09].", corpus).to_json(seen=["KS-02"])
    assert shown["totals"] == {"citations_resolved": 1, "citations_unresolved": 1}
    assert shown["unopened"] == ["KS-01"]
    assert shown["citations"][1] == {
        "text": "[KS-09]",
        "line": 3,
        "verdict": "unresolved",
        "document": "",
        "why": "no document of the corpus is called KS-09",
    }


@pytest.mark.parametrize(
    "text",
    [
        "[a[a]" * 40_000,
        "https://a/" + ")" * 200_000,
        '"' * 200_000,
        "```\n" * 50_000,
        "# Sources\n[1] https://x.y\n" * 7_000,
    ],
    ids=["brackets", "parentheses", "quotes", "fences", "lists"],
)
def test_a_hostile_text_is_read_within_seconds(corpus: Corpus, text: str) -> None:
    import time

    start = time.process_time()
    check_citations(text, corpus)
    assert time.process_time() - start < 5
