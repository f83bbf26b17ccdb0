"""Somebody else's taskset: rows with whatever fields the test names in the environment variable QUESTION."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import ConfigDict

__all__ = ["Questions"]


class Row(vf.TaskData):
    model_config = ConfigDict(extra="allow", frozen=True)


class Question(vf.Task[Row]):
    pass


class Questions(vf.Taskset[Question, vf.TasksetConfig]):
    def load(self) -> Iterator[Any]:
        row = {"idx": 0, "prompt": "Who owns the total?", **json.loads(os.environ["QUESTION"])}
        yield Question(Row(**row), self.config.task)
