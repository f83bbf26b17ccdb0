"""The environment that the packages under environments/ share: instances in, a tool-using policy, files out."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from datasets import Dataset
from pydantic import Field, ValidationError, validate_call

from rubric_env.classic._errors import forgive_policy
from rubric_env.classic._group import HarborRubricGroup
from rubric_env.classic._rubric import HarborRubric
from rubric_env.classic._verifiers import vf
from rubric_env.classic._workspace import OUTPUT, TOOLS, count_files, make_workspace, remove_workspace
from rubric_env.harbor import InstanceError, dataset_rows, find_instances
from rubric_env.harbor.case import read_info
from rubric_env.scoring import AdvantageKind

SYSTEM_PROMPT = """You are an experienced office professional working in a workspace of files.

Look at the input files first, then do the task. Files that you deliver belong in the folder output/, under the names \
that the task gives. When you are done, answer with a short closing message and no tool call. \
If the task asks for an answer in chat, give that answer as your closing message."""

Weight = Annotated[float, Field(allow_inf_nan=False)]

JUDGE_ARGUMENTS = frozenset({"model", "base_url", "api_key_file", "api_key_command", "settings", "config", "log"})


class WorkspaceEnv(vf.StatefulToolEnv):
    """One workspace a rollout; what ends up in `output/` is the submission.

    `keep_workspaces` names a folder in which the workspaces stay for people to look at; by default each is deleted as
    soon as its rollout is scored. `unscored` holds those that are still to be deleted.
    """

    def __init__(self, *, unscored: set[Path], keep_workspaces: str | None = None, **kwargs: Any):
        super().__init__(tools=[], **kwargs)
        self._unscored = unscored
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
        if not self._keep:
            self._unscored.add(root)
        state["submission_dir"], state["output_dir"] = str(root), output
        await super().setup_state(state)
        return state  # verifiers 0.1.14 returns nothing

    @vf.stop(priority=101)  # before verifiers' own check, which would leave the error on the rollout
    async def ended_by_policy(self, state: Any) -> bool:
        """A policy that says nothing at all is done: what it delivered before is judged."""
        return forgive_policy(state)

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "workspace": state["submission_dir"]}


class WorkspaceRubric(vf.Rubric):
    """Deletes a rollout's workspace after every rubric has seen it: the environment's own cleanup runs too early.

    At the end it deletes what is left in `unscored`: rollouts that were stopped, or made again after a failure.
    """

    def __init__(self, unscored: set[Path]):
        super().__init__()
        self._unscored = unscored
        self.add_metric(self.workspace_files)

    async def workspace_files(self, state: Any) -> float:
        """Files in the output directory when scoring began."""
        root = state.get("submission_dir")
        return float(await asyncio.to_thread(count_files, Path(root) / state["output_dir"])) if root else 0.0

    @vf.cleanup(priority=-100)
    async def delete_workspace(self, state: Any) -> None:
        root = Path(state.get("submission_dir") or "")
        if root in self._unscored:
            self._unscored.discard(root)
            await asyncio.to_thread(remove_workspace, root)

    @vf.teardown
    async def delete_the_rest(self) -> None:
        # It also runs at interpreter exit, where no thread can be had.
        while self._unscored:
            remove_workspace(self._unscored.pop())


class AnswerRubric(vf.MathRubric):
    """MathRubric for data sets in which only some rows have a checkable answer: 0.0 on the others, at no cost."""

    async def correct_answer(self, parser: Any, completion: Any, answer: str, **kwargs: Any) -> float:
        return float(await super().correct_answer(parser, completion, answer, **kwargs)) if answer else 0.0


def _checked(build: Callable[..., Any]) -> Callable[..., Any]:
    """Arguments come as JSON from a command line: those that do not fit are one line, before any rollout is paid."""
    validated, known = validate_call(build), list(inspect.signature(build).parameters)

    @functools.wraps(build)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return validated(*args, **kwargs)
        except ValidationError as error:
            wrong: dict[str, str] = {}
            for item in error.errors():
                at = item["loc"][0]
                name = known[at] if isinstance(at, int) else at
                # The value of an unknown argument may be a key.
                unknown = f"{name} is no argument; known are {', '.join(known)}"
                wrong.setdefault(name, f"{name} = {item['input']!r}: {item['msg']}" if name in known else unknown)
            raise ValueError("; ".join(wrong.values())) from None

    return call


@_checked
def build_environment(
    instances: str | Path | Sequence[str | Path],
    *,
    judge: Mapping[str, Any] | None = None,
    rubric_weight: Weight = 1.0,
    math_weight: Weight = 0.0,
    advantage: AdvantageKind | None = "mean",
    max_turns: int = 12,
    system_prompt: str = SYSTEM_PROMPT,
    keep_workspaces: str | None = None,
    strict: bool = False,
    env_id: str | None = None,
) -> Any:
    """A classic environment over a folder of Harbor instances; see the README of an environment for the arguments.

    Everything is rebuilt from these JSON values, so an env server's workers can make their own. Raises ValueError for
    arguments that are unknown or of the wrong type, InstanceError when a folder holds no instance (or, with `strict`, a
    broken one).
    """
    judge = dict(judge or {})
    if "api_key" in judge:
        raise ValueError(
            "judge.api_key would be written to metadata.json: set JUDGE_API_KEY, or give judge.api_key_file"
        )
    if unknown := judge.keys() - JUDGE_ARGUMENTS:
        raise ValueError(f"judge: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(JUDGE_ARGUMENTS))}")
    if not isinstance(judge.get("settings") or {}, Mapping):
        raise ValueError(f"judge.settings = {judge['settings']!r}: an object of settings is expected")
    try:
        rows = dataset_rows(find_instances(instances), strict=strict)
    except InstanceError as error:
        raise InstanceError(f"instances = {instances}: {error}") from None
    rubrics: list[Any] = [HarborRubric(advantage=advantage, **judge)]
    rubrics[0].log_prefix = env_id or rubrics[0].log_prefix
    if any(row["answer"] for row in rows):
        answers = AnswerRubric()
        answers.weights = [math_weight]
        rubrics.append(answers)
    rubrics[0].weights[0] = rubric_weight
    unscored: set[Path] = set()
    rubrics.append(WorkspaceRubric(unscored))

    return WorkspaceEnv(
        dataset=Dataset.from_list(rows),
        rubric=HarborRubricGroup(rubrics),
        system_prompt=system_prompt,
        max_turns=max_turns,
        unscored=unscored,
        keep_workspaces=keep_workspaces,
        **({"env_id": env_id} if env_id else {}),
    )
