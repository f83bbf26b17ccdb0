"""The environment that the packages under environments/ share: instances in, a tool-using policy, files out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from rubric_env.classic._group import HarborRubricGroup
from rubric_env.classic._rubric import HarborRubric
from rubric_env.classic._sources import read_info
from rubric_env.classic._verifiers import vf
from rubric_env.classic._workspace import OUTPUT, TOOLS, count_files, make_workspace, remove_workspace
from rubric_env.harbor import InstanceError, dataset_rows, find_instances
from rubric_env.scoring import AdvantageKind

SYSTEM_PROMPT = """You are an experienced office professional working in a workspace of files.

Look at the input files first, then do the task. Files that you deliver belong in the folder output/, under the names \
that the task gives. When you are done, answer with a short closing message and no tool call. \
If the task asks for an answer in chat, give that answer as your closing message."""

JUDGE_ARGUMENTS = frozenset({"model", "base_url", "api_key_file", "api_key_command", "settings", "config"})


class WorkspaceEnv(vf.StatefulToolEnv):
    """One workspace a rollout; what ends up in `output/` is the submission.

    `keep_workspaces` names a folder in which the workspaces stay for people to look at; by default each is deleted as
    soon as its rollout is scored.
    """

    def __init__(self, *, keep_workspaces: str | None = None, **kwargs: Any):
        super().__init__(tools=[], **kwargs)
        self._keep = Path(keep_workspaces) if keep_workspaces else None
        if self._keep:
            self._keep.mkdir(parents=True, exist_ok=True)
        for tool in TOOLS:
            self.add_tool(tool, args_to_skip=["workspace"])

    async def setup_state(self, state: Any) -> Any:
        info = read_info(state.get("info"))
        output = str(info.get("output_dir") or OUTPUT)
        try:
            inputs = Path(str(info["inputs"])) if info.get("inputs") else None
            root = await asyncio.to_thread(make_workspace, inputs, output, self._keep)
        except OSError as error:
            raise vf.InfraError(f"workspace: {error}") from error
        state["submission_dir"], state["output_dir"] = str(root), output
        return await super().setup_state(state)

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "workspace": state["submission_dir"]}


class WorkspaceRubric(vf.Rubric):
    """Deletes a rollout's workspace after every rubric has seen it: the environment's own cleanup runs too early."""

    def __init__(self, keep: bool):
        super().__init__()
        self._keep = keep
        self.add_metric(self.workspace_files)

    async def workspace_files(self, state: Any) -> float:
        """Files in the output directory when scoring began."""
        root = state.get("submission_dir")
        return float(await asyncio.to_thread(count_files, Path(root) / state["output_dir"])) if root else 0.0

    @vf.cleanup(priority=-100)
    async def delete_workspace(self, state: Any) -> None:
        if not self._keep and state.get("submission_dir"):
            await asyncio.to_thread(remove_workspace, Path(state["submission_dir"]))


class AnswerRubric(vf.MathRubric):
    """MathRubric for data sets in which only some rows have a checkable answer: 0.0 on the others, at no cost."""

    async def correct_answer(self, parser: Any, completion: Any, answer: str, **kwargs: Any) -> float:
        return float(await super().correct_answer(parser, completion, answer, **kwargs)) if answer else 0.0


def build_environment(
    instances: str | Path | Sequence[str | Path],
    *,
    judge: Mapping[str, Any] | None = None,
    rubric_weight: float = 1.0,
    math_weight: float = 0.0,
    advantage: AdvantageKind | None = "mean",
    max_turns: int = 12,
    system_prompt: str = SYSTEM_PROMPT,
    keep_workspaces: str | None = None,
    strict: bool = False,
    env_id: str | None = None,
) -> Any:
    """A classic environment over a folder of Harbor instances; see the README of an environment for the arguments.

    Everything is rebuilt from these JSON values, so an env server's workers can make their own. Raises ValueError for
    unknown judge arguments, InstanceError when a folder holds no instance (or, with `strict`, a broken one).
    """
    judge = dict(judge or {})
    if "api_key" in judge:
        raise ValueError(
            "judge.api_key would be written to metadata.json: set JUDGE_API_KEY, or give judge.api_key_file"
        )
    if unknown := judge.keys() - JUDGE_ARGUMENTS:
        raise ValueError(f"judge: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(JUDGE_ARGUMENTS))}")
    try:
        rows = dataset_rows(find_instances(instances), strict=strict)
    except InstanceError as error:
        raise InstanceError(f"instances = {instances}: {error}") from None
    rubrics: list[Any] = [HarborRubric(advantage=advantage, **judge)]
    if any(row["answer"] for row in rows):
        answers = AnswerRubric()
        answers.weights = [math_weight]
        rubrics.append(answers)
    rubrics[0].weights[0] = rubric_weight
    rubrics.append(WorkspaceRubric(keep=keep_workspaces is not None))

    return WorkspaceEnv(
        dataset=Dataset.from_list(rows),
        rubric=HarborRubricGroup(rubrics),
        system_prompt=system_prompt,
        max_turns=max_turns,
        keep_workspaces=keep_workspaces,
        **({"env_id": env_id} if env_id else {}),
    )
