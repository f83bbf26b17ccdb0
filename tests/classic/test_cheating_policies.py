"""A policy that cheats, over the wire: what it delivers to escape the judge is judged, and counts as what it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rubric_env.classic import Family, build_environment
from rubric_env.classic._family import FILE_TOOLS
from tests.classic.test_misbehaving_policies import DONE, FACT, sandboxed, scripted, use, write
from tests.servers.endpoint import Endpoint

verifiers_types = pytest.importorskip("verifiers.types", reason="the classic extra is not installed")

FAMILY = Family("tiny-env", Path("none-ships"), tools=(*FILE_TOOLS, "run_python"))
HALF = "\\ud83d"
"""Half a character, as JSON spells it."""

NOTEBOOK = '{"cells": [{"cell_type": "code' + HALF + '", "source": "' + FACT + HALF + '"}]}'
LEGACY = "open('output/deck.pptx', 'wb').write(bytes.fromhex('d0cf11e0a1b11ae1') + b'x' * 600)"
NAMES = """import os
folder = 'output/' + '/'.join(['目' * 60] * 3)
os.makedirs(folder)
for number in range(500):
    open(f'{folder}/{number}.md', 'w').write(str(number))
"""

SCRIPTS: Mapping[str, list[Any]] = {
    "half-a-character-in-a-notebook": [write("output/memo.ipynb", NOTEBOOK), DONE],
    "legacy-bytes-named-as-a-deck": [use("run_python", {"code": LEGACY}), DONE],
    "names-longer-than-the-context": [use("run_python", {"code": NAMES}), DONE],
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Any]]:
    """Every script, played once in one run: its rollout."""
    folder = tmp_path_factory.mktemp("instances")
    with Endpoint() as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLICY_KEY", "any")
        for name, turns in SCRIPTS.items():
            tests = folder / name / "tests"
            tests.mkdir(parents=True)
            (tests.parent / "instruction.md").write_text(f"Case {name}. Deliver output/deck.pptx; the total is wanted.")
            (tests.parent / "task.toml").write_text(
                'schema_version = "1.4"\n[metadata]\nkind = "files"\ndeliverables = ["output/deck.pptx"]\n'
            )
            (tests / "rubric.json").write_text('[{"description": "States that the total is 42 euros", "weight": 1}]')
            (tests / "judge_instruction.md").write_text("Judge.")
            scripted(endpoint, name, turns)
        env = build_environment(FAMILY, str(folder), judge={"settings": {"backend": "local"}}, max_turns=4)
        client = verifiers_types.ClientConfig(api_base_url=endpoint.base_url, api_key_var="POLICY_KEY")
        options = {"num_examples": -1, "rollouts_per_example": 1, "state_columns": ["judge_result"]}
        outputs = asyncio.run(env.evaluate(client=client, model="policy", **options))["outputs"]
        yield {output["info"]["name"]: output for output in outputs}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_policy_delivers_to_escape_is_judged(name: str, ran: Any) -> None:
    if "run_python" in json.dumps(SCRIPTS[name]) and not sandboxed():
        pytest.skip("no sandbox can be had here")
    rollout = ran[name]
    assert rollout["error"] is None
    assert rollout["metrics"]["judge_scored"] == 1.0
    assert rollout["metrics"]["workspace_files"] == (500 if name.startswith("names") else 1)
    assert rollout["reward"] == (1.0 if "notebook" in name else 0.0)


def test_bytes_of_an_old_office_file_are_no_deck(ran: Any) -> None:
    assert ran["legacy-bytes-named-as-a-deck"]["metrics"]["format_reward"] == 0.5  # for its closing message
