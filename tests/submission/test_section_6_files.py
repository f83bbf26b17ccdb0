"""SPEC 6: which files count as delivered."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rubric_env.submission import SubmissionUnreadable, open_regular, read_submission


def names(submission):
    return [file.name for file in submission.files]


def write(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_section_6_non_empty_files_under_the_output_directory_are_delivered(output):
    write(output / "report.md", "text")
    write(output / "data" / "table.csv", "a,b")
    write(output / "nothing.txt", "")
    submission = read_submission(output.parent)
    assert names(submission) == ["output/report.md", "output/data/table.csv"]
    assert submission.files[0].size == 4
    assert submission.notes == ('empty files, not counted: "output/nothing.txt"',)
    assert not submission.missing


def test_section_6_a_root_without_an_output_directory_is_the_submission_itself(tmp_path):
    write(tmp_path / "report.md")
    write(tmp_path / "figures" / "one.txt")
    submission = read_submission(tmp_path)
    assert names(submission) == ["output/report.md", "output/figures/one.txt"]
    assert submission.stray == ()


def test_section_6_files_elsewhere_are_stray(output):
    write(output / "report.md")
    write(output.parent / "notes.md")
    write(output.parent / "draft" / "old.md")
    submission = read_submission(output.parent)
    assert names(submission) == ["output/report.md"]
    assert [file.name for file in submission.stray] == ["notes.md", "draft/old.md"]
    assert submission.delivery == {
        "files": ["output/report.md"],
        "missing": False,
        "from_chat": False,
        "stray": ["notes.md", "draft/old.md"],
    }


def test_section_6_only_stray_files_are_nothing_delivered(output):
    write(output.parent / "report.md")
    assert read_submission(output.parent).missing


def test_section_6_lenient_delivery_counts_strays_and_turns_the_chat_fallback_on(output):
    write(output.parent / "report.md")
    submission = read_submission(output.parent, lenient=True, chat_fallback=False)
    assert names(submission) == ["./report.md"]
    assert submission.stray == ()
    assert "./report.md" in submission.notes[-1]
    (output.parent / "report.md").unlink()
    assert read_submission(output.parent, "words", lenient=True, chat_fallback=False).from_chat


def test_section_6_no_file_but_a_reply_is_judged(output):
    submission = read_submission(output.parent, "the answer is 4")
    assert submission.from_chat
    assert not submission.missing
    assert submission.files == ()


def test_section_6_with_the_chat_fallback_off_a_reply_alone_is_missing(output):
    submission = read_submission(output.parent, "the answer is 4", chat_fallback=False)
    assert submission.missing
    assert not submission.from_chat


@pytest.mark.parametrize("reply", ["", " \n\t", "\u200b\u2060\ufeff"])
def test_section_6_neither_file_nor_visible_reply_is_missing(output, reply):
    assert read_submission(output.parent, reply).missing


def test_section_6_without_a_root_only_the_reply_counts():
    assert read_submission(None, "words").from_chat
    assert read_submission(None).missing


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.write_text("a file")])
def test_section_6_a_root_that_is_missing_or_no_directory_is_infrastructure(tmp_path, make):
    root = tmp_path / "gone"
    make(root)
    for output_dir in (None, "output"):
        with pytest.raises(SubmissionUnreadable, match="gone"):
            read_submission(root, output_dir=output_dir)


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o111])
def test_section_6_a_root_that_cannot_be_read_is_infrastructure(public_workspace, unprivileged, mode):
    write(public_workspace / "output" / "report.md")
    public_workspace.chmod(mode)
    for output_dir in (None, "output"):
        with unprivileged(), pytest.raises(SubmissionUnreadable):
            read_submission(public_workspace, output_dir=output_dir)


@pytest.mark.parametrize("output_dir", ["output", "results/final"])
def test_section_6_an_output_directory_missing_in_the_workspace_is_nothing_delivered(tmp_path, output_dir):
    write(tmp_path / "notes.md")
    submission = read_submission(tmp_path, output_dir=output_dir)
    assert submission.missing
    assert [file.name for file in submission.stray] == ["notes.md"]


def test_section_6_an_output_directory_closed_by_the_policy_is_nothing_delivered(public_workspace, unprivileged):
    write(public_workspace / "output" / "report.md")
    (public_workspace / "output").chmod(0)
    with unprivileged():
        for output_dir in (None, "output"):
            submission = read_submission(public_workspace, output_dir=output_dir)
            assert submission.missing
            assert "permission denied" in submission.notes[0]


def test_section_6_a_file_that_nobody_may_read_is_still_delivered(public_workspace, unprivileged):
    write(public_workspace / "output" / "report.md").chmod(0)
    with unprivileged():
        submission = read_submission(public_workspace)
        assert names(submission) == ["output/report.md"]
        with pytest.raises(PermissionError):
            open_regular(submission.files[0].path)


def test_section_6_a_directory_that_nobody_may_open_is_named(public_workspace, unprivileged):
    write(public_workspace / "output" / "private" / "a.md")
    write(public_workspace / "output" / "listed" / "b.md")
    (public_workspace / "output" / "private").chmod(0)
    (public_workspace / "output" / "listed").chmod(0o444)
    with unprivileged():
        submission = read_submission(public_workspace)
    assert submission.missing
    assert submission.notes == ('what cannot be opened: "output/listed/b.md", "output/private"',)


@pytest.mark.parametrize("output_dir", [None, "output"])
def test_section_6_an_output_directory_that_is_a_link_is_nothing_delivered(tmp_path, output_dir):
    secret = write(tmp_path / "elsewhere" / "secret.md").parent
    workspace = tmp_path / "app"
    workspace.mkdir()
    (workspace / "output").symlink_to(secret)
    submission = read_submission(workspace, output_dir=output_dir)
    assert submission.missing
    assert "link" in submission.notes[0]


def test_section_6_links_are_skipped_and_named(output, tmp_path):
    secret = write(tmp_path / "secret.md")
    (output / "file.md").symlink_to(secret)
    (output / "directory").symlink_to(tmp_path)
    (output / "loop").symlink_to(output)
    (output / "dangling").symlink_to(tmp_path / "gone")
    submission = read_submission(output.parent)
    assert submission.missing
    assert submission.notes[0].startswith('symbolic links, not followed: "output/dangling", "output/directory"')


def test_section_6_an_output_directory_may_be_named_by_the_instance(tmp_path):
    write(tmp_path / "results" / "final" / "report.md")
    write(tmp_path / "results" / "draft.md")
    for output_dir in ("results/final", str(tmp_path / "results" / "final")):
        submission = read_submission(tmp_path, output_dir=output_dir)
        assert names(submission) == ["results/final/report.md"]
        assert [file.name for file in submission.stray] == ["results/draft.md"]
    assert names(read_submission(tmp_path, output_dir=".")) == [
        "output/results/draft.md",
        "output/results/final/report.md",
    ]


def test_section_6_where_the_output_directory_usually_is(tmp_path):
    write(tmp_path / "results" / "report.md")
    write(tmp_path / "notes.md")
    submission = read_submission(tmp_path, usual_output="results")
    assert (names(submission), [file.name for file in submission.stray]) == (["results/report.md"], ["notes.md"])
    assert names(read_submission(tmp_path / "results", usual_output="results")) == ["results/report.md"]
    (tmp_path / "linked").symlink_to(tmp_path)
    for place in ("linked", "linked/results"):
        assert read_submission(tmp_path, usual_output=place).missing


@pytest.mark.parametrize("broken", ["output", "sub"])
@pytest.mark.parametrize("output_dir", [None, "output"])
def test_a_machine_that_fails_is_infrastructure_and_never_nothing_delivered(output, monkeypatch, broken, output_dir):
    """As under load: too many open files. A policy cannot bring this about."""
    write(output / "report.md")
    write(output / "sub" / "table.md")
    real = os.open

    def exhausted(path, flags, **kwargs):
        if path == broken and flags & os.O_DIRECTORY and not flags & getattr(os, "O_PATH", 0):
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, flags, **kwargs)

    monkeypatch.setattr(os, "open", exhausted)
    with pytest.raises(SubmissionUnreadable, match="too many open files"):
        read_submission(output.parent, "a reply", output_dir=output_dir)


@pytest.mark.parametrize("output_dir", ["../other", "output/../..", "/elsewhere/output"])
def test_an_output_directory_outside_the_workspace_is_refused(tmp_path, output_dir):
    with pytest.raises(ValueError, match="output_dir"):
        read_submission(tmp_path, output_dir=output_dir)


def test_hidden_files_count_and_come_last(output):
    write(output / ".config")
    write(output / ".git" / "HEAD")
    write(output / "deep" / "down" / "report.md")
    assert names(read_submission(output.parent)) == ["output/deep/down/report.md", "output/.config", "output/.git/HEAD"]


def test_pipes_sockets_and_devices_are_skipped_and_named(output):
    os.mkfifo(output / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(output / "socket"))
    listener.close()
    with suppress(PermissionError):  # only root makes devices; the other two are enough then
        os.mknod(output / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    submission = read_submission(output.parent)
    assert submission.missing
    assert '"output/pipe", "output/socket"' in submission.notes[0]


def test_names_become_one_printable_line(output):
    write(output / "cafe\u0301.md")
    write(output / "two\nlines.md")
    write(output / "wide\u3000space.md")
    write(output / "hid\u200bden.md")
    (output / os.fsdecode(b"caf\xe9.md")).write_text("x")
    assert sorted(names(read_submission(output.parent))) == [
        "output/caf\\xe9.md",
        "output/café.md",
        "output/hid\\u200bden.md",
        "output/two\\nlines.md",
        "output/wide space.md",
    ]


def test_names_that_become_equal_stay_apart(output):
    write(output / "cafe\u0301.md", "one")
    write(output / "caf\u00e9.md", "three")
    write(output / "caf\u00e9.md (2)", "five")
    submission = read_submission(output.parent)
    assert names(submission) == ["output/café.md", "output/café.md (2)", "output/café.md (2) (2)"]
    assert [file.path.read_text() for file in submission.files] == ["one", "three", "five"]


def test_long_names_are_shortened_in_the_middle(output):
    write(output / ("d" * 200) / ("n" * 200 + ".md"))
    (name,) = names(read_submission(output.parent))
    assert len(name) == 200
    assert name.startswith("output/ddd")
    assert name.endswith("nnn.md")


def test_a_hundred_thousand_files_are_listed_within_seconds(output):
    for number in range(300):
        (output / f"d{number:03}").mkdir()
    for number in range(99_700):
        os.close(os.open(output / f"d{number % 300:03}" / f"f{number}", os.O_CREAT | os.O_WRONLY))
    for number in range(600):
        write(output / f"d{number % 300:03}" / f"g{number}")
    start = time.perf_counter()
    submission = read_submission(output.parent)
    assert time.perf_counter() - start < 30
    assert len(submission.files) <= 500
    assert any("more than 100,000 directory entries" in note for note in submission.notes)


def test_more_files_than_the_cap_are_counted_and_the_nearest_kept(output):
    for number in range(510):
        write(output / "many" / f"{number:03}.txt")
    write(output / "report.md")
    submission = read_submission(output.parent)
    assert len(submission.files) == 500
    assert submission.files[0].name == "output/report.md"
    assert submission.notes == ("511 files: only the first 500 are read",)


def test_directories_five_thousand_levels_deep_end_the_walk(output):
    step = os.open(output, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("d", dir_fd=step)
        below = os.open("d", os.O_RDONLY, dir_fd=step)
        os.close(step)
        step = below
    os.close(step)
    try:
        submission = read_submission(output.parent)
        assert submission.missing
        assert submission.notes[0].startswith("directories more than 32 levels deep, not looked into")
    finally:
        _remove_chain(output, "d")


def _remove_chain(top: Path, name: str) -> None:
    # shutil.rmtree recurses, and gives up at a thousand levels: move each level to the top and empty it.
    while (top / name).exists():
        below = top / name / name
        if below.exists():
            below.rename(top / "next")
        (top / name).rmdir()
        if (top / "next").exists():
            (top / "next").rename(top / name)


def test_open_regular_refuses_what_was_exchanged_since_the_walk(output, tmp_path):
    secret = write(tmp_path / "secret" / "report.md", "secret")
    write(output / "a.md")
    write(output / "part" / "report.md")
    write(output / "b.md")
    by_name = {file.name: file.path for file in read_submission(output.parent).files}
    (output / "a.md").unlink()
    (output / "a.md").symlink_to(secret)
    (output / "part" / "report.md").unlink()
    (output / "part").rmdir()
    (output / "part").symlink_to(secret.parent)
    (output / "b.md").unlink()
    os.mkfifo(output / "b.md")
    for path in by_name.values():
        with pytest.raises(OSError):
            open_regular(path)


def test_a_root_that_is_reached_through_a_link_is_the_callers_business(output, tmp_path):
    write(output / "report.md", "text")
    (tmp_path / "shortcut").symlink_to(output.parent)
    (file,) = read_submission(tmp_path / "shortcut").files
    with open_regular(file.path) as opened:
        assert opened.read() == b"text"
