"""A recorded policy over the wire: rotation, tool calls, and conversations that the server does not keep."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import openai
import pytest

from rubric_env.local import ReplayPolicyServer

TASK = "Write the report.\n\nPut it into output/report.md."
OTHER = "Write the report.\n\nPut it into output/report.md. Then sign it."


def recording(quality: str, *turns: dict[str, Any], prompt: str = TASK, instance: str = "report") -> dict[str, Any]:
    return {"instance": instance, "quality": quality, "label": "by hand", "prompt": prompt, "turns": list(turns)}


def write(text: str) -> dict[str, Any]:
    return {"name": "write_file", "arguments": {"path": "output/report.md", "content": text}}


GOOD = recording("good", {"content": "I look.", "tool_calls": [write("好"), write("b")]}, {"content": "Done."})
POOR = recording("poor", {"content": "No."})
SIGNED = recording("good", {"content": "Signed."}, prompt=OTHER, instance="signed")


class Talk:
    """One conversation, as a client that runs tools leads it."""

    def __init__(self, server: ReplayPolicyServer, task: str = TASK, system: str | None = "Use the tools.") -> None:
        self.api = openai.OpenAI(api_key="any", base_url=server.base_url, max_retries=0)
        self.messages: list[Any] = [{"role": "system", "content": system}] if system else []
        self.messages.append({"role": "user", "content": task})

    def turn(self, stream: bool = False) -> Any:
        if stream:
            with self.api.chat.completions.stream(model="replay", messages=self.messages) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = self.api.chat.completions.create(model="replay", messages=self.messages).choices[0].message
        calls = message.tool_calls or []
        said: dict[str, Any] = {"role": "assistant", "content": message.content}
        if calls:
            said["tool_calls"] = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.function.name, "arguments": c.function.arguments},
                }
                for c in calls
            ]
        self.messages.append(said)
        self.messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in calls]
        return message

    def close(self) -> None:
        self.api.close()


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "sse"])
def test_a_conversation_is_played_turn_by_turn(stream: bool) -> None:
    with ReplayPolicyServer([GOOD]) as server:
        talk = Talk(server)
        first = talk.turn(stream)
        assert first.content == "I look."
        assert [call.id for call in first.tool_calls] == ["call_0_0_0", "call_0_0_1"]
        assert json.loads(first.tool_calls[0].function.arguments)["content"] == "好"
        assert talk.turn(stream).content == "Done."
        with pytest.raises(openai.NotFoundError, match="ends after turn 2"):
            talk.turn()
        talk.close()


def test_rollouts_of_one_instance_take_its_recordings_in_turn() -> None:
    with ReplayPolicyServer([GOOD, SIGNED, POOR]) as server:
        said = [Talk(server).turn().content for _ in range(4)]
        assert said == ["I look.", "No.", "I look.", "No."]
        assert Talk(server, OTHER).turn().content == "Signed."


def test_conversations_may_interleave_and_outlive_the_server() -> None:
    with ReplayPolicyServer([GOOD, POOR]) as server:
        first, second = Talk(server), Talk(server)
        first.turn()
        second.turn()
        history = first.messages
    with ReplayPolicyServer([GOOD, POOR]) as restarted:
        later = Talk(restarted)
        later.messages = history
        assert later.turn().content == "Done."


def test_the_task_may_stand_inside_a_longer_message_and_the_longest_match_wins() -> None:
    with ReplayPolicyServer([GOOD, SIGNED]) as server:
        assert Talk(server, f"Your task:\n  {OTHER}\nGood luck.", system=None).turn().content == "Signed."
        assert Talk(server, "Write the report.  Put it into\toutput/report.md.").turn().content == "I look."


def test_an_unknown_task_is_refused_naming_what_there_is() -> None:
    with ReplayPolicyServer([GOOD, SIGNED]) as server, pytest.raises(openai.NotFoundError, match="report, signed"):
        Talk(server, "Something else").turn()


@pytest.mark.parametrize("ids", [[], ["toolu_1"], ["call_9_0_0"], ["call_0_0_0", "call_1_0_0"]])
def test_a_history_that_no_recording_has_is_refused(ids: list[str]) -> None:
    with ReplayPolicyServer([GOOD, POOR]) as server:
        talk = Talk(server)
        calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
        talk.messages.append({"role": "assistant", "content": "I look.", "tool_calls": calls})
        with pytest.raises(openai.NotFoundError, match="not those of one recording"):
            talk.turn()


def test_concurrent_rollouts_get_every_recording_once() -> None:
    recordings = [recording(str(n), {"content": f"answer {n}"}) for n in range(8)]
    said: list[str] = []
    with ReplayPolicyServer(recordings, delay=0.05) as server:
        threads = [threading.Thread(target=lambda: said.append(Talk(server).turn().content)) for _ in range(8)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.perf_counter() - start >= 0.05
    assert sorted(said) == [f"answer {n}" for n in range(8)]


LOOSE_CALL = {"content": "", "tool_calls": [{"name": "f", "arguments": "{}"}]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prompt": " "}, "report/good: prompt"),
        ({"quality": None}, "report/None: quality"),
        ({"turns": []}, "report/good: turns"),
        ({"turns": ["text"]}, r"turns\.0"),
        ({"turns": [{"content": 3}]}, r"turns\.0\.content"),
        ({"turns": [{"content": ""}, LOOSE_CALL]}, r"turns\.1\.tool_calls\.0\.arguments"),
        ({"turns": [{"content": "", "tool_calls": ["f"]}]}, r"turns\.0\.tool_calls\.0"),
    ],
)
def test_a_broken_recording_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ReplayPolicyServer([GOOD | change])


def test_no_recordings_no_server() -> None:
    with pytest.raises(ValueError, match="no recordings"):
        ReplayPolicyServer([])
