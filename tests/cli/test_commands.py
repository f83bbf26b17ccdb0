"""The command line: JSON on stdout, people's words on stderr, exit 0, 1 or 2, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rubric_env.cli._common import _wrap
from tests.servers.endpoint import Endpoint
from tests.servers.redis import RedisServer
from tests.servers.scenarios import Scenario

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


@pytest.mark.parametrize(
    ("verdicts", "says"),
    [
        ('[{"id": "c1", "hit": true}, {"id": "c1", "hit": false}]', "more than one verdict on c1"),
        ('{"c1": {"hit": true}, "c1": {"hit": false}}', "'c1' stands twice"),
        ("[" * 100_000, "recursion"),
        ("", "not JSON"),
        ("3", "an object of verdicts"),
    ],
    ids=["list", "object", "deep", "empty", "number"],
)
def test_score_refuses_verdicts_that_contradict_or_cannot_be_read(tmp_path: Path, verdicts: str, says: str) -> None:
    done = run("score", write(tmp_path / "r.json", RUBRIC), write(tmp_path / "v.json", verdicts))
    assert done.returncode == 1
    assert says in done.stderr
    assert done.stdout == ""


def test_parse_prints_verdicts_and_says_what_is_unjudged(tmp_path: Path) -> None:
    reply = write(tmp_path / "reply.txt", '```json\n{"verdicts": [{"id": "c1", "reason": "p. 3", "hit": true}]}\n```')
    done = run("parse", "--ids", "c1,c2", reply)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["verdicts"]["c1"]["hit"] is True
    assert set(answer["unjudged"]) == {"c2"}
    assert run("parse", "--ids", "c1", reply).returncode == 0


def test_parse_refuses_texts_that_are_none(tmp_path: Path) -> None:
    reply = write(tmp_path / "reply.txt", "{}")
    for texts in ('["c1"]', '{"c1": 3}'):
        done = run("parse", "--ids", "c1", "--texts", write(tmp_path / "texts.json", texts), reply)
        assert done.returncode == 2
        assert "texts.json" in done.stderr


def test_stdout_that_is_not_utf_8_gets_the_same_json_in_ascii(tmp_path: Path) -> None:
    reply = write(tmp_path / "reply.txt", '{"verdicts": [{"id": "甲", "reason": "数字对", "hit": true}]}')
    done = run("parse", "--ids", "甲", reply, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdicts"]["甲"]["reason"] == "数字对"


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


def test_lint_says_when_a_folder_holds_no_instance(tmp_path: Path) -> None:
    write(tmp_path / "project" / "tests" / "test_x.py", "")
    done = run("lint", tmp_path / "project")
    assert done.returncode == 2
    assert "no instance" in done.stderr


def test_evidence_writes_the_pack_and_prints_its_summary(tmp_path: Path) -> None:
    write(tmp_path / "work" / "output" / "memo.md", "# Memo\n\nThe ledger team owns it.")
    write(tmp_path / "work" / "output" / "deck.pptx", "PK\x03\x04")
    done = run("evidence", tmp_path / "work", "-o", tmp_path / "pack")
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert {f["name"]: f["status"] for f in summary["files"]}["output/memo.md"] == "read"
    assert {f["name"]: f["status"] for f in summary["files"]}["output/deck.pptx"] == "unreadable"
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


def test_judge_says_a_cause_once_for_all_rows_and_what_a_scored_result_lacks(
    tmp_path: Path, instance: Path, endpoint: Endpoint
) -> None:
    write(tmp_path / "sub" / "memo.md", "The ledger team owns it.")
    settings = {"JUDGE_API_KEY": "k", "JUDGE_BASE_URL": endpoint.base_url, "JUDGE_BATCH": "1", "JUDGE_MAX_TRIES": "1"}
    endpoint.rule(lambda call: True, "401", times=4)
    done = run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", **settings)
    assert done.stderr.count("Incorrect API key") == 1
    assert done.stderr.count("auth") == 3
    endpoint.rule(lambda call: "c2" in call.ids, "missing_row")
    settings |= {"JUDGE_MAX_UNCERTAINTY": "off", "JUDGE_RESPLIT": "0"}
    done = run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", **settings)
    assert done.returncode == 0, done.stderr
    assert "scored, but" in done.stderr
    assert "1 of 2 rows unjudged: unparseable (c2" in done.stderr


def test_judge_finds_out_what_cannot_work_before_it_pays(tmp_path: Path, instance: Path, endpoint: Endpoint) -> None:
    write(tmp_path / "sub" / "memo.md", "The ledger team owns it.")
    (tmp_path / "file").write_text("")
    key = {"JUDGE_API_KEY": "k", "JUDGE_BASE_URL": endpoint.base_url}
    judge = ("judge", instance, "--submission", tmp_path / "sub")
    for arguments, code, says in (
        (("-o", tmp_path / "file"), 1, "file"),
        (("-o", tmp_path / "out", "--backend", "codex"), 1, "codex"),
        (("-o", tmp_path / "out", "--base-url", endpoint.base_url), 2, "--api-key-file"),
        (("-o", tmp_path / "out", "--reply", tmp_path), 2, str(tmp_path)),
    ):
        done = run(*judge, *arguments, **key)
        assert done.returncode == code
        assert says in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    done = run(*judge, "-o", tmp_path / "out", JUDGE_JOURNAL=str(tmp_path), **key)
    assert done.returncode == 1
    assert "JUDGE_JOURNAL" in done.stderr
    assert endpoint.calls == []


def test_judge_reads_a_reply_in_another_encoding(tmp_path: Path, instance: Path, endpoint: Endpoint) -> None:
    (tmp_path / "reply.txt").write_bytes("负责人是账务组。".encode("gb18030"))
    (tmp_path / "empty").mkdir()
    key = {"JUDGE_API_KEY": "k", "JUDGE_BASE_URL": endpoint.base_url}
    arguments = ("--submission", tmp_path / "empty", "--reply", tmp_path / "reply.txt", "-o", tmp_path / "out")
    done = run("judge", instance, *arguments, **key)
    assert done.returncode == 0, done.stderr
    assert "GB18030" in done.stderr
    assert "负责人是账务组" in endpoint.calls[0].text


def test_nothing_that_a_judge_writes_drives_the_terminal(tmp_path: Path, instance: Path, endpoint: Endpoint) -> None:
    reason = "\x1b]0;owned\x07 [red]x[/red] \\[b]"
    verdicts = [{"id": row, "reason": reason, "evidence": "memo.md", "hit": False} for row in ("c1", "c2")]
    endpoint.rule(lambda call: True, Scenario("escape", content=json.dumps({"verdicts": verdicts})))
    write(tmp_path / "sub" / "memo.md", "The ledger team owns it.")
    key = {"JUDGE_API_KEY": "k", "JUDGE_BASE_URL": endpoint.base_url}
    done = run("judge", instance, "--submission", tmp_path / "sub", "-o", tmp_path / "out", **key)
    assert "\x1b" not in done.stderr
    assert "[red]x[/red] \\[b]" in done.stderr


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
    assert "no measure of quality" in done.stderr


def test_doctor_knows_a_backend_that_needs_no_endpoint_and_one_that_does_not_exist(endpoint: Endpoint) -> None:
    assert run("doctor", JUDGE_BACKEND="local").returncode == 0
    done = run("doctor", JUDGE_BACKEND="codex", JUDGE_API_KEY="k", JUDGE_BASE_URL=endpoint.base_url)
    assert done.returncode == 1
    assert "codex" in done.stderr
    assert endpoint.calls == []


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


@pytest.mark.parametrize(
    ("name", "value", "check", "said"),
    [
        ("JUDGE_ENDPOINTS", '[{"base_url": oops', "judge endpoint", "no JSON"),
        ("JUDGE_LIMITER", "localhost", "settings", "not a Redis URL"),
        ("JUDGE_LIMITER", "redis://user:hidden-word@127.0.0.1:9/0", "limiter", "127.0.0.1:9"),
        ("JUDGE_JOURNAL", "text.db", "settings", "no journal of verdicts"),
        ("JUDGE_EVENTS", "text.db/calls.jsonl", "settings", "cannot be written"),
    ],
)
def test_doctor_fails_for_what_is_configured_and_does_not_work(
    name: str, value: str, check: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "text.db").write_text("not mine")
    given = {} if name == "JUDGE_ENDPOINTS" else {"JUDGE_BACKEND": "local"}
    done = run("doctor", "--json", cwd=tmp_path, **given, **{name: value})
    checks = {line["name"]: line for line in json.loads(done.stdout)}
    assert (done.returncode, checks[check]["state"]) == (1, "failed")
    assert said in checks[check]["detail"]
    assert "hidden-word" not in done.stdout + done.stderr


def test_doctor_knows_a_redis_that_answers() -> None:
    with RedisServer() as redis:
        done = run("doctor", "--json", JUDGE_BACKEND="local", JUDGE_LIMITER=redis.url)
    assert {"name": "limiter", "state": "ok", "detail": f"Redis at 127.0.0.1:{redis.port}/0"} in json.loads(done.stdout)


def test_help_reads_well_in_a_narrow_terminal() -> None:
    done = run("--help", COLUMNS="80")
    assert "..." not in done.stdout.partition("Commands:")[2]
    done = run("--help", COLUMNS="60")
    assert done.returncode == 0
    for command in ("demo", "judge", "lint", "score", "parse", "evidence", "doctor", "local-judge"):
        assert command in done.stdout


def test_version() -> None:
    assert run("--version").stdout == "rubric-env 0.1.0\n"


@pytest.mark.parametrize("command", ["demo", "judge", "lint", "score", "parse", "evidence", "doctor", "local-judge"])
def test_json_is_accepted_everywhere(command: str) -> None:
    assert "--json" in run(command, "--help").stdout


def test_a_disk_that_is_full_is_one_line(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    rubric, verdicts = write(tmp_path / "r.json", RUBRIC), write(tmp_path / "v.json", {"c1": {"hit": True}})
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run([str(COMMAND), "score", rubric, verdicts], stdout=full, stderr=-1, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def test_a_terminal_gets_lines_that_break_between_words_and_leave_paths_whole() -> None:
    path = "/a/long/path/that/does/not/fit/into/one/line"
    assert _wrap("one two three", 7) == "one two\nthree"
    assert _wrap(f"see {path} for more", 20) == f"see\n{path}\nfor more"
    assert _wrap("  indented text", 10) == "  indented\ntext"
    assert _wrap("中文 中文", 8) == "中文\n中文"


def test_start_up_is_quick_because_heavy_parts_load_late() -> None:
    heavy = ("openai", "verifiers", "datasets", "numpy")
    code = f"import sys, rubric_env.cli; print([m for m in {heavy} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
