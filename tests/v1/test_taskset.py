"""A taskset over Harbor instances: input files in, delivered files out, judged."""

from __future__ import annotations

import asyncio
import io
import tarfile
from pathlib import Path

import pytest

from rubric_env.v1 import HarborJudgeError, HarborTask, HarborTaskset, HarborTasksetConfig, _files
from tests.servers.endpoint import Endpoint
from tests.v1.conftest import Run, make_instance


def test_delivered_files_are_judged_and_then_deleted(run: Run, endpoint: Endpoint, policy: Endpoint) -> None:
    policy.prose = "FILE output/memo.md: The total is 5.\nFILE elsewhere.md: A stray."
    [episode] = run()
    trace = episode.traces[0]
    assert episode.ok and trace.reward == 1
    assert trace.info["judge_result"]["details"]["delivery"]["files"] == ["output/memo.md"]
    assert "Be exact." in endpoint.calls[0].text and "[¶1] The total is 5." in endpoint.calls[0].text
    assert trace.metrics["submission_cut"] == 0
    assert not Path(trace.info["submission_dir"]).exists()
    endpoint.settle()


def test_delivered_files_stay_where_a_folder_is_named(run: Run, policy: Endpoint, tmp_path: Path) -> None:
    policy.prose = "FILE output/memo.md: The total is 5."
    [episode] = run(task={"submissions": str(tmp_path / "kept")})
    kept = Path(episode.traces[0].info["submission_dir"])
    assert kept == tmp_path / "kept" / episode.traces[0].id
    assert (kept / "output" / "memo.md").read_text() == "The total is 5."


@pytest.mark.parametrize("kept", [True, False])
def test_a_saved_trace_is_judged_again_on_the_files_that_were_kept(
    run: Run, endpoint: Endpoint, policy: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """What verifiers' replay does: it scores without a runtime."""
    policy.prose = "FILE output/memo.md: The total is 5."
    [episode] = run(task={"submissions": str(tmp_path / "kept")} if kept else {})
    trace = episode.traces[0]
    monkeypatch.setenv("JUDGE_API_KEY", "key")
    monkeypatch.setenv("JUDGE_BASE_URL", endpoint.base_url)
    endpoint.truth = {"R2": False}
    task = HarborTask(trace.task.data)
    if kept:
        asyncio.run(task.score(trace))
        assert trace.reward == 0.75
    else:
        with pytest.raises(HarborJudgeError, match="no such file or directory"):
            asyncio.run(task.score(trace))


def test_equal_submissions_of_a_task_are_asked_once(run: Run, endpoint: Endpoint) -> None:
    episodes = run(rollouts=3)
    assert [e.traces[0].reward for e in episodes] == [1, 1, 1]
    assert len(endpoint.calls) == 1
    assert sum(e.traces[0].metrics["judge_calls"] for e in episodes) == 1


def test_the_judge_is_plugged_by_default_and_reads_the_environment(
    run: Run, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "from-the-environment")
    monkeypatch.setenv("JUDGE_BASE_URL", endpoint.base_url)
    [episode] = run(judge=None)
    assert episode.traces[0].reward == 1
    assert endpoint.calls[0].key == "from-the-environment"


def test_input_files_are_in_the_runtime(run: Run, instances: Path, policy: Endpoint) -> None:
    make_instance(
        instances / "memo", **{"environment/inputs/data/numbers.csv": "5", "environment/Dockerfile": "FROM x"}
    )
    policy.prose = "COPY data/numbers.csv output/copy.csv"
    [episode] = run()
    assert episode.traces[0].info["judge_result"]["details"]["delivery"]["files"] == ["output/copy.csv"]


def test_a_folder_is_read_as_it_is_asked_for_and_broken_instances_are_named(
    instances: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", "key")
    make_instance(instances / "broken", **{"tests/rubric.json": "[{]"})
    make_instance(instances / "zebra")
    tasks = iter(HarborTaskset(HarborTasksetConfig(instances=[instances])))
    with pytest.warns(UserWarning, match="broken"):
        first = next(tasks)
    assert (first.data.name, first.data.prompt) == ("memo", "Write output/memo.md.")
    (instances / "zebra" / "tests" / "rubric.json").unlink()
    with pytest.warns(UserWarning, match="zebra"):
        assert list(tasks) == []


def test_no_folder_and_no_key_stop_before_any_rollout(instances: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUDGE_API_KEY", "OPENAI_API_KEY", "JUDGE_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="instances"):
        HarborTaskset(HarborTasksetConfig())
    with pytest.raises(ValueError, match="no judge credential"):
        HarborTasksetConfig(instances=[instances])


def test_what_leaves_the_runtime_is_bounded(run: Run, policy: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "MAX_BYTES", 4096)
    policy.prose = f"FILE output/a.md: The total is 5.\nFILE output/b.md: {'x' * 5000}"
    [episode] = run()
    trace = episode.traces[0]
    assert trace.metrics["submission_cut"] == 1
    assert set(trace.info["judge_result"]["details"]["delivery"]["files"]) <= {"output/a.md"}


def test_an_archive_writes_nowhere_else(tmp_path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in ("../out.md", "/tmp/abs.md", "output/in.md"):
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"ok"))
        link = tarfile.TarInfo("output/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
        through = tarfile.TarInfo("output/link/through.md")
        archive.addfile(through, io.BytesIO(b""))
    _files._unpack(data.getvalue(), tmp_path / "to")
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["to/output/in.md", "to/output/link/through.md"]
