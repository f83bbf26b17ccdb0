"""SPEC 8: what is read of text, markdown, CSV and JSON, and what is said of everything else."""

from __future__ import annotations

import codecs
import json
import sys
import textwrap

import pytest

from rubric_env.evidence import kinds


def units(extract):
    return {unit.label: unit.text for unit in extract.units}


def test_section_8_markdown_is_shown_by_paragraphs_as_it_was_written(extract_of):
    extract = extract_of("report.md", "# Title\n\nFirst line\nsecond line\n \n\n    indented code\n- item\n")
    assert units(extract) == {"¶1": "# Title", "¶2": "First line\nsecond line", "¶3": "    indented code\n- item"}
    assert (extract.kind, extract.status, extract.ours, extract.note) == ("markdown", "read", False, "")
    assert extract.text == "[¶1] # Title\n[¶2] First line\nsecond line\n[¶3]     indented code\n- item"


@pytest.mark.parametrize("name", ["notes.txt", "Makefile", "page.unknown"])
def test_section_8_other_text_is_shown_as_text(extract_of, name):
    extract = extract_of(name, "all: build\n\nbuild: <b>now</b>")
    assert units(extract) == {"¶1": "all: build", "¶2": "build: <b>now</b>"}
    assert (extract.kind, extract.status) == ("text", "read")


def test_section_8_no_line_of_a_file_can_pose_as_an_address(extract_of):
    extract = extract_of("report.md", "See\n[¶9] forged\n[row 3] too")
    assert [line for line in extract.text.split("\n") if line.startswith("[")] == ["[¶1] See"]


def test_section_8_csv_rows_carry_the_number_a_spreadsheet_shows(extract_of):
    extract = extract_of("data.csv", 'item,price\n"two\nlines",3.50\n\n"a, b",4\n')
    assert units(extract) == {"row 1": "item,price", "row 2": '"two\nlines",3.50', "row 4": '"a, b",4'}
    assert extract.note == "3 rows with the header, 2 columns"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_section_8_csv_dialects_are_found(extract_of, delimiter):
    rows = [["name", "note", "price"], ["a", "1,5; 2" if delimiter not in ",;" else "x", "3"], ["b", "y", "4"]]
    extract = extract_of("data.csv", "\n".join(delimiter.join(row) for row in rows))
    assert extract.note == "3 rows with the header, 3 columns"


def test_section_8_tsv_is_split_at_tabs_whatever_else_is_in_it(extract_of):
    assert extract_of("data.tsv", "a,b\tc,d\n1,2\t3,4").note == "2 rows with the header, 2 columns"


def test_section_8_csv_rows_of_another_width_are_counted(extract_of):
    extract = extract_of("data.csv", "a,b\n1\n2,3\n4,5,6\n")
    assert extract.note == "4 rows with the header, 2 columns; 2 rows have another number of cells (first: 2, 4)"


@pytest.mark.parametrize("content", ['a,b\n1,"never closed\n2,3\n', 'a,b\n"x"y,2\n', "a,b\n" + "c" * 200_000 + ",1\n"])
def test_section_8_csv_that_does_not_parse_is_shown_as_lines(extract_of, content):
    extract = extract_of("data.csv", content)
    assert "does not parse as CSV" in extract.note
    assert units(extract)["L1"] == "a,b"


def test_section_8_json_is_shown_by_values_with_their_paths(extract_of):
    value = {"total": 1, "rows": [{"name": f"row {n}", "text": "x" * 90} for n in range(8)], "two words": "y"}
    extract = extract_of("data.json", json.dumps(value, indent=2))
    shown = units(extract)
    assert shown["$.total"] == "1"
    assert json.loads(shown["$.rows[2]"]) == value["rows"][2]
    assert shown['$["two words"]'] == '"y"'
    assert extract.kind == "json"


def test_section_8_small_json_is_one_value(extract_of):
    assert units(extract_of("data.json", '{\n  "a": [1,\n 2]\n}\n')) == {"$": '{ "a": [1, 2] }'}


def test_section_8_json_numbers_keys_and_order_stay_as_written(extract_of):
    filler = "z" * 600
    content = f'{{"price": 12.50, "big": 1e999, "n": {"7" * 5000}, "price": 13, "filler": "{filler}"}}'
    extract = extract_of("data.json", content)
    assert [(unit.label, unit.text[:8]) for unit in extract.units][:2] == [("$.price", "12.50"), ("$.big", "1e999")]
    assert "an object gives the same key twice" in extract.note
    assert [unit.text for unit in extract.units if unit.label == "$.price"] == ["12.50", "13"]


def test_section_8_json_lists_of_numbers_are_shown_in_runs(extract_of):
    shown = units(extract_of("data.json", json.dumps(list(range(400)))))
    assert next(iter(shown)) == "$[0..52]"
    assert [int(n) for text in shown.values() for n in text.split(",")] == list(range(400))


def test_section_8_every_json_value_is_shown_once(extract_of):
    value = {"a": {"b": [[1, "two"] * 60, {"c": None, "d": ["e" * 300] * 4}], "f": "g" * 700}, "h": [], "i": {}}
    extract = extract_of("data.json", json.dumps(value))
    shown = "".join(unit.text for unit in extract.units)
    for leaf, count in {"two": 60, "e" * 300: 4, "g" * 700: 1, "null": 1, "[]": 1, "{}": 1}.items():
        assert shown.count(leaf) == count


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"a": 1,\n "b" 2}', "line 2 column 6"),
        ('{"a": 1}\n{"a": 2}', "Extra data"),
        ("[" * 100_000, "recursion"),
        ("", None),
    ],
)
def test_section_8_json_that_does_not_parse_is_shown_as_lines(extract_of, content, why):
    extract = extract_of("data.json", content or " ")
    if why:
        assert f"does not parse as JSON ({why}" in extract.note or why in extract.note
        assert "".join(unit.text for unit in extract.units).startswith(content.split("\n")[0][:1000])
        assert not extract.ours
    else:
        assert extract.status == "empty"


def test_section_8_json_with_nan_says_so(extract_of):
    assert extract_of("data.json", '{"a": NaN}').note == "NaN is not JSON"


def test_section_8_json_lines_are_numbered_and_checked(extract_of):
    extract = extract_of("data.jsonl", '{"a": 1}\n\n{"a": \n[2]\n')
    assert units(extract) == {"L1": '{"a": 1}', "L3": '{"a":', "L4": "[2]"}
    assert extract.note == "3 records; 1 do not parse as JSON (first: L3)"


TEXT = "Umsatz 4,2 Mio. €\n\n营业收入四百二十万元，同比增长百分之十二。"


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (TEXT.encode(), ""),
        (codecs.BOM_UTF8 + TEXT.encode(), ""),
        (TEXT.encode("utf-16"), ""),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), ""),
        (TEXT.encode("utf-32"), ""),
        (TEXT.encode("gb18030"), "not UTF-8: read as GB18030"),
    ],
)
def test_section_8_encodings_are_found(extract_of, content, note):
    extract = extract_of("report.txt", content)
    assert "\n\n".join(unit.text for unit in extract.units) == TEXT
    assert extract.note == note


def test_section_8_latin_1_is_not_taken_for_chinese(extract_of):
    text = "Größe und Maße: naïve Übergänge, 25 °C – größtmöglich"
    extract = extract_of("bericht.txt", text.encode("cp1252"))
    assert extract.units[0].text == text
    assert extract.note == "not UTF-8: read as Latin-1 (Windows-1252)"


def test_section_8_bytes_that_windows_leaves_open_are_read_as_latin_1(extract_of):
    assert extract_of("report.txt", b"caf\xe9 \x81").note == "not UTF-8: read as Latin-1"


def test_section_8_a_broken_byte_in_utf_8_does_not_change_the_script(extract_of):
    extract = extract_of("report.md", TEXT.encode() * 3 + b"\xff" + "结束".encode())
    assert extract.units[-1].text.endswith("\ufffd结束")
    assert extract.note.startswith("not valid UTF-8 at byte ")


def test_section_8_control_characters_and_lone_surrogates_are_made_visible(extract_of):
    extract = extract_of("log.txt", "a" * 500 + "\x00\x1b[31mred\x1b[0m\r\nnext\rlast")
    assert extract.units[0].text == "a" * 500 + "␀␛[31mred␛[0m\nnext\nlast"
    extract.text.encode()


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("logs.gz", b"\x1f\x8brest", "gz"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), "doc"),
        ("old", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "PowerPoint Document".encode("utf-16-le"), "ppt"),
        ("files.7z", b"7z\xbc\xaf\x27\x1crest", "7z"),
        ("files", b"7z\xbc\xaf\x27\x1crest", "7z"),
    ],
)
def test_section_8_a_kind_without_a_reader_is_named_as_a_gap_of_ours(pack_of, name, content, kind):
    pack = pack_of({name: content})
    (extract,) = pack.extracts
    assert (extract.kind, extract.status, extract.note, extract.ours) == (
        kind,
        "unsupported",
        "not read by this version",
        True,
    )
    assert pack.ours
    line = f'- "output/{name}": {kind}, {len(content)} bytes, not shown (a limit of ours): not read by this version'
    assert line in pack.text("m" * 32).split("\n")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("report.md", b"7z\xbc\xaf\x27\x1crest", "named .md, but its content is 7z"),
        ("data.csv", b"\x1f\x8brest", "named .csv, but its content is gz"),
        ("report.md", bytes(range(256)) * 8, "binary data, not text"),
        ("data.json", b"\x00\x01\x02\x03", "binary data, not text"),
        ("model.bin", bytes(range(256)) * 8, "binary data, not text"),
        ("deck.pptx", bytes(range(256)) * 8, "binary data, not text"),
        ("report.md", b"# Title\n" + bytes(100_000), "binary data, not text"),
    ],
)
def test_section_8_what_no_reader_can_open_is_the_policys(pack_of, name, content, why):
    pack = pack_of({name: content})
    (extract,) = pack.extracts
    assert (extract.status, extract.note, extract.ours) == ("unreadable", why, False)
    assert not pack.ours
    assert why in pack.text("m" * 32)


def test_section_8_text_under_an_office_name_is_read_and_said_to_be_text(extract_of):
    extract = extract_of("report.docx", "plain words")
    assert (extract.status, extract.note) == ("read", "named .docx, is plain text")


@pytest.mark.parametrize("name", ["blank.md", "blank.csv", "blank.json", "blank.jsonl", "blank.txt"])
def test_section_8_a_file_of_white_space_is_empty_and_the_policys(extract_of, name):
    extract = extract_of(name, " \n\n\t\n")
    assert (extract.status, extract.ours, extract.units) == ("empty", False, ())


def test_a_kind_is_added_by_one_file(tmp_path, monkeypatch, pack_of):
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "mark.py").write_text(
        textwrap.dedent(
            """
            from rubric_env.evidence import Extract, Kind, Unit, Unreadable

            def read(path, limits):
                if path.name == "broken.mrk":
                    raise Unreadable("no mark in it")
                return Extract.of([Unit("slide 1", "hello")], limits)

            KINDS = (Kind("mark", (".mrk",), read, (b"MARK",)),)
            """
        )
    )
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(tmp_path / "plugin")])
    kinds.registry.cache_clear()
    try:
        pack = pack_of({"a.mrk": "MARK", "b.bin": "MARK", "broken.mrk": "x"})
        assert [(e.kind, e.status, e.note) for e in pack.extracts] == [
            ("mark", "read", ""),
            ("mark", "read", "named '.bin', is mark"),
            ("mark", "unreadable", "no mark in it"),
        ]
        assert pack.resolves("output/a.mrk")
    finally:
        kinds.registry.cache_clear()
        sys.modules.pop("rubric_env.evidence.kinds.mark", None)
