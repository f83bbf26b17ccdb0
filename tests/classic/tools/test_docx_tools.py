"""make_docx and edit_docx: documents that look well made, edits at the addresses that read_file shows."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.oxml.ns import qn
from lxml import etree
from PIL import Image

from rubric_env.classic.tools import ToolRefusal, Workspace
from rubric_env.classic.tools._docx import edit_docx, make_docx
from rubric_env.classic.tools._files import read_file
from rubric_env.evidence import _workers
from rubric_env.evidence._workers import WorkerDied
from rubric_env.office import _run
from tests.classic.tools.office import pages, read, refusal
from tests.evidence.hostile.zips import flat
from tests.evidence.office import changed, saved, strict
from tests.heartbeat import the_loop_goes_on

PROC, WORKER = Path("/proc"), b"rubric_env.office._worker"

MARKDOWN = """---
title: Review of the Harbour Line
subtitle: For the board
header: Confidential
footer: Finance
---

# Summary

Revenue rose by **12 %**, *nearly* all at `night`; see the [report](https://example.com/?a=1&b=2).

1. First
   - inner **bold**
     - third level
2. Second

Between the lists.

1. Again first

| Quarter | Revenue |
|:--|--:|
| Q1 | 3,100 |
| Q2 | **4,200** |

> Set apart.

```
x = 1
```

![Rising bars](data/bars.png)

\\pagebreak

## 结论

收入增长。~~旧文~~ H<sub>2</sub>O
"""


def picture(workspace: Workspace, name: str = "data/bars.png", form: str = "PNG") -> None:
    path = workspace.root / name
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (900, 500), "#336699").save(path, form)


async def made(workspace: Workspace, markdown: str = MARKDOWN, path: str = "output/a.docx") -> Path:
    picture(workspace)
    await make_docx(workspace, path, markdown)
    return workspace.root / path


# --- make -------------------------------------------------------------------------------------------------------------


async def test_markdown_becomes_what_a_judge_reads(workspace: Workspace) -> None:
    units = read(await made(workspace))
    lines = [text for label, text in units.items() if label.startswith("¶")]
    assert lines[:4] == [
        "# Review of the Harbour Line",
        "For the board",
        "# Summary",
        "Revenue rose by 12 %, nearly all at night; see the report (https://example.com/?a=1&b=2).",
    ]
    assert {"- First", "- inner bold", "- third level", "## 结论", "[picture: Rising bars]", "x = 1"} <= set(lines)
    assert units["table 1/row 3"] == "Q2 | 4,200"
    assert units["header 1"] == "Confidential"
    assert units["footer 1"] == "Finance   |   Page 1"
    assert units["metadata/title"] == "Review of the Harbour Line"
    assert "metadata/creator" not in units


async def test_styles_are_real_ones(workspace: Workspace) -> None:
    document = docx.Document(str(await made(workspace)))
    styles = {paragraph.text: paragraph.style.name for paragraph in document.paragraphs}
    assert styles["Summary"] == "Heading 1"
    assert styles["First"] == "List Number"
    assert styles["inner bold"] == "List Bullet 2"
    assert styles["Set apart."] == "Block Quote"
    assert styles["x = 1"] == "Code"
    bold = [run.text for paragraph in document.paragraphs for run in paragraph.runs if run.bold]
    assert {"12 %", "bold"} <= set(bold)
    header = document.tables[0].rows[0]._tr
    assert header.find(f"{qn('w:trPr')}/{qn('w:tblHeader')}") is not None


async def test_each_ordered_list_counts_from_its_own_start(workspace: Workspace) -> None:
    document = docx.Document(str(await made(workspace, "1. a\n2. b\n\ntext\n\n5. c\n6. d\n")))
    items = [(p.text, p._p.find(f"{qn('w:pPr')}/{qn('w:numPr')}")) for p in document.paragraphs]
    numbers = {text: item.numId.val for text, item in items if item is not None}
    assert numbers["a"] == numbers["b"] != numbers["c"]
    numbering = document.part.numbering_part.element
    starts = {
        number.numId: number.find(f"{qn('w:lvlOverride')}/{qn('w:startOverride')}").get(qn("w:val"))
        for number in numbering.findall(qn("w:num"))
        if number.numId in (numbers["a"], numbers["c"])
    }
    assert starts == {numbers["a"]: "1", numbers["c"]: "5"}


async def test_equal_arguments_make_equal_bytes(workspace: Workspace) -> None:
    first = (await made(workspace)).read_bytes()
    await asyncio.sleep(2.1)  # zip containers keep times of two seconds
    assert (await made(workspace, path="output/b.docx")).read_bytes() == first


async def test_a_page_break_starts_a_new_page_in_libreoffice(workspace: Workspace) -> None:
    assert pages(await made(workspace, "one\n\n\\pagebreak\n\ntwo\n\n<!-- pagebreak -->\n\nthree")) == 3


async def test_settings_turn_the_page_and_leave_its_number_out(workspace: Workspace) -> None:
    path = await made(workspace, "---\nlandscape: yes\npage_numbers: no\n---\ntext")
    section = docx.Document(str(path)).sections[0]
    assert section.page_width > section.page_height
    assert "footer 1" not in read(path)


async def test_a_rule_is_no_front_matter(workspace: Workspace) -> None:
    assert "¶1" in read(await made(workspace, "---\n\nOne: two\n\n---\n"))


async def test_pictures_of_other_formats_are_converted(workspace: Workspace) -> None:
    picture(workspace, "data/a.webp", "WEBP")
    path = await made(workspace, "![w](data/a.webp)")
    with zipfile.ZipFile(path) as package:
        assert [name for name in package.namelist() if name.startswith("word/media/")] == ["word/media/image1.png"]


async def test_all_that_is_wrong_is_said_at_once_and_nothing_is_written(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "secret.png"
    Image.new("RGB", (2, 2)).save(outside)
    (workspace.root / "link.png").symlink_to(outside)
    (workspace.root / "not.png").write_text("text")
    told = await refusal(
        make_docx(
            workspace,
            "output/a.docx",
            "---\ncolour: red\nlandscape: perhaps\n---\n![a](no.png) ![b](../secret.png) ![c](link.png) ![d](not.png) "
            "![e](https://example.com/a.png)",
        )
    )
    for problem in (
        "unknown setting 'colour' at its start; there are title",
        "landscape is yes or no, not 'perhaps'",
        "picture no.png: no such file; list_files shows what there is",
        "picture ../secret.png: outside the workspace",
        "picture link.png: outside the workspace",
        "picture not.png: not a picture",
        "picture https://example.com/a.png: only pictures of the workspace",
    ):
        assert problem in told
    assert not (workspace.root / "output/a.docx").exists()


async def test_wrong_names_are_refused(workspace: Workspace) -> None:
    assert "ends in .docx" in await refusal(make_docx(workspace, "output/a.doc", "x"))
    assert "outside" in await refusal(make_docx(workspace, "../a.docx", "x"))
    assert "empty" in await refusal(make_docx(workspace, "output/a.docx", ""))


async def test_characters_that_no_file_holds_are_left_out(workspace: Workspace) -> None:
    assert read(await made(workspace, "a\x00b\x0bc\ud800d"))["¶1"].replace("�", "") == "abcd"


# --- edit -------------------------------------------------------------------------------------------------------------


def busy() -> bytes:
    """A document with all that makes counting hard."""
    document = docx.Document()
    document.add_paragraph("first")
    document.add_paragraph("")
    document.add_paragraph("second").add_run(" in bold").bold = True
    table = document.add_table(2, 2)
    table.cell(0, 0).text = "in a cell"
    table.cell(1, 1).add_table(1, 1).cell(0, 0).text = "nested"
    document.add_paragraph("third", style="List Bullet")
    document.add_paragraph("   ")
    document.add_heading("fourth", 2)
    document.add_paragraph("last")
    box = (
        '<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        '<mc:Choice xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" Requires="wps">'
        "<w:drawing><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:drawing></mc:Choice>"
        "<mc:Fallback><w:pict><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:pict>"
        "</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    control = "<w:sdt><w:sdtContent><w:p><w:r><w:t>controlled</w:t></w:r></w:p></w:sdtContent></w:sdt>"
    tracked = (
        '<w:p><w:ins w:id="1" w:author="A"><w:r><w:t>new</w:t></w:r></w:ins>'
        '<w:del w:id="2" w:author="A"><w:r><w:delText>old</w:delText></w:r></w:del></w:p>'
    )
    return changed(
        saved(document),
        {"word/document.xml": lambda text: text.replace("<w:sectPr", f"{box}{control}{tracked}<w:sectPr", 1)},
    )


async def test_every_address_that_a_reader_shows_is_the_one_that_is_changed(workspace: Workspace) -> None:
    path = workspace.root / "output/busy.docx"
    path.write_bytes(busy())
    before = read(path)
    wanted = {
        label: f"word {n}" for n, label in enumerate(one for one in before if one.startswith("¶") and "/" not in one)
    }
    assert len(wanted) >= 7
    told = await read_file(workspace, "output/busy.docx")
    for label, text in wanted.items():
        assert f"[{label}]" in told
        await edit_docx(workspace, "output/busy.docx", [{"action": "replace", "at": label, "text": text}])
    after = read(path)
    assert {label: after[label].lstrip("#- ") for label in wanted} == wanted
    assert after["¶3"] == "- word 2"
    assert after["table 1/row 1"] == before["table 1/row 1"]


async def test_an_edit_keeps_look_style_and_everything_else(workspace: Workspace) -> None:
    path = await made(workspace)
    before = dict(parts(path))
    await edit_docx(workspace, "output/a.docx", [{"action": "replace", "at": "¶3", "text": "In short"}])
    after = dict(parts(path))
    assert {name for name in before if before[name] != after.get(name)} == {"word/document.xml"}
    assert before.keys() == after.keys()
    document = docx.Document(str(path))
    assert next(one for one in document.paragraphs if one.text == "In short").style.name == "Heading 1"


def parts(path: Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as package:
        return [(name, canonical(package.read(name))) for name in package.namelist()]


def canonical(data: bytes) -> bytes:
    """Whatever two writers of the same XML do differently."""
    return etree.tostring(etree.fromstring(data), method="c14n") if data.startswith(b"<?xml") else data


async def test_a_run_that_was_bold_stays_bold(workspace: Workspace) -> None:
    document = docx.Document()
    document.add_paragraph().add_run("bold and large").bold = True
    document.save(workspace.root / "a.docx")
    await edit_docx(workspace, "a.docx", [{"action": "replace", "at": "¶1", "text": "new *words*"}])
    runs = docx.Document(str(workspace.root / "a.docx")).paragraphs[0].runs
    assert [(run.text, run.bold, run.italic) for run in runs] == [("new ", True, None), ("words", None, True)]


async def test_inserts_deletes_and_rows_use_the_addresses_of_the_file_as_it_was(workspace: Workspace) -> None:
    path = await made(workspace, "one\n\ntwo\n\nthree\n\n| a | b |\n|--|--|\n| 1 | 2 |\n| 3 | 4 |\n")
    await edit_docx(
        workspace,
        "output/a.docx",
        json.dumps(  # some models send their lists as text
            [
                {"action": "delete", "at": "¶1"},
                {"action": "insert_after", "at": "¶2", "text": "## After two\n\n- x\n- y"},
                {"action": "insert_after", "at": "¶2", "text": "and this"},
                {"action": "insert_before", "at": "¶3", "text": "before three"},
                {"action": "insert_after", "at": "table 1/row 3", "text": "5 | 1. six"},
                {"action": "replace", "at": "table 1/row 2", "text": "| one | a \\| b |"},
                {"action": "delete", "at": "table 1/row 3"},
            ]
        ),
    )
    units = read(path)
    assert [text for label, text in units.items() if label.startswith("¶")] == [
        "two",
        "## After two",
        "- x",
        "- y",
        "and this",
        "before three",
        "three",
    ]
    assert [units[f"table 1/row {n}"] for n in (1, 2, 3)] == ["a | b", "one | a | b", "5 | 1. six"]


async def test_words_are_found_across_runs_everywhere_and_in_one_place(workspace: Workspace) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("In 20")
    paragraph.add_run("2").bold = True
    paragraph.add_run("4 and 2024")
    document.add_paragraph("2024 stays")
    document.add_table(1, 1).cell(0, 0).text = "2024"
    document.sections[0].header.paragraphs[0].text = "Plan 2024"
    document.save(workspace.root / "a.docx")
    await edit_docx(workspace, "a.docx", [{"action": "replace", "at": "¶1", "find": "2024", "text": "2025"}])
    units = read(workspace.root / "a.docx")
    assert (units["¶1"], units["¶2"]) == ("In 2025 and 2025", "2024 stays")
    said = await edit_docx(workspace, "a.docx", [{"action": "replace", "find": "2024", "text": "2026"}])
    assert "3 changes" in said
    units = read(workspace.root / "a.docx")
    assert (units["¶2"], units["table 1/row 1"], units["header 1"]) == ("2026 stays", "2026", "Plan 2026")


async def test_all_problems_of_edits_are_named_and_the_file_stays(workspace: Workspace) -> None:
    path = await made(workspace)
    before = path.read_bytes()
    told = await refusal(
        edit_docx(
            workspace,
            "output/a.docx",
            [
                {"action": "replace", "at": "¶1", "text": "fine"},
                {"action": "replace", "at": "¶99", "text": "x"},
                {"action": "replace", "at": "¶2"},
                {"action": "replace", "find": "nowhere", "text": "x"},
                {"action": "replace", "at": "table 1/row 2", "text": "one cell"},
                {"action": "delete"},
                {"action": "insert_after", "at": "header 1", "text": "x"},
            ],
        )
    )
    for problem in (
        "edit 2: '¶99' is no address of this file; near it are",
        "edit 3: replace needs `text`",
        "edit 4: 'nowhere' does not occur in the document",
        "edit 5: the row has 2 cells and `text` 1",
        "edit 6: it needs `at`",
        "edit 7: a header or footer can be replaced or deleted",
    ):
        assert problem in told
    assert path.read_bytes() == before


async def test_arguments_of_the_wrong_form_are_named(workspace: Workspace) -> None:
    await made(workspace)
    edits: Any = [{"action": "replce", "at": 12, "txt": "x"}, "word"]
    told = await refusal(edit_docx(workspace, "output/a.docx", edits))
    assert "edit 1: action: Input should be 'replace'" in told
    assert "edit 1: unknown key txt; there are action, at, find, text" in told
    assert "edit 2:" in told
    wrong: Any = 5
    assert "a list is wanted" in await refusal(edit_docx(workspace, "output/a.docx", wrong))
    assert "there are none" in await refusal(edit_docx(workspace, "output/a.docx", []))
    assert "no such file" in await refusal(edit_docx(workspace, "output/b.docx", [{"action": "delete", "at": "¶1"}]))


# --- files that mean harm, machines that fail -------------------------------------------------------------------------

EDIT: list[Any] = [{"action": "replace", "at": "¶1", "text": "x"}]


def laughing() -> bytes:
    entities = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    return changed(
        busy(), {"word/document.xml": lambda text: text.replace("<w:document", f"{entities}]><w:document", 1)}
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no zip container"),
        (b"PK\x03\x04 but then nothing", "no zip container"),
        (laughing(), "declares entities"),
        (strict(busy()), "Strict"),
        (changed(busy(), {"word/document.xml": None}), "word/document.xml is missing"),
        (changed(busy(), {"word/document.xml": "<broken"}), "cannot be handled"),
    ],
    ids=["empty", "damaged", "entities", "strict", "no main part", "broken xml"],
)
async def test_a_file_that_cannot_be_edited_says_why(workspace: Workspace, data: bytes, why: str) -> None:
    (workspace.root / "a.docx").write_bytes(data)
    assert why in await refusal(edit_docx(workspace, "a.docx", EDIT))
    assert (workspace.root / "a.docx").read_bytes() == data


async def test_a_zip_bomb_costs_a_refusal(workspace: Workspace) -> None:
    (workspace.root / "a.docx").write_bytes(flat(130, "word/document.xml"))
    assert "unpacks to more than" in await refusal(edit_docx(workspace, "a.docx", EDIT))


async def test_endless_work_is_the_policys_and_a_killed_worker_is_the_machines(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(workspace, "text")

    class Dead:
        def __init__(self, ours: bool) -> None:
            self.ours = ours

        def do(self, task: object) -> Any:
            raise WorkerDied("it takes too long", ours=self.ours)

    monkeypatch.setattr(_run, "workers", lambda: Dead(False))
    assert "too much for this tool" in await refusal(edit_docx(workspace, "output/a.docx", EDIT))
    monkeypatch.setattr(_run, "workers", lambda: Dead(True))
    with pytest.raises(OSError, match="the office worker failed"):
        await edit_docx(workspace, "output/a.docx", EDIT)


async def test_a_huge_text_ends_with_its_worker_and_the_next_call_works(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_workers, "STALLED", 60)  # a busy machine gives a second of CPU time in many of its own
    monkeypatch.setattr(_run.Task.__init__, "__defaults__", ("", "", 1))
    told = await refusal(make_docx(workspace, "output/a.docx", "| a | b |\n|--|--|\n" + "| x | **y** |\n" * 60_000))
    assert "more than 1 s of CPU time" in told
    monkeypatch.undo()
    assert "wrote" in await make_docx(workspace, "output/a.docx", "fine")


async def test_a_full_disk_is_the_machines_failure(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def do(self, task: object) -> dict[str, int]:
            return {"machine": errno.ENOSPC}

    monkeypatch.setattr(_run, "workers", Full)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)) as failed:
        await make_docx(workspace, "output/a.docx", "x")
    assert failed.value.errno == errno.ENOSPC


async def test_the_workspace_does_not_grow_beyond_its_bounds(workspace: Workspace) -> None:
    small = Workspace(workspace.root, files=500, size=10_000)
    with pytest.raises(ToolRefusal, match="the workspace is full"):
        await make_docx(small, "output/a.docx", "x")
    assert not (workspace.root / "output/a.docx").exists()


async def test_the_event_loop_goes_on_while_files_are_made(workspace: Workspace) -> None:
    text = "\n\n".join(f"Paragraph {n} with **words**." for n in range(2000))
    async with the_loop_goes_on():
        await asyncio.gather(*(make_docx(workspace, f"output/{n}.docx", text) for n in range(3)))


def children() -> list[str]:
    return [pid for path in PROC.glob("self/task/*/children") for pid in path.read_text().split()]


async def test_the_worker_has_no_secrets(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "sk-secret-1234")
    _run.workers().stop()
    await made(workspace, "x")
    offices = [pid for pid in children() if WORKER in (PROC / pid / "cmdline").read_bytes()]
    assert offices
    assert all(b"sk-secret-1234" not in (PROC / pid / "environ").read_bytes() for pid in offices)


def test_no_library_is_loaded_into_the_environment() -> None:
    code = "import sys, rubric_env.office; print([m for m in ('docx', 'pptx', 'openpyxl', 'lxml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
