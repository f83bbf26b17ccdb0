"""Every folder in environments/ is a package of its own, as `vf-install` and the Environments Hub take it."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

FOLDERS = sorted(path.parent for path in Path("environments").resolve().glob("*/pyproject.toml"))
BUILD = "import hatchling.build, sys; print(hatchling.build.build_{kind}(sys.argv[1]))"


@pytest.fixture(params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def build(folder: Path, kind: str, to: Path) -> zipfile.ZipFile:
    """What an installer does, without its download of hatchling."""
    pytest.importorskip("hatchling")
    command = [sys.executable, "-c", BUILD.format(kind=kind), str(to)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(to / done.stdout.split()[-1])


def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode("utf-8"))


def test_there_are_environments() -> None:
    assert "harbor_gdp" in [folder.name for folder in FOLDERS]


def test_the_wheel_carries_its_instances_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    with build(folder, "wheel", tmp_path) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = [path for path in (folder / folder.name).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {path.relative_to(folder).as_posix() for path in sources}, "one top-level module, all of it"
    assert sum(name.endswith("tests/rubric.json") for name in packed) >= 6


def test_the_metadata_name_what_is_needed_and_show_the_readme(folder: Path, tmp_path: Path) -> None:
    with build(folder, "wheel", tmp_path) as wheel:
        found = metadata(wheel)
    [needs] = [need for need in found.get_all("Requires-Dist") or [] if need.startswith("rubric-env")]
    extras = needs.partition("[")[2].partition("]")[0].split(",")
    known = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {"classic", "office"} <= set(extras) <= set(known)
    assert found["Name"].replace("-", "_") == folder.name, "the id that vf-eval turns into the module's name"
    assert found["Requires-Python"] == ">=3.11"
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).strip() == (folder / "README.md").read_text("utf-8").strip()
    assert project(folder)["license"] == "Apache-2.0"


def test_an_editable_install_points_at_the_folder(folder: Path, tmp_path: Path) -> None:
    """`vf-install` makes one; the environment is then found by its id, and imported from where it lies."""
    with build(folder, "editable", tmp_path) as wheel:
        [path_file] = [name for name in wheel.namelist() if name.endswith(".pth")]
        assert wheel.read(path_file).decode("utf-8").split() == [str(folder)]


def test_installed_alone_it_loads_by_its_id_from_anywhere(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("verifiers", reason="the classic extra is not installed")
    with build(folder, "wheel", tmp_path) as wheel:
        wheel.extractall(tmp_path / "site")
    code = (
        f"import json, verifiers, {folder.name} as package\n"
        f"env = verifiers.load_environment({project(folder)['name']!r}, judge={{'settings': {{'backend': 'local'}}}})\n"
        "print(json.dumps([package.__file__, len(env.get_dataset())]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    file, rows = json.loads(done.stdout.splitlines()[-1])
    assert Path(file) == tmp_path / "site" / folder.name / "__init__.py"
    assert rows == len(list((folder / folder.name / "instances").iterdir()))


def test_the_folder_holds_what_the_hub_shows(folder: Path) -> None:
    """README.md and a `load_environment` beside the project's file, under one name."""
    assert (folder / "README.md").read_text("utf-8").startswith(f"# {project(folder)['name']}\n")
    package = pytest.importorskip(folder.name, reason="the environment is not installed")
    assert callable(importlib.import_module(folder.name).load_environment)
    assert package.__all__ == ["load_environment"] or "load_environment" in package.__all__
