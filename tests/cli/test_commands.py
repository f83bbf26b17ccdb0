"""The command line: JSON on stdout, people's words on stderr, exit 0, 1 or 2, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.servers.endpoint import Endpoint

COMMAND = Path(sys.executable).parent / "rubric-env"
RUBRIC = [
    {"id": "c1", "description": "Names the owner.", "weight": 3},
    {"id": "c2", "description": "Invents a figure.", "weight": -1},
]


def run(
    *arguments: object, stdin: str = "", cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JUDGE_", "OPENAI_"))}
    done = subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        input=stdin,
        env={**clean, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    root = tmp_path / "task"
    write(root / "tests" / "rubric.json", RUBRIC)
    write(root / "tests" / "judge_instruction.md", "Judge strictly.")
    write(root / "instruction.md", "Write a memo that names the owner to output/memo.md.")
    return root


def test_score_prints_the_scorecard(tmp_path: Path) -> None:
    done = run("score", write(tmp_path / "r.json", RUBRIC), "-", stdin='{"c1": {"hit": true}, "c2": {"hit": true}}')
    assert done.returncode == 0
    assert json.loads(done.stdout)["score"] == pytest.approx(2 / 3)


def test_score_accepts_a_list_and_names_a_broken_rubric(tmp_path: Path) -> None:
    verdicts = write(tmp_path / "v.json", [{"id": "c1", "hit": True}])
    assert json.loads(run("score", write(tmp_path / "r.json", RUBRIC), verdicts).stdout)["coverage"] == 0.5
    done = run("score", write(tmp_path / "bad.json", [{"id": "x", "weight": 1}]), verdicts)
    assert done.returncode == 1
    assert "bad.json" in done.stderr
    assert "x" in done.stderr


def test_parse_prints_verdicts_and_says_what_is_unjudged(tmp_path: Path) -> None:
    reply = write(tmp_path / "reply.txt", '```json\n{"verdicts": [{"id": "c1", "reason": "p. 3", "hit": true}]}\n```')
    done = run("parse", "--ids", "c1,c2", reply)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["verdicts"]["c1"]["hit"] is True
    assert set(answer["unjudged"]) == {"c2"}
    assert run("parse", "--ids", "c1", reply).returncode == 0


def test_lint_reports_every_file_and_exits_1_on_errors(tmp_path: Path, instance: Path) -> None:
    bad = write(
        tmp_path / "bad.json",
        [{"id": "a", "description": "x", "weight": 1}, {"id": "a", "description": "y", "weight": 1}],
    )
    assert run("lint", instance).returncode == 0
    done = run("lint", bad, instance, "--json")
    assert done.returncode == 1
    assert any(item["severity"] == "error" and "a" in item["message"] for item in json.loads(done.stdout))
    assert run("lint", tmp_path / "nowhere").returncode == 2


def test_evidence_writes_the_pack_and_prints_its_summary(tmp_path: Path) -> None:
    write(tmp_path / "work" / "output" / "memo.md", "# Memo\n\nThe ledger team owns it.")
    write(tmp_path / "work" / "output" / "deck.pptx", "PK\x03\x04")
    done = run("evidence", tmp_path / "work", "-o", tmp_path / "pack")
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert {f["name"]: f["status"] for f in summary["files"]}["output/memo.md"] == "read"
    assert {f["name"]: f["status"] for f in summary["files"]}["output/deck.pptx"] == "unsupported"
    assert "ledger team" in Path(summary["text"]).read_text("utf-8")


def test_judge_writes_result_and_reward(tmp_path: Path, instance: Path, endpoint: Endpoint) -> None:
    endpoint.truth = {"c1": True, "c2": False}
    write(tmp_path / "sub" / "memo.md", "The ledger team owns it.")
    key = {"JUDGE_API_KEY": "secret-key", "JUDGE_BASE_URL": endpoint.base_url}
    done = run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", **key)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "result.json").read_text("utf-8"))
    assert json.loads(done.stdout) == result
    assert result["task_score"] == 1.0
    assert result["metric_id"] == "rubric_llm_judge"
    assert result["extra_fields"]["judge_coverage"] == 1.0
    assert json.loads((tmp_path / "out" / "reward.json").read_text()) == {"reward": 1.0}
    assert "secret-key" not in done.stderr + "".join(
        p.read_text("utf-8", "replace") for p in (tmp_path / "out").rglob("*") if p.is_file()
    )
    calls = len(endpoint.calls)
    assert run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", **key).returncode == 0
    assert len(endpoint.calls) == calls, "a second run must not pay again"


def test_judge_that_cannot_score_says_why_and_leaves_no_reward(
    tmp_path: Path, instance: Path, endpoint: Endpoint
) -> None:
    endpoint.rule(lambda call: True, "html")
    write(tmp_path / "sub" / "memo.md", "The ledger team owns it.")
    settings = {"JUDGE_MAX_TRIES": "1", "JUDGE_RESPLIT": "0", "JUDGE_API_KEY": "k", "JUDGE_BASE_URL": endpoint.base_url}
    done = run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", **settings)
    assert done.returncode == 1
    assert "unscored" in done.stderr
    assert not (tmp_path / "out" / "reward.json").exists()
    assert json.loads(done.stdout)["status"] == "error"


def test_judge_without_a_key_is_one_line(tmp_path: Path, instance: Path) -> None:
    done = run("judge", instance, "--submission", tmp_path, "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "judge:no_credential" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda root: (root / "tests" / "rubric.json").unlink(), "rubric.json"),
        (lambda root: (root / "tests" / "rubric.json").write_text("[{"), "rubric.json"),
        (lambda root: (root / "tests" / "rubric.json").write_text("[]"), "rubric.json"),
        (lambda root: (root / "instruction.md").unlink(), "instruction.md"),
    ],
)
def test_judge_names_the_broken_instance_file(tmp_path: Path, instance: Path, spoil: Any, says: str) -> None:
    spoil(instance)
    done = run("judge", instance, "--submission", tmp_path, "-o", tmp_path / "out", "--backend", "local")
    assert done.returncode == 1
    assert says in done.stderr


def test_judge_with_a_missing_submission_is_unscored_infrastructure(tmp_path: Path, instance: Path) -> None:
    done = run("judge", instance, "--submission", tmp_path / "nowhere", "-o", tmp_path / "out", "--backend", "local")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert json.loads(done.stdout)["exit_code"] == "judge:crash"


def test_judge_local_needs_no_key_and_no_network(tmp_path: Path, instance: Path) -> None:
    write(tmp_path / "sub" / "memo.md", "The owner is the ledger team.")
    done = run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", "--backend", "local")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "success"


def test_doctor_reports_the_endpoint_and_its_abilities(endpoint: Endpoint) -> None:
    endpoint.reject("json_schema")
    done = run("doctor", "--json", JUDGE_API_KEY="k-123456789", JUDGE_BASE_URL=endpoint.base_url)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0, done.stderr
    assert checks["judge endpoint"]["state"] == "ok"
    assert "json_object" in checks["judge endpoint"]["detail"]
    assert "k-123456789" not in done.stdout + done.stderr


def test_doctor_without_a_credential_says_how_to_give_one_and_with_a_dead_endpoint_fails() -> None:
    checks = {check["name"]: check for check in json.loads(run("doctor", "--json").stdout)}
    assert checks["judge endpoint"]["state"] == "missing"
    assert "JUDGE_API_KEY" in checks["judge endpoint"]["detail"]
    done = run("doctor", JUDGE_API_KEY="k", JUDGE_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "judge endpoint" in done.stderr


def test_help_reads_well_in_a_narrow_terminal() -> None:
    done = run("--help", COLUMNS="60")
    assert done.returncode == 0
    for command in ("demo", "judge", "lint", "score", "parse", "evidence", "doctor", "local-judge"):
        assert command in done.stdout


def test_start_up_is_quick_because_heavy_parts_load_late() -> None:
    heavy = ("openai", "verifiers", "datasets", "numpy")
    code = f"import sys, rubric_env.cli; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
