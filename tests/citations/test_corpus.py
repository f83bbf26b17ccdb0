"""The documents of a research task: read, named by their faults, found and searched."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubric_env.citations import Corpus, CorpusError, corpus_problems, load_corpus
from rubric_env.citations._address import normal_url
from tests.citations.conftest import DOCUMENTS, make_corpus

Make = Callable[[dict[str, str]], Path]


def test_without_an_index_ids_are_file_names_and_titles_their_first_lines(folder: Make) -> None:
    corpus = Corpus.read(folder({"a.md": "\n# The **first**\n\nText", "sub/b.txt": "Second line", ".hidden": "no"}))
    assert [(document.id, document.title) for document in corpus] == [
        ("a.md", "The **first"),
        ("sub/b.txt", "Second line"),
    ]
    found = corpus.find("SUB/B")
    assert found and found.id == "sub/b.txt"


@pytest.mark.parametrize(
    "key",
    [
        "KS-01",
        "ks-01",
        " KS-01 ",
        "KS-01.md",
        "https://www.kettles.example.org/survey/2024?year=2024",
        "http://kettles.example.org:80/survey/2024/?utm_source=mail&year=2024#page-3",
        "KETTLES.example.org/survey/2024?year=2024",
    ],
)
def test_a_document_is_found_by_its_id_its_file_and_every_spelling_of_its_address(corpus: Corpus, key: str) -> None:
    found = corpus.find(key)
    assert found and found.id == "KS-01"


@pytest.mark.parametrize("key", ["", "KS-1", "https://kettles.example.org/Survey/2024?year=2024", "https://[broken"])
def test_what_is_not_there_is_not_found(corpus: Corpus, key: str) -> None:
    assert corpus.find(key) is None


def test_percent_encoding_and_punycode_make_no_difference() -> None:
    assert normal_url("https://xn--bcher-kva.example/a%C3%A4") == normal_url("http://bücher.example/aä/")
    assert normal_url("https://a.example/?b=1&a=2") == normal_url("https://a.example?a=2&b=1")
    assert normal_url("https://a.example:8080/") != normal_url("https://a.example/")
    assert normal_url("ftp://a.example/") == ""


def test_all_that_is_wrong_with_a_corpus_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret")
    root = make_corpus(tmp_path / "corpus", DOCUMENTS)
    (root / "picture.md").write_bytes(b"\x00\x01\x02\x03" * 200)
    lines = [
        "{no json",
        "[]",
        json.dumps({"id": "KS-01", "file": "KS-01.md"}),
        json.dumps({"id": "ks-01", "file": "KS-02.md"}),
        json.dumps({"id": "gone", "file": "gone.md"}),
        json.dumps({"id": "out", "file": "../outside.md"}),
        json.dumps({"id": 3, "file": "KS-02.md"}),
        json.dumps({"id": "more", "file": "KS-02.md", "author": "x"}),
        json.dumps({"id": "binary", "file": "picture.md"}),
    ]
    (root / "index.jsonl").write_text("\n".join(lines))
    with pytest.raises(CorpusError) as caught:
        Corpus.read(root)
    said = str(caught.value)
    assert str(root) in said and "\n" not in said
    for part in (
        "line 1:",
        "line 2: no JSON object",
        "'ks-01' is there twice",
        "no file gone.md",
        "../outside.md lies outside the corpus",
        "id 3 is no text",
        "unknown 'author'",
        "picture.md: binary data",
    ):
        assert part in said
    assert len(corpus_problems(root)) == 7


@pytest.mark.parametrize("index", [None, "", "\n\n"])
def test_an_empty_corpus_is_broken(tmp_path: Path, index: str | None) -> None:
    if index is not None:
        (tmp_path / "index.jsonl").write_text(index)
    with pytest.raises(CorpusError, match="no document in it"):
        Corpus.read(tmp_path)
    assert corpus_problems(tmp_path) == [f"{tmp_path}: no document in it"]


def test_pages_are_read_as_a_reader_sees_them(folder: Make) -> None:
    page = "<html><title>Kettles</title><body><p>Seen <b>here</b></p><p hidden>unseen</p><!-- unseen --></body></html>"
    [document] = Corpus.read(folder({"page.html": page}))
    assert "Seen here" in document.text and "unseen" not in document.text


def test_rank_title_before_text_and_rare_words_before_common_ones(folder: Make) -> None:
    files = {f"{n}.md": f"# Note {n}\n\nA kettle and a cup of tea." for n in range(5)}
    corpus = Corpus.read(
        folder({**files, "x.md": "# Other\n\nLimescale in a kettle.", "y.md": "# Limescale\n\nOn tea."})
    )
    assert [document.id for document, _ in corpus.search("limescale kettle", 2)] == ["y.md", "x.md"]
    assert {document.id for document, _ in corpus.search("kettles", 9)} == {*files, "x.md"}
    assert [document.id for document, _ in corpus.search("What is a note?", 1)] == ["0.md"]


def test_chinese_is_found_by_parts_of_a_sentence(corpus: Corpus) -> None:
    [(document, hit)] = corpus.search("水垢的影响", 5)
    assert document.id == "KS-03"
    assert "水垢" in hit.snippet
    first, *_ = corpus.search("老旧水壶 kettle electricity", 5)
    assert first[0].id == "KS-03"
    assert corpus.search("火星移民", 5) == []


def test_a_snippet_shows_the_passage_with_most_of_the_query(folder: Make) -> None:
    text = (
        "limescale. "
        + "filler words go on and on. " * 60
        + "Here limescale raises electricity use by a third. "
        + "x " * 400
    )
    [(_, hit)] = Corpus.read(folder({"a.md": text})).search("limescale electricity", 1)
    assert "Here limescale raises electricity use" in hit.snippet
    assert hit.snippet.startswith("…") and hit.snippet.endswith("…") and len(hit.snippet) <= 302


@given(
    st.text(max_size=60)
    | st.sampled_from(['a" OR b', "NEAR(a b)", "title : x", "a*", "^a", "(", "-", "a AND", "\0", '"'])
)
@settings(max_examples=200, deadline=None)
def test_no_query_is_an_error(query: str) -> None:
    corpus = _tiny()
    assert len(corpus.search(query, 3)) <= 3


_known: list[Corpus] = []


def _tiny() -> Corpus:
    if not _known:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            _known.append(Corpus.read(make_corpus(Path(folder), DOCUMENTS)))
    return _known[0]


def test_a_corpus_is_read_once_however_many_ask_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, read, reads = make_corpus(tmp_path / "corpus", DOCUMENTS), Corpus.read, []

    def counted(folder: Path) -> Corpus:
        reads.append(folder)
        return read(folder)

    monkeypatch.setattr(Corpus, "read", counted)
    with ThreadPoolExecutor(16) as pool:
        loaded = list(pool.map(load_corpus, [root] * 64))
        results = list(pool.map(lambda corpus: corpus.search("kettle", 3), loaded))
    assert len(reads) == 1 and len({id(corpus) for corpus in loaded}) == 1
    assert all(result == results[0] for result in results)


def test_a_corpus_that_was_broken_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(CorpusError):
        load_corpus(tmp_path)
    (tmp_path / "a.md").write_text("# There now")
    assert len(load_corpus(tmp_path)) == 1
