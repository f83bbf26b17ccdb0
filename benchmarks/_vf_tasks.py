"""A taskset of verifiers.v1 whose tasks ask for a report; its judges come from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from peers.job import TASK

__all__ = ["Reports"]


class ReportsConfig(vf.TasksetConfig):
    examples: int = 1


class Report(vf.Task[vf.TaskData]):
    """Judged by what is plugged in."""


class Reports(vf.Taskset[Report, ReportsConfig]):
    def load(self) -> Iterator[Any]:
        for number in range(self.config.examples):
            data = vf.TaskData(idx=number, prompt=TASK)
            yield Report(data, self.config.task)
