"""Instances, and what policies do with them, at the limits of what is taken in: every one a folder and a recording."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINE = "Revenue of region {n} rose by {n} % to {n}.4 million, since the contract of the second customer was renewed.\n"
ROW = "The report states the change of revenue of region {n} with its cause."
DOCUMENTS = 2000

Turn = Mapping[str, Any]


@dataclass(frozen=True)
class Hostile:
    """`environment` names the package that it is loaded in."""

    name: str
    environment: str
    turns: Sequence[Turn]
    rows: int = 12
    fill: Callable[[Path], None] = lambda folder: None
    """Puts files into the folder `environment` of the instance."""

    @property
    def prompt(self) -> str:
        return f"Case {self.name}. Write the report on the quarter, region by region, to output/report.md."

    def make(self, parent: Path) -> dict[str, Any]:
        """The instance's folder below `parent`, and its recording."""
        root = parent / self.name
        for name in ("tests", "environment/inputs"):
            (root / name).mkdir(parents=True)
        rows = [{"id": f"R{n:03}", "description": ROW.format(n=n), "weight": 1} for n in range(self.rows)]
        (root / "tests/rubric.json").write_text(json.dumps(rows), "utf-8")
        (root / "tests/judge_instruction.md").write_text("Judge each row.", "utf-8")
        for name in ("instruction.md", "tests/task_prompt.md"):
            (root / name).write_text(self.prompt, "utf-8")
        (root / "environment/inputs/notes.md").write_text(lines(10_000), "utf-8")
        self.fill(root / "environment")
        return {"instance": self.name, "quality": "good", "prompt": self.prompt, "turns": list(self.turns)}


def hostile() -> list[Hostile]:
    """All of them; some megabytes of text."""
    reading = [uses("read_file", path="notes.md", offset=20_000 * n) for n in range(27)]
    numbers = [{"name": "Numbers", "rows": [[n + m for m in range(40)] for n in range(4_000)]}]
    deep: list[Any] = [[n, [n]] for n in range(80_000)]
    written = [uses("write_file", path="output/report.md", content=lines(n)) for n in (500, 10_000)]
    searches = [uses("search_corpus", query=f"contract of region {n} renewed customer", limit=20) for n in range(4)]
    return [
        Hostile("long-reply", "harbor_gdp", [written[1], says(2)]),
        Hostile(
            "long-arguments",
            "harbor_gdp",
            [
                uses("make_xlsx", path="output/model.xlsx", sheets=numbers),
                uses("make_xlsx", path="output/model.xlsx", sheets=json.dumps(numbers)),
                uses("list_files", path=".", what=deep),
                uses("no_such_tool", what=deep),
                says(),
            ],
        ),
        Hostile("many-calls", "harbor_gdp", [calls(*[("list_files", {"path": lines(300)})] * 32), says()]),
        Hostile("long-talk", "harbor_gdp", [*reading, says()]),
        Hostile("many-rows", "harbor_gdp", [written[0], says()], rows=200),
        Hostile(
            "many-files",
            "harbor_gdp",
            [
                uses("list_files", path="."),
                uses("search_files", query="region 17 rose"),
                uses("make_docx", path="output/report.docx", markdown=lines(200)),
                uses("write_file", path="output/report.md", content=lines(200)),
                says(),
            ],
            fill=many_files,
        ),
        Hostile(
            "long-report",
            "harbor_dr",
            [
                *searches,
                uses("open_document", id="D-0017"),
                uses("write_file", path="output/report.md", content=cited(3_000)),
                says(),
            ],
            fill=corpus,
        ),
    ]


def calls(*asked: tuple[str, Mapping[str, Any]]) -> Turn:
    return {"content": "", "tool_calls": [{"name": name, "arguments": dict(given)} for name, given in asked]}


def uses(tool: str, **arguments: Any) -> Turn:
    return calls((tool, arguments))


def says(megabytes: int = 0) -> Turn:
    return {"content": f"The report is in output/.\n{lines(10_000 * megabytes)}"}


def lines(number: int) -> str:
    """About a hundred characters each."""
    return "".join(LINE.format(n=n) for n in range(number))


def many_files(folder: Path) -> None:
    for n in range(500):
        (folder / f"inputs/region-{n:03}.md").write_text(lines(100 + n % 200), "utf-8")


def corpus(folder: Path) -> None:
    (folder / "corpus").mkdir()
    index = []
    for n in range(DOCUMENTS):
        text = "".join(LINE.format(n=n * 100 + m) for m in range(50))
        (folder / f"corpus/{n:04}.md").write_text(f"# Region {n}\n\n{text}", "utf-8")
        index.append(json.dumps({"id": f"D-{n:04}", "title": f"Region {n}", "file": f"{n:04}.md"}))
    (folder / "corpus/index.jsonl").write_text("\n".join(index), "utf-8")


def cited(number: int) -> str:
    """A report whose every sentence cites a document, and every tenth quotes it."""
    return "\n\n".join(
        f"{LINE.format(n=n).strip()} [D-{n % DOCUMENTS:04}]"
        + (f' It says "{LINE.format(n=n * 100).strip()}" [D-{n % DOCUMENTS:04}].' if n % 10 == 0 else "")
        for n in range(number)
    )
