"""Every folder in environments/ is a package of its own, as `vf-install` and the Environments Hub take it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hatchling", reason="hatchling, which builds the packages, is not installed")

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in ROOT.glob("environments/*/pyproject.toml"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"].keys()


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture(scope="module")
def wheel(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return build(folder, "wheel", tmp_path_factory.mktemp("wheels"))


def build(folder: Path, kind: str, to: Path) -> zipfile.ZipFile:
    """What an installer does, without its download of hatchling."""
    code = f"import hatchling.build, sys; print(hatchling.build.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(to)], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(to / done.stdout.split()[-1])


def project(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def instances(folder: Path) -> list[Path]:
    return sorted((folder / folder.name / "instances").glob("*/tests/rubric.json"))


def test_no_extra_looks_like_a_version() -> None:
    """pip from 24.1 on compares such a name as one, and gives up on the whole package."""
    assert not [extra for extra in EXTRAS if re.fullmatch(r"v?\d.*", extra)]


def test_the_environments_are_found() -> None:
    assert "harbor_gdp" in [folder.name for folder in FOLDERS]


def test_the_wheel_is_one_module_with_all_of_its_instances(folder: Path, wheel: zipfile.ZipFile) -> None:
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    sources = [path for path in (folder / folder.name).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {path.relative_to(folder).as_posix() for path in sources}
    assert len(instances(folder)) >= 6
    assert not {name for name in packed if name.endswith((".gitignore", ".bak", ".pyc"))}


def test_the_metadata_say_what_it_needs_and_show_the_readme(folder: Path, wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    found = Parser().parsestr(wheel.read(name).decode("utf-8"))
    [needs] = found.get_all("Requires-Dist") or []
    assert needs.startswith("rubric-env["), "the one dependency, so that each can be had alone"
    assert {"classic", "office"} <= set(needs.removeprefix("rubric-env[").partition("]")[0].split(",")) <= EXTRAS
    assert (found["Requires-Python"], found["License-Expression"]) == (">=3.11", "Apache-2.0")
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).strip() == (folder / "README.md").read_text("utf-8").strip()


def test_the_id_gives_the_name_of_the_module_and_heads_the_readme(folder: Path) -> None:
    env_id = project(folder)["name"]
    assert env_id.replace("-", "_") == folder.name
    assert (folder / "README.md").read_text("utf-8").startswith(f"# {env_id}\n")


def test_an_editable_install_points_at_the_folder(folder: Path, tmp_path: Path) -> None:
    """`vf-install` makes one: changes to the instances are seen at once."""
    with build(folder, "editable", tmp_path) as wheel:
        [path_file] = [name for name in wheel.namelist() if name.endswith(".pth")]
        assert wheel.read(path_file).decode("utf-8").split() == [str(folder)]


def test_what_was_installed_from_wheels_loads_by_its_id(tmp_path: Path) -> None:
    pytest.importorskip("verifiers", reason="the classic extra is not installed")
    for folder in FOLDERS:
        with build(folder, "wheel", tmp_path) as wheel:
            wheel.extractall(tmp_path / "site" / folder.name)
    code = (
        "import importlib, json, sys, verifiers\n"
        "for env_id in sys.argv[1:]:\n"
        "    package = importlib.import_module(env_id.replace('-', '_'))\n"
        "    env = verifiers.load_environment(env_id, judge={'settings': {'backend': 'local'}})\n"
        "    print(json.dumps([package.__file__, len(env.get_dataset())]))\n"
    )
    paths = os.pathsep.join(str(path) for path in (tmp_path / "site").iterdir())
    command = [sys.executable, "-c", code, *(project(folder)["name"] for folder in FOLDERS)]
    environment = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert said == [
        [str(tmp_path / "site" / folder.name / folder.name / "__init__.py"), len(instances(folder))]
        for folder in FOLDERS
    ]
