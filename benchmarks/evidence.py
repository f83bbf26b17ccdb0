"""Office files as evidence: how much of their text is found, and how fast, beside what else there is.

    python benchmarks/evidence.py [--quick] [--json] [--data DIR…]

Recall is the share of the characters of a file's own XML (runs of slides, notes, documents and headers, also deleted
ones, formulas, cells of text, caches of charts, nodes of diagrams, comments) whose text node is found in what a reader
gives, white space apart. The samples are made here; `--data` adds folders of files, of which those that are no zip or
are encrypted have no text that could be found. The plain loops are what a first page of documentation shows: text
frames of shapes, paragraphs of a document. Seconds are of a reader that is already running; "draw" is LibreOffice and
the pictures. `--quick`: the samples alone, and one of them drawn. markitdown needs `make bench-peers`; docling is left
out, for it needs torch (2 GB).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

from peers.offices import SAMPLES, report
from rich.console import Console
from rich.table import Table

from rubric_env.evidence import EvidenceStore
from rubric_env.evidence._soffice import soffice

HERE = Path(__file__).parent
MARKITDOWN = HERE.parent / ".venv-peers" / "markitdown" / "bin" / "python"
SUFFIXES = (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".docx", ".docm", ".xlsx", ".xlsm")
RECALL, RATIO, DECK_SECONDS = 0.98, 10.0, 1.0
"""The goals: text found, drawing ÷ reading, a deck of 48 slides."""

Figures = dict[str, Any]
Reader = Callable[[Path], str]

_SHOWN = re.compile(
    r"ppt/(slides|notesSlides|charts|comments)/[^/]+\.xml|ppt/diagrams/data\d*\.xml|xl/(sharedStrings|comments\d*)\.xml"
    r"|xl/(charts|worksheets)/[^/]+\.xml|word/(document|header\d*|footer\d*|footnotes|endnotes|comments)\d*\.xml"
    r"|word/(charts|diagrams)/(chart|data)\d*\.xml"
)
"""Parts whose text people see, or would with one click; layouts and styles hold none of the author's."""

_TEXT = re.compile(r"\}(t|delText)$")
_CHARTS = "{http://schemas.openxmlformats.org/drawingml/2006/chart}v"
_SPACE = re.compile(r"\s+")


def nodes(path: Path) -> Iterator[str]:
    """The text nodes of a package; none when it is not one."""
    from lxml import etree

    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=True)
    try:
        package = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        return
    with package:
        for name in package.namelist():
            if not _SHOWN.fullmatch(name.replace("\\", "/").lstrip("/")):
                continue
            try:
                root = etree.fromstring(package.read(name), parser)
            except (zipfile.BadZipFile, etree.XMLSyntaxError, EOFError):
                continue
            for element in root.iter() if root is not None else ():
                if isinstance(element.tag, str) and (_TEXT.search(element.tag) or element.tag == _CHARTS):
                    yield element.text or ""


def recall(wanted: Sequence[str], found: str) -> float | None:
    """None when there is nothing to find."""
    bare = _SPACE.sub("", found)
    sizes = [(len(text), text in bare) for node in wanted if (text := _SPACE.sub("", node))]
    total = sum(size for size, _ in sizes)
    return sum(size for size, there in sizes if there) / total if total else None


class Ours:
    """The store that judging uses, with a worker that is already there."""

    def __init__(self, folder: Path) -> None:
        self.store = EvidenceStore(folder)
        warm = folder / "warm.docx"
        warm.write_bytes(report(1))
        self.store.entry(warm)

    def read(self, path: Path) -> Figures:
        start = time.perf_counter()
        entry = self.store.entry(path)
        seconds = time.perf_counter() - start
        text = "\n".join(unit.text for unit in entry.units())
        meta = entry.meta
        why = "; ".join(filter(None, (meta["note"], *meta["errors"][:2])))
        return {"text": text, "seconds": seconds, "status": meta["status"], "why": why}

    def draw(self, path: Path) -> Figures:
        entry = self.store.entry(path)
        start = time.perf_counter()
        drawing = self.store.pictures(entry, 180)
        return {"seconds": time.perf_counter() - start, "pages": len(drawing.pictures), "note": drawing.note}


def plain_pptx(path: Path) -> str:
    from pptx import Presentation

    slides = Presentation(str(path)).slides
    return "\n".join(shape.text_frame.text for slide in slides for shape in slide.shapes if shape.has_text_frame)


def plain_docx(path: Path) -> str:
    from docx import Document

    return "\n".join(paragraph.text for paragraph in Document(str(path)).paragraphs)


def plain_xlsx(path: Path) -> str:
    from openpyxl import load_workbook

    book = load_workbook(path, data_only=True)
    return "\n".join(
        str(cell) for sheet in book.worksheets for row in sheet.iter_rows(values_only=True) for cell in row
    )


PLAIN: dict[str, Reader] = {"p": plain_pptx, "d": plain_docx, "x": plain_xlsx}
"""By the first letter of the suffix: the loops of python-pptx, python-docx and openpyxl."""


def plain(path: Path) -> Figures:
    start = time.perf_counter()
    try:
        text = PLAIN[path.suffix[1]](path)
    except Exception as error:
        return {"failed": type(error).__name__}
    return {"text": text, "seconds": time.perf_counter() - start}


@contextmanager
def markitdown() -> Iterator[Callable[[Path], Figures] | None]:
    """A running markitdown; None when it is not installed."""
    if not MARKITDOWN.exists():
        yield None
        return
    command = [str(MARKITDOWN), str(HERE / "peers" / "markitdown.py")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def convert(path: Path) -> Figures:
        print(path, file=stdin, flush=True)
        line = stdout.readline()
        return json.loads(line) if line else {"failed": "crashed"}

    try:
        with TemporaryDirectory() as made:
            warm = Path(made) / "warm.docx"
            warm.write_bytes(report(1))
            convert(warm)
        yield convert
    finally:
        process.kill()
        process.wait()
        stdin.close()
        stdout.close()


def measured(path: Path, readers: dict[str, Callable[[Path], Figures]]) -> Figures:
    wanted = list(nodes(path))
    figures: Figures = {"file": path.name, "characters": sum(map(len, wanted))}
    for name, read in readers.items():
        found = read(path)
        text = found.pop("text", "")
        figures[name] = found | {"recall": recall(wanted, text)}
    return figures


def short(figures: Figures) -> bool:
    """Below the goal, although there is something to be found."""
    found = figures["ours"]["recall"]
    return found is not None and found < RECALL


def summary(rows: Sequence[Figures], names: Sequence[str]) -> Figures:
    scored = [row for row in rows if row["ours"]["recall"] is not None]
    drawn = [row for row in rows if row.get("drawn", {}).get("pages")]
    ratios = [row["drawn"]["seconds"] / row["ours"]["seconds"] for row in drawn]
    decks = [row["ours"]["seconds"] for row in rows if row["file"] == "48 slides.pptx"]
    return {
        "files": len(rows),
        "recall": {name: mean(row[name]["recall"] or 0.0 for row in scored) for name in names},
        "failed": {name: sum("failed" in row[name] for row in rows) for name in names},
        "median_seconds": {
            name: median(seconds)
            for name in names
            if (seconds := [r[name]["seconds"] for r in rows if "seconds" in r[name]])
        },
        "below_goal": [
            {"file": row["file"], "recall": row["ours"]["recall"], "why": row["ours"]["why"]}
            for row in scored
            if short(row)
        ],
        "draw_by_read": {"median": median(ratios), "least": min(ratios)} if ratios else None,
        "deck_seconds": decks[0] if decks else None,
    }


def show(rows: Sequence[Figures], total: Figures, names: Sequence[str]) -> None:
    console = Console()
    table = Table("file", box=None)
    for column in (*(f"{name}\n{unit}" for name in names for unit in ("recall", "s")), "draw\ns"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        cells = []
        for name in names:
            found = row[name]["recall"]
            cells.append((row[name].get("failed") or "")[:9] or ("" if found is None else f"{found:.3f}"))
            cells.append(f"{row[name]['seconds']:.3f}" if "seconds" in row[name] else "")
        drawn = row.get("drawn", {})
        cells.append(f"{drawn['seconds']:.1f}" if drawn.get("pages") else "none" if drawn else "")
        table.add_row(row["file"][:30], *cells)
    console.print(table)
    for name in names:
        seconds = total["median_seconds"].get(name, 0.0)
        failed = f", {total['failed'][name]} files not opened" if total["failed"][name] else ""
        console.print(f"{name}: mean recall {total['recall'][name]:.3f}, median {seconds:.3f} s{failed}")
    if "markitdown" not in names:
        console.print("markitdown: not installed: make bench-peers")
    goal(console, f"recall ≥ {RECALL} in each file", not total["below_goal"], f"{len(total['below_goal'])} below")
    for row in total["below_goal"]:
        console.print(f"    {row['file']}: {row['recall']:.3f} {row['why']}", markup=False)
    if total["draw_by_read"] is None:
        console.print("nothing drawn: LibreOffice is not installed")
    else:
        ratio = total["draw_by_read"]
        words = f"median {ratio['median']:.0f}, least {ratio['least']:.1f}"
        goal(console, f"reading ≥ {RATIO:g} × faster than drawing", ratio["median"] >= RATIO, words)
    goal(
        console,
        "a deck of 48 slides read in < 1 s",
        total["deck_seconds"] < DECK_SECONDS,
        f"{total['deck_seconds']:.2f} s",
    )


def goal(console: Console, words: str, met: bool, figures: str) -> None:
    console.print(f"{'met' if met else 'NOT MET'}: {words}: {figures}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the samples alone, one of them drawn")
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    parser.add_argument("--data", nargs="+", type=Path, default=[], metavar="DIR", help="folders of more files")
    given = parser.parse_args()
    with TemporaryDirectory() as made, markitdown() as other:
        folder = Path(made)
        for name, make in SAMPLES.items():
            (folder / name).write_bytes(make())
        more = [path for place in given.data for path in sorted(place.rglob("*")) if path.suffix.lower() in SUFFIXES]
        (folder / "store").mkdir()
        ours = Ours(folder / "store")
        readers: dict[str, Callable[[Path], Figures]] = {"ours": ours.read, "plain loop": plain}
        if other is not None:
            readers["markitdown"] = other
        rows = [measured(path, readers) for path in [*(folder / name for name in SAMPLES), *more]]
        if soffice():
            paths = [folder / "48 slides.pptx"] if given.quick else [*(folder / name for name in SAMPLES), *more]
            for path, row in zip(paths, [row for row in rows if row["file"] in {p.name for p in paths}], strict=True):
                row["drawn"] = ours.draw(path)
        total = summary(rows, list(readers))
    if given.json:
        print(json.dumps({"summary": total, "files": rows}, ensure_ascii=False))
    else:
        show(rows, total, list(readers))


if __name__ == "__main__":
    main()
