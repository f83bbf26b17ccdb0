"""SPEC 8: parsing runs in a worker process; a crash, a hang or a bomb costs that file's evidence and nothing else."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rubric_env.evidence import EvidencePack, EvidenceStore, Extract, _sources, _workers, build_pack
from rubric_env.evidence._workers import workers
from rubric_env.submission import read_submission

READER = """
import os, time
from rubric_env.evidence import Kind, Reading, Unit, Unreadable

def units(reading: Reading):
    order = reading.path.read_text().split(" ", 1)[1]
    yield Unit("part 1", "the first part")
    match order:
        case "crash": os.abort()
        case "raise": raise KeyError("ppt/NULL")
        case "refuse": raise Unreadable("no toy in it")
        case "loop":
            while True: pass
        case "sleep": time.sleep(3600)
        case "memory": reading.facts["x"] = "x" * (3 << 30)
        case "disk": (reading.folder / "big").write_bytes(b"x" * (300 << 20))
        case "flood":
            while True: yield Unit("part n", "x" * 100_000)
        case "print":
            print("noise"); os.write(1, b"noise"); os.write(2, b"noise")
        case "secrets": yield Unit("environment", repr(dict(os.environ)))
        case "lost": reading.lost("part 2", ValueError("broken"))
        case "count":
            reading.write("pages/one.json", {"n": 1}); reading.note("one page")
    yield Unit("part 9", "the last part")

KINDS = (Kind("toy", (".toy",), units=units, magic=(b"TOY",)),)
"""


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kind of file whose reader does what the file says, in this process's workers and in none that come later."""
    from rubric_env.evidence import kinds

    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "toy.py").write_text(READER)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        textwrap.dedent(f"""
        from rubric_env.evidence import kinds
        kinds.__path__.append({str(plugin)!r})
        """)
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(plugin)])
    kinds.registry.cache_clear()
    workers().stop()
    yield
    workers().stop()
    kinds.registry.cache_clear()
    sys.modules.pop("rubric_env.evidence.kinds.toy", None)


def pack_of(tmp_path: Path, *orders: str, cpu_seconds: int = 1, named: Sequence[str] = ()) -> EvidencePack:
    output = tmp_path / "work" / "output"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for number, order in enumerate(orders):
        (output / f"{number}.toy").write_text(f"TOY{number} {order}")
    (output / "report.md").write_text("A report.")
    store = EvidenceStore(tmp_path / "store", cpu_seconds=cpu_seconds)
    return build_pack(read_submission(output.parent), budget_tokens=20_000, store=store, named=named)


def toys(pack: EvidencePack) -> list[Extract]:
    *found, report = pack.extracts
    assert (report.status, report.text) == ("read", "[¶1] A report.")
    return found


@pytest.mark.parametrize(
    ("order", "status", "words", "ours"),
    [
        ("crash", "unreadable", "crashes its reader", False),
        ("refuse", "unreadable", "no toy in it", False),
        ("loop", "unreadable", "more than 1 s of CPU time", False),
        ("sleep", "unreadable", "within 6 s on this machine", True),
        ("memory", "unreadable", "needs more than 2,048 MB of memory", False),
        ("raise", "read", "KeyError", True),
        ("disk", "read", "OSError", True),
        ("lost", "read", "not extracted, which does not mean not there: part 2: ValueError", True),
        ("flood", "cut", "only the first 64 MB", True),
        ("print", "read", "", False),
    ],
)
def test_whatever_a_reader_does_costs_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, status: str, words: str, ours: bool
) -> None:
    if order == "sleep":
        monkeypatch.setattr(_workers, "STALLED", 6)
    hurt, well = toys(pack_of(tmp_path, order, "nothing", cpu_seconds=10 if order == "flood" else 1))
    assert (hurt.kind, hurt.status, hurt.ours) == ("toy", status, ours)
    assert words in hurt.note
    assert (well.status, [unit.label for unit in well.units]) == ("read", ["part 1", "part 9"])


def test_a_reader_finds_no_secret_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "very-secret")
    (shown,) = toys(pack_of(tmp_path, "secrets"))
    assert "PYTHONPATH" in shown.text and "very-secret" not in shown.text and "JUDGE" not in shown.text


def test_equal_content_is_extracted_once_and_kept_with_what_the_reader_wrote(tmp_path: Path) -> None:
    first = pack_of(tmp_path, "count")
    made = {path: path.stat().st_ctime_ns for path in (tmp_path / "store").rglob("units.jsonl")}
    assert pack_of(tmp_path, "count").digest == first.digest
    assert {path: path.stat().st_ctime_ns for path in (tmp_path / "store").rglob("units.jsonl")} == made
    assert len(list((tmp_path / "store").rglob("pages/one.json"))) == 1
    assert toys(first)[0].note == "one page"


def test_the_budget_is_applied_to_what_was_extracted_and_not_before(tmp_path: Path) -> None:
    (whole,) = toys(pack_of(tmp_path, "count"))
    store = EvidenceStore(tmp_path / "store")
    cut = build_pack(read_submission(tmp_path / "work"), budget_tokens=30, store=store).extracts[0]
    assert (whole.status, cut.status) == ("read", "cut")


def test_workers_end_with_what_started_them(tmp_path: Path) -> None:
    pack_of(tmp_path, "nothing")
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    workers().stop()
    end = time.monotonic() + 60
    while "python" in " ".join(_command(pid) for pid in children.read_text().split()):
        assert time.monotonic() < end
        time.sleep(0.05)


def _command(pid: str) -> str:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    return "python" if "rubric_env.evidence._worker" in command else ""


def test_all_files_of_a_submission_share_one_allowance_and_what_rows_name_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sources.Allowance.__init__, "__defaults__", (1.5, 2**30))
    loops = pack_of(tmp_path, *["loop"] * 6, "nothing", named=["6.toy"])
    well, *bombs = toys(loops)
    assert (well.status, well.units[0].text) == ("read", "the first part")
    assert sum("more than 1 s of CPU" in bomb.note for bomb in bombs) in (2, 3)
    left_out = [bomb for bomb in bombs if "the time for the files of one submission" in bomb.note]
    assert len(left_out) >= 3 and not any(bomb.ours for bomb in left_out)


def test_more_bytes_than_a_submission_may_have_are_said_to_be_a_limit_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sources.Allowance.__init__, "__defaults__", (300.0, 20))
    found = toys(pack_of(tmp_path, "nothing", "nothing at all", "nothing there"))
    assert sorted(extract.status for extract in found) == ["read", "unsupported", "unsupported"]
    for extract in found:  # threads read them, and one of these is the first
        if extract.status == "unsupported":
            assert extract.ours and "the bytes for the files of one submission were used up" in extract.note
