"""SPEC 8: what a policy delivered as a picture is seen by a judge that sees, and said to others in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from rubric_env.submission import read_submission
from tests.engine.conftest import Judging, case, rows
from tests.servers.scenarios import error


@pytest.fixture
def delivered(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    Image.new("RGB", (64, 48), "red").save(tmp_path / "output" / "chart.png")
    (tmp_path / "output" / "report.md").write_text("See the chart.")
    return tmp_path


async def judged(judging: Judging, folder: Path, **settings: object):
    engine = judging.engine(**settings)
    return await engine.judge(replace(case(rows(5)), submission=read_submission(folder)))


async def test_section_8_every_block_shows_the_pictures_and_a_metric_counts_them(
    judging: Judging, delivered: Path
) -> None:
    outcome = await judged(judging, delivered)
    assert [len(call.pictures) for call in judging.endpoint.calls] == [1, 1]
    assert "Picture output/chart.png#picture:" in judging.endpoint.calls[0].text
    assert "PNG picture, 64 × 48 pixels" in judging.endpoint.calls[0].text
    assert outcome.fields["judge_evidence_pages"] == 1


async def test_without_sight_the_picture_is_named_and_not_drawn(judging: Judging, delivered: Path) -> None:
    outcome = await judged(judging, delivered, vision="off")
    assert [len(call.pictures) for call in judging.endpoint.calls] == [0, 0]
    assert "PNG picture, 64 × 48 pixels" in judging.endpoint.calls[0].text
    assert outcome.fields["judge_evidence_pages"] == 0


async def test_an_endpoint_that_refuses_pictures_costs_one_call_and_no_verdict(
    judging: Judging, delivered: Path
) -> None:
    refusal = error("blind", 400, "image_url is not supported by this model", type="invalid_request_error")
    judging.endpoint.rule(lambda call: bool(call.pictures), refusal)
    outcome = await judged(judging, delivered, concurrency=1)
    assert (outcome.reward, outcome.fields["judge_evidence_pages"]) == (1.0, 0)
    assert [len(call.pictures) for call in judging.endpoint.calls] == [1, 0, 0]
