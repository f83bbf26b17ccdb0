from __future__ import annotations

import time
from pathlib import Path

import pytest

from rubric_env.harbor import InstanceError, find_instances
from tests.harbor.conftest import MakeInstance


def names(tmp_path: Path, *where: Path) -> list[str]:
    return [path.relative_to(tmp_path).as_posix() for path in find_instances(where or tmp_path)]


def test_instances_come_in_the_order_of_their_names(tmp_path: Path, make_instance: MakeInstance) -> None:
    for name in ("b", "set/10", "a", "set/2", "Z"):
        make_instance(name)
    assert names(tmp_path) == ["Z", "a", "b", "set/10", "set/2"]


def test_an_instance_is_found_by_its_own_path_and_not_searched(tmp_path: Path, make_instance: MakeInstance) -> None:
    root = make_instance("a")
    make_instance("a/solution/inner")
    assert names(tmp_path, root) == ["a"]
    assert list(find_instances(str(root))) == [root]


def test_several_folders_keep_their_order(tmp_path: Path, make_instance: MakeInstance) -> None:
    make_instance("x/1")
    make_instance("y/1")
    assert names(tmp_path, tmp_path / "y", tmp_path / "x") == ["y/1", "x/1"]


def test_hidden_folders_and_deep_ones_are_passed_over(tmp_path: Path, make_instance: MakeInstance) -> None:
    for name in (".git/a", "1/2/3", "1/2/3b/4"):
        make_instance(name)
    assert names(tmp_path) == ["1/2/3"]


def test_a_broken_instance_is_found_so_that_it_can_be_named(tmp_path: Path, make_instance: MakeInstance) -> None:
    make_instance("broken", {"tests/rubric.json": None})
    assert names(tmp_path) == ["broken"]


def test_links_to_an_instance_count_and_circles_end(tmp_path: Path, make_instance: MakeInstance) -> None:
    root = make_instance("set/a")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "one").symlink_to(root, target_is_directory=True)
    assert names(tmp_path) == ["one", "set/a"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="nowhere: no such folder"):
        list(find_instances(tmp_path / "nowhere"))


def test_four_thousand_instances_are_found_in_seconds_and_without_being_read(tmp_path: Path) -> None:
    for number in range(4312):
        folder = tmp_path / f"{number % 7}" / f"{number:04}" / "tests"
        folder.mkdir(parents=True)
        (folder / "rubric.json").write_bytes(b"not json")
    start = time.perf_counter()
    found = list(find_instances(tmp_path))
    assert time.perf_counter() - start < 30
    assert len(found) == len(set(found)) == 4312
