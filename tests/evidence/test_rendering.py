"""SPEC 8: pages as pictures by the real LibreOffice, without network or macros, and with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rubric_env.evidence import EvidenceStore, _fonts, _soffice, _store
from rubric_env.evidence._soffice import NotRendered, to_pdf
from rubric_env.evidence._store import Drawing, Entry
from tests.evidence import drawable
from tests.evidence.office import changed

NO_SETTINGS = '<oor:items xmlns:oor="http://openoffice.org/2001/registry"/>'


@pytest.fixture(scope="module", autouse=True)
def office() -> None:
    if _soffice.soffice() is None:
        if os.environ.get("RUBRIC_ENV_REQUIRE_OFFICE") == "1":
            pytest.fail("LibreOffice is not installed, and this run requires it")
        pytest.skip("LibreOffice is not installed")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EvidenceStore:
    return EvidenceStore(tmp_path_factory.mktemp("store"))


def entry_of(store: EvidenceStore, folder: Path, name: str, content: bytes) -> Entry:
    path = folder / name
    path.write_bytes(content)
    return store.entry(path)


Drawn = dict[str, tuple[Entry, Drawing]]


@pytest.fixture(scope="module")
def drawn(store: EvidenceStore, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """One file of each kind, drawn at the same time by four threads."""
    folder = tmp_path_factory.mktemp("files")
    made = {name: entry_of(store, folder, name, content) for name, content in drawable.samples().items()}
    with ThreadPoolExecutor(4) as threads:
        drawings = threads.map(lambda entry: store.pictures(entry, 170), made.values())
    return dict(zip(made, zip(made.values(), drawings, strict=True), strict=True))


def test_files_of_every_kind_are_drawn_at_the_same_time(drawn: Drawn) -> None:
    for name, (_, drawing) in drawn.items():
        assert drawing.pictures and (drawing.note, drawing.ours) == ("", False), name


def test_section_8_every_slide_is_a_picture_hidden_ones_too_in_their_order(drawn: Drawn) -> None:
    entry, drawing = drawn["deck.pptx"]
    assert [picture.page for picture in drawing.pictures] == [1, 2, 3, 4]
    assert [colour_at_the_corner(picture.path) for picture in drawing.pictures] == [*drawable.COLOURS]
    assert [str(picture.path.relative_to(entry.folder)) for picture in drawing.pictures] == [
        f"slides/slide-{number:03}.png" for number in range(1, 5)
    ]
    assert {(picture.width, picture.height) for picture in drawing.pictures} == {(1080, 810)}


def test_pages_of_documents_are_drawn_in_their_order(drawn: Drawn) -> None:
    for name, pages in (("report.docx", 2), ("page.html", 1), ("paper.pdf", 2), ("book.xlsx", 2)):
        entry, drawing = drawn[name]
        paths = [str(picture.path.relative_to(entry.folder)) for picture in drawing.pictures]
        assert paths == [f"pictures/page-{number:03}.png" for number in range(1, pages + 1)], name
    ink = [ink_share(picture.path) for picture in drawn["report.docx"][1].pictures]
    assert ink[0] > 5 * ink[1] > 0
    assert "The heading of this page\nIt has words" in text_of_pdf(drawn["page.html"][0].folder / "drawing.pdf")
    sizes = [(picture.width, picture.height) for picture in drawn["paper.pdf"][1].pictures]
    assert sizes == [(1080, 540), (540, 1080)]


def test_what_was_drawn_once_is_not_drawn_again(
    drawn: Drawn, store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_soffice, "soffice", lambda: pytest.fail("it was drawn again"))
    for entry, drawing in drawn.values():
        assert (entry.folder / "drawing.json").is_file()
        assert store.pictures(entry, 170) == drawing
        assert EvidenceStore(entry.folder.parent).pictures(entry, 170) == drawing


def test_section_8_with_less_than_45_seconds_left_nothing_is_drawn_and_it_is_said(
    store: EvidenceStore, tmp_path: Path
) -> None:
    entry = entry_of(store, tmp_path, "short.docx", drawable.document("Little time."))
    drawing = store.pictures(entry, 44)
    assert (drawing.pictures, drawing.ours) == ([], True)
    assert "less than 45 s were left" in drawing.note
    assert not (entry.folder / "drawing.json").exists()  # next time there may be more


def test_section_8_a_conversion_that_takes_too_long_is_killed_with_its_children(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_store, "LEAST_SECONDS", 0)
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            seen.update(processes_below(tmp_path).values())

    entry = entry_of(store, tmp_path, "long.html", drawable.long_page())
    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.monotonic()
    drawing = store.pictures(entry, 5 + entry.meta["seconds"])
    spent = time.monotonic() - start
    over.set()
    watcher.join()
    assert (drawing.pictures, drawing.note, drawing.ours) == ([], "not drawn: LibreOffice needed more than 5 s", True)
    assert 5 <= spent < 30
    assert any(name.startswith("soffice.bin") for name in seen)  # LibreOffice proper, a child of its starter
    assert processes_below(tmp_path) == {}
    assert not list(tmp_path.glob("rubric-env-office-*"))


def test_section_8_a_file_that_libreoffice_cannot_open_is_found_out_although_it_ends_with_0(
    store: EvidenceStore, tmp_path: Path
) -> None:
    broken = changed(drawable.deck(), {"ppt/presentation.xml": None})
    drawing = store.pictures(entry_of(store, tmp_path, "broken.pptx", broken), 170)
    assert (drawing.pictures, drawing.ours) == ([], False)
    assert drawing.note == "not drawn: LibreOffice cannot open it (exit code 0)"


def test_section_8_a_deck_with_a_broken_slide_is_still_drawn(store: EvidenceStore, tmp_path: Path) -> None:
    broken = changed(drawable.deck(), {"ppt/slides/slide3.xml": lambda text: text[: len(text) // 2]})
    drawing = store.pictures(entry_of(store, tmp_path, "broken slide.pptx", broken), 170)
    assert len(drawing.pictures) >= 2 and drawing.note == ""


class Requests(BaseHTTPRequestHandler):
    """Notes what is asked for."""

    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_error(404)

    do_HEAD = do_OPTIONS = do_GET

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def web() -> Iterator[tuple[str, list[str]]]:
    """The URL of a picture on a loopback server, and the requests that it got."""
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Requests,), {"seen": seen}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/picture.png", seen
    server.shutdown()
    server.server_close()


def draw(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    to_pdf(folder / name, folder / f"{name}.pdf", 60)


@pytest.mark.parametrize("name", sorted(drawable.LINKING))
def test_section_8_no_picture_that_a_file_links_is_fetched_even_where_no_network_can_be_taken_away(
    name: str, web: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, seen = web
    monkeypatch.setattr(_soffice, "_alone", lambda: ())
    draw(tmp_path, name, drawable.LINKING[name](url))
    assert seen == []


def test_section_8_there_is_no_network_where_it_can_be_taken_away(
    web: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _soffice._alone():
        pytest.skip("this machine gives no network namespaces to its users")
    url, seen = web
    monkeypatch.setattr(_soffice, "_PROFILE", NO_SETTINGS)
    draw(tmp_path, "report.docx", drawable.LINKING["report.docx"](url))
    assert seen == []


def test_libreoffice_would_fetch_such_a_picture_otherwise(
    web: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, seen = web
    monkeypatch.setattr(_soffice, "_PROFILE", NO_SETTINGS)
    monkeypatch.setattr(_soffice, "_alone", lambda: ())
    draw(tmp_path, "report.docx", drawable.LINKING["report.docx"](url))
    assert "/picture.png" in seen


def test_a_macro_that_runs_when_its_document_is_opened_does_not_run_when_it_is_drawn(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    document = drawable.with_macro(ran)
    draw(tmp_path, "macro.odt", document)
    assert not ran.exists()
    profile = tmp_path / "profile" / "user"
    profile.mkdir(parents=True)
    profile.joinpath("registrymodifications.xcu").write_text(drawable.MACROS_ALLOWED)
    command = [str(_soffice.soffice()), "--headless", "--norestore", f"-env:UserInstallation=file://{profile.parent}"]
    opened = subprocess.Popen(
        [*command, str(tmp_path / "macro.odt")],
        env=_soffice.environment(str(tmp_path)) | {"SAL_USE_VCLPLUGIN": "svp"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 120
        while not ran.exists() and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        os.killpg(opened.pid, signal.SIGKILL)
        opened.wait()
    assert ran.exists()  # the macro is one that works


def test_no_libreoffice_is_one_layer_less(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_soffice, "soffice", lambda: None)
    drawing = store.pictures(entry_of(store, tmp_path, "report.docx", drawable.document("A page.")), 170)
    assert (drawing.pictures, drawing.note, drawing.ours) == ([], "not drawn: LibreOffice is not installed", True)
    with pytest.raises(NotRendered):
        to_pdf(tmp_path / "report.docx", tmp_path / "report.pdf", 60)


def test_section_8_a_script_without_a_font_is_named(
    store: EvidenceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_latin_fonts(tmp_path, monkeypatch)
    _fonts._installed.cache_clear()
    try:
        entry = entry_of(store, tmp_path, "cjk.docx", drawable.document("Umsatz 营业收入 매출"))
        drawing = store.pictures(entry, 170)
        assert _fonts.missing_fonts(["Plain words, ünd Umlaute."]) == ""
    finally:
        _fonts._installed.cache_clear()
    assert len(drawing.pictures) == 1 and drawing.ours
    assert drawing.note == (
        "no font for Chinese and Korean is installed here: its characters are drawn as boxes, or not at all"
    )


@pytest.fixture
def no_fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LibreOffice crashes without any."""
    (tmp_path / "fonts.conf").write_text(f"<fontconfig><cachedir>{tmp_path}</cachedir></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    _soffice._works.cache_clear()
    yield
    _soffice._works.cache_clear()


@pytest.mark.usefixtures("no_fonts")
def test_a_libreoffice_that_does_not_work_is_not_the_failure_of_the_policy(
    store: EvidenceStore, tmp_path: Path
) -> None:
    drawing = store.pictures(entry_of(store, tmp_path, "fine.docx", drawable.document("Nothing wrong.")), 170)
    assert (drawing.pictures, drawing.ours) == ([], True)
    assert drawing.note.startswith("not drawn: LibreOffice does not work on this machine (exit code ")


def test_files_of_this_machine_are_not_seen_in_a_drawing_that_names_them(tmp_path: Path) -> None:
    from PIL import Image

    if "--mount-proc" not in _soffice._alone():
        pytest.skip("this machine gives no mount namespaces to its users")
    Image.new("RGB", (50, 50), (0, 200, 0)).save(tmp_path / "secret.png")
    draw(tmp_path, "report.docx", drawable.naming_a_file(tmp_path / "secret.png"))
    assert "A picture" in text_of_pdf(tmp_path / "report.docx.pdf")
    assert (0, 200, 0) not in colours_of_pdf(tmp_path / "report.docx.pdf")


def only_latin_fonts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ["fc-match", "-f", "%{file}", "sans:lang=en"]
    font = Path(subprocess.run(query, capture_output=True, check=True, text=True).stdout)
    (folder / "fonts").mkdir()
    (folder / "fonts" / font.name).symlink_to(font)
    settings = folder / "fonts.conf"
    settings.write_text(f"<fontconfig><dir>{folder / 'fonts'}</dir><cachedir>{folder}</cachedir></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(settings))


def colour_at_the_corner(path: Path) -> tuple[int, ...]:
    from PIL import Image

    with Image.open(path) as picture:
        return tuple(picture.convert("RGB").getpixel((3, 3)))


def text_of_pdf(path: Path) -> str:
    import pypdfium2

    with pypdfium2.PdfDocument(path) as pdf:
        return "\f".join(page.get_textpage().get_text_bounded().replace("\r", "") for page in pdf)


def colours_of_pdf(path: Path) -> set[tuple[int, ...]]:
    import pypdfium2

    with pypdfium2.PdfDocument(path) as pdf:
        picture = pdf[0].render(scale=1).to_pil().convert("RGB")
        return {colour for _, colour in picture.getcolors(2**24)}


def ink_share(path: Path) -> float:
    from PIL import Image

    with Image.open(path) as picture:
        dark = picture.convert("L").histogram()[:128]
        return sum(dark) / (picture.width * picture.height)


def processes_below(folder: Path) -> dict[int, str]:
    """Running processes that were told of a path in `folder`: their numbers and names."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                found[int(process.name)] = (process / "comm").read_text().strip()
        except OSError:
            continue
    return found


def test_a_machine_without_room_for_temporary_files_is_no_failure_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deck = tmp_path / "deck.pptx"
    deck.write_bytes(drawable.deck())
    store = EvidenceStore(tmp_path / "store")
    entry = store.entry(deck)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    drawing = store.pictures(entry, 180)
    assert (list(drawing.pictures), drawing.ours) == ([], True)
    assert "not drawn: no such file or directory" in drawing.note
