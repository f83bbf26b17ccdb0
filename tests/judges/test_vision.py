"""SPEC 8: pictures as image parts for judges that take them, and none for those that do not."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest

from rubric_env.judges import Picture, Prompt, Reply
from tests.judges.conftest import MakeJudge, in_every_way
from tests.judges.prompts import make_prompt
from tests.servers.endpoint import Endpoint
from tests.servers.scenarios import error


@pytest.fixture
def prompt(tmp_path: Path) -> Prompt:
    pictures = []
    for number in (1, 2):
        path = tmp_path / f"slide-{number}.png"
        path.write_bytes(f"picture {number}".encode())
        pictures.append(Picture(f"output/deck.pptx#slide {number}", path))
    return replace(make_prompt("c1"), pictures=tuple(pictures))


@in_every_way
async def test_section_8_pictures_stand_between_the_evidence_and_the_rows(
    endpoint: Endpoint, make_chat: MakeJudge, prompt: Prompt
) -> None:
    assert isinstance(await make_chat().ask(prompt, timeout=60), Reply)
    (call,) = endpoint.calls
    assert [b64decode(url.removeprefix("data:image/png;base64,")) for url in call.pictures] == [
        b"picture 1",
        b"picture 2",
    ]
    places = [call.text.index(part) for part in ("# Evidence", "output/deck.pptx#slide 1", "#slide 2", "# Rows")]
    assert places == sorted(places)
    assert call.ids == ("c1",)


@in_every_way
@pytest.mark.parametrize(
    "words",
    [
        "This model does not support image input.",
        "Invalid content type. image_url is only supported by certain models.",
        "messages[1].content: Input should be a valid string",
        "该模型不支持图片输入",
    ],
)
async def test_an_endpoint_that_takes_no_pictures_is_asked_without_and_shown_none_again(
    endpoint: Endpoint, make_chat: MakeJudge, prompt: Prompt, words: str
) -> None:
    endpoint.rule(lambda call: bool(call.pictures), error("blind", 400, words, type="invalid_request_error"))
    judge = make_chat()
    assert judge.sees
    for _ in range(2):
        answer = await judge.ask(prompt, timeout=60)
        assert isinstance(answer, Reply)
    assert [len(call.pictures) for call in endpoint.calls] == [2, 0, 0]
    assert not judge.sees
    assert answer.mode == "json_schema"


@pytest.mark.parametrize(
    "words", ["Invalid image data", "Could not process image", "The image exceeds 5 MB", "图片尺寸过大"]
)
async def test_a_picture_that_no_endpoint_takes_does_not_blind_the_judge_of_others(
    endpoint: Endpoint, make_chat: MakeJudge, prompt: Prompt, words: str
) -> None:
    bad = [True, False, *[True] * 6]
    endpoint.rule(
        lambda call: bool(call.pictures) and bad.pop(0), error("bad", 400, words, type="invalid_request_error")
    )
    judge = make_chat()
    seen = []
    for _ in range(7):
        assert isinstance(await judge.ask(prompt, timeout=60), Reply)
        seen.append(judge.sees)
    assert seen == [True, True, True, True, True, True, False]
    assert [len(call.pictures) for call in endpoint.calls] == [2, 0, 2, *[2, 0] * 5]


async def test_what_is_said_of_pictures_at_large_blinds_no_judge_that_saw_one(
    endpoint: Endpoint, make_chat: MakeJudge, prompt: Prompt
) -> None:
    turns = iter([False, True, False])
    refusal = error("odd", 400, "image_url is not supported here", type="invalid_request_error")
    endpoint.rule(lambda call: bool(call.pictures) and next(turns), refusal)
    judge = make_chat()
    for _ in range(3):
        await judge.ask(prompt, timeout=60)
    assert [len(call.pictures) for call in endpoint.calls] == [2, 2, 0, 2]


async def test_a_judge_whose_vision_is_off_is_shown_no_picture(
    endpoint: Endpoint, make_chat: MakeJudge, prompt: Prompt
) -> None:
    judge = make_chat(vision="off")
    assert not judge.sees
    await judge.ask(prompt, timeout=60)
    assert endpoint.calls[0].pictures == []
