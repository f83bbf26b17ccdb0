"""A taskset over a folder of Harbor instances, judged by HarborJudge."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from rubric_env.harbor import InstanceError, each_row, find_instances
from rubric_env.submission import message_text
from rubric_env.v1._config import HarborJudgeConfig, resolve
from rubric_env.v1._errors import HarborJudgeError
from rubric_env.v1._files import collect_output, place_inputs
from rubric_env.v1._judge import seconds_left
from rubric_env.v1._verifiers import vf


class HarborData(vf.TaskData):
    """One instance as a row."""

    info: dict[str, Any] = Field(default_factory=dict)
    """Everything that judging needs, so that no worker reads the instance again (rubric_env.harbor.each_row)."""
    answer: str = ""
    """The answer that a program can check; empty where there is none."""


class HarborTaskConfig(vf.TaskConfig):
    # A default that is not validated, or this module could not be imported without a key.
    judges: vf.Judges = Field(default_factory=lambda: [HarborJudgeConfig.model_construct()])
    """Judge plugins; the rubric judge by default."""
    submissions: Path | None = None
    """Folder in which the delivered files of every trace stay; by default they are deleted once they are judged."""


class HarborTask(vf.Task[HarborData, vf.State, HarborTaskConfig]):
    """Puts the instance's input files into the runtime, and takes what was delivered out of it for the judges."""

    async def setup(self, trace: Any, runtime: Any) -> None:
        inputs = self.data.info.get("inputs")
        await place_inputs(runtime, Path(inputs) if inputs else None, self.data.info["output_dir"])

    async def score(self, trace: Any, runtime: Any = None) -> None:
        """Here and not in `finalize`, after whose time-out verifiers 0.4 goes on to score."""
        if runtime is None:  # an offline re-scoring judges the files that were kept
            await super().score(trace)
            return
        keep = self.config.submissions
        if keep is not None:
            await self._score(trace, runtime, keep / trace.id)
            return
        with tempfile.TemporaryDirectory(prefix="submission-", ignore_cleanup_errors=True) as folder:
            await self._score(trace, runtime, Path(folder))

    async def _score(self, trace: Any, runtime: Any, folder: Path) -> None:
        try:
            async with asyncio.timeout(seconds_left(trace)):
                cut = await collect_output(runtime, self.data.info["output_dir"], folder)
        except TimeoutError:
            raise HarborJudgeError("the delivered files could not be fetched within the scoring time-out") from None
        trace.record_metric("submission_cut", cut)
        trace.info["submission_dir"] = str(folder)
        await super().score(trace, runtime)


class HarborTasksetConfig(vf.TasksetConfig):
    instances: list[Path] = Field(default_factory=list)
    """Instances, or folders of them."""
    strict: bool = False
    """Stop at a broken instance; by default it is named and left out."""
    task: HarborTaskConfig = HarborTaskConfig()

    @model_validator(mode="after")
    def _usable(self) -> HarborTasksetConfig:
        # Without instances this is what the command line makes to list its options, which needs no key.
        for judge in self.task.judges if self.instances else ():
            if isinstance(judge, HarborJudgeConfig):
                resolve(judge)
        return self


class HarborTaskset(vf.Taskset[HarborTask, HarborTasksetConfig]):
    """The tasks of a folder of Harbor instances, read one by one as they are asked for."""

    def __init__(self, config: HarborTasksetConfig) -> None:
        super().__init__(config)
        if not config.instances:
            raise InstanceError("no instances: give --env.taskset.instances '[\"FOLDER\"]'")

    def load(self) -> Iterator[HarborTask]:
        """Raises InstanceError when no instance can be used (or, with `strict`, for a broken one)."""
        for number, row in enumerate(each_row(find_instances(self.config.instances), strict=self.config.strict)):
            info = json.loads(row["info"])
            prompt = "\n\n".join(map(message_text, row["prompt"]))
            data = HarborData(idx=number, name=info["name"], prompt=prompt, info=info, answer=row["answer"])
            yield HarborTask(data, self.config.task)
