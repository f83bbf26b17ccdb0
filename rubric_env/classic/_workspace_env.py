"""The environment in which a policy works with tools on a workspace of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rubric_env.classic._errors import forgive_policy
from rubric_env.classic._verifiers import vf
from rubric_env.classic.tools import OUTPUT, Tool, Workspace, count_files
from rubric_env.harbor.case import read_info


class WorkspaceEnv(vf.StatefulToolEnv):
    """One workspace a rollout; what ends up in its output directory is the submission.

    `keep_workspaces` names a folder in which the workspaces stay for people to look at; by default each is deleted as
    soon as its rollout is scored. `unscored` holds those that are still to be deleted.
    """

    def __init__(
        self, *, tools: Iterable[Tool], unscored: set[Workspace], keep_workspaces: str | None = None, **kwargs: Any
    ):
        super().__init__(tools=[], **kwargs)
        self._unscored = unscored
        self._keep = Path(keep_workspaces) if keep_workspaces else None
        if self._keep:
            self._keep.mkdir(parents=True, exist_ok=True)
        for tool in tools:
            self.add_tool(tool, args_to_skip=["workspace"])

    async def setup_state(self, state: Any) -> Any:
        info = read_info(state.get("info"))
        try:
            workspace = await asyncio.to_thread(
                Workspace.make,
                Path(str(info["inputs"])) if info.get("inputs") else None,
                str(info.get("output_dir") or OUTPUT),
                corpus=Path(str(info["corpus"])) if info.get("corpus") else None,
                parent=self._keep,
            )
        except OSError as error:
            raise vf.InfraError(f"workspace: {error}") from error
        if not self._keep:
            self._unscored.add(workspace)
        state["workspace"] = workspace
        state["submission_dir"], state["output_dir"] = str(workspace.root), workspace.output
        await super().setup_state(state)
        return state  # verifiers 0.1.14 returns nothing

    @vf.stop(priority=101)  # before verifiers' own check, which would leave the error on the rollout
    async def ended_by_policy(self, state: Any) -> bool:
        """A policy that says nothing at all is done: what it delivered before is judged."""
        return forgive_policy(state)

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: Any, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "workspace": state["workspace"]}


class WorkspaceRubric(vf.Rubric):
    """Deletes a rollout's workspace after every rubric has seen it: the environment's own cleanup runs too early.

    At the end it deletes what is left in `unscored`: rollouts that were stopped, or made again after a failure.
    """

    def __init__(self, unscored: set[Workspace]):
        super().__init__()
        self._unscored = unscored
        self.add_metric(self.workspace_files)

    async def workspace_files(self, state: Any) -> float:
        """Files in the output directory when scoring began."""
        workspace = state.get("workspace")
        return float(await asyncio.to_thread(count_files, workspace.root / workspace.output)) if workspace else 0.0

    @vf.cleanup(priority=-100)
    async def delete_workspace(self, state: Any) -> None:
        workspace = state.get("workspace")
        if workspace in self._unscored:
            self._unscored.discard(workspace)
            await asyncio.to_thread(workspace.remove)

    @vf.teardown
    async def delete_the_rest(self) -> None:
        # It also runs at interpreter exit, where no thread can be had.
        while self._unscored:
            self._unscored.pop().remove()
